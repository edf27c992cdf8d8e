"""Registered vocabularies at a scale: their availability, training, tokenizers and packed corpora."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lib import artefacts, provenance
from lib.errors import StudyError
from lib.pretraining import tokens
from lib.progress import Progress
from lib.study import params, paths
from lib.study.corpora import Corpus
from lib.vocabularies import learning, tokenization, words

if TYPE_CHECKING:  # importing transformers takes seconds, and the graph only needs why_not
    from transformers import PreTrainedTokenizerBase

    from lib.study import Study

# English vocabularies to compare, the best-known first.
COMMON = ("bert-cased", "bert-uncased", "scibert-uncased", "pubmedbert-uncased", "wiki-books-cased",
          "wiki-books-uncased", "pubmed-cased", "pubmed-uncased")  # fmt: skip


class Vocabulary(params.Registered):
    kind = "vocabularies"

    @property
    def folder(self) -> Path:
        """The folder of a vocabulary trained here; a published one is a file below the data folder."""
        return paths.vocabulary(self.study.scale, self.key)

    @property
    def saved(self) -> Path:
        """The file that defines a trained vocabulary; for Japanese, BertJapaneseTokenizer saves a list of tokens."""
        return self.folder / ("vocab.txt" if self.settings.language == "ja" else "tokenizer.json")

    @property
    def corpora(self) -> list[Corpus]:
        """The corpora that it is trained on."""
        return [self.study.corpus(key) for key in self.settings.corpora]

    @property
    def released(self) -> str:
        """The model whose public weights include it, at a scale that uses these, or an empty string."""
        model = self.settings.comes_with
        return model if model and params.is_released(model, self.study.scale) else ""

    @property
    def fingerprint(self) -> str:
        """A fingerprint of everything that determines how a text is tokenized."""
        if self.released:
            return tokenization.fingerprint_tokenizer(self.tokenizer())
        return provenance.file_fingerprint(self.saved)

    @property
    def why_not(self) -> str:
        """Why it is neither available nor can be trained here, or an empty string."""
        if self.settings.file:
            if self.study.budget.made_up:
                return "published vocabularies are not shown beside made-up data"
            available = (self.study.data / self.settings.file).is_file()
            return "" if available else "not at hand: run ./run_all.sh data vocab"
        if self.released:
            return params.why_no_weights(self.released, self.study.scale)
        return "" if paths.find(self.folder).is_dir() else self.why_not_trained

    @property
    def why_not_trained(self) -> str:
        """Why it cannot be trained here, or an empty string."""
        return next((corpus.why_not for corpus in self.corpora if corpus.why_not), "")

    @property
    def recipe(self) -> dict:
        """All settings that determine it, with its size limited to the scale's."""
        limit = self.study.budget.vocabulary_size
        size = min(self.settings.size, limit or self.settings.size)
        recipe = self.settings.model_dump(include={"algorithm", "cased", "corpora", "amplify"}) | {"size": size}
        if self.settings.algorithm == "unigram":
            recipe["white space"] = "joined"  # before 30 November 2026 line ends were unknown tokens
        return recipe if self.settings.language == "en" else recipe | {"language": self.settings.language}

    def sample(self) -> Iterator[str]:
        """Yield the texts in which unknown tokens are counted: each document held out from pretraining, once."""
        for corpus in self.corpora:
            for document in corpus.documents():
                if tokens.hash_text(document.text) % tokens.HELD_OUT == 0:
                    yield document.text

    def train(self) -> dict:
        """Train it on its corpora, unless that is done, and return the record.

        Raises StudyError for a published vocabulary, and if too many tokens of its own text are unknown.
        """
        settings = self.settings
        if settings.file:
            raise StudyError(f"vocabulary '{self.key}' is published: there is nothing to train")
        corpora = {corpus.key: corpus for corpus in self.corpora}
        records = {key: corpus.record for key, corpus in corpora.items()}
        identity = provenance.record(
            "vocabularies",
            learning.VERSION,
            self.recipe,
            {key: record["content"] for key, record in records.items()},
        )
        repeated = learning.repeats({key: record["bytes"] for key, record in records.items()}, settings.amplify)

        def texts() -> Iterator[str]:
            for key, times in repeated.items():
                for _ in range(times):
                    yield from (document.text for document in corpora[key].documents())

        def write(new: Path) -> dict:
            size = self.recipe["size"]
            tokenizer = learning.train_vocabulary(texts, settings.algorithm, size, settings.cased, settings.language)
            unknown = words.check_unknown(tokenizer, self.sample(), f"vocabulary '{self.key}'")
            tokenizer.save_pretrained(new)
            if settings.algorithm == "wordpiece":  # the usual exchange format: one token per line
                pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
                (new / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
            return {"repeats": repeated, "size": len(tokenizer), "unknown": round(unknown, 6)}

        return artefacts.cached(self.folder, identity, write)

    def tokenizer(self) -> "PreTrainedTokenizerBase":
        """Return the trained or published tokenizer, its casing checked. Raises StudyError if it is not available."""
        return open_tokenizer(self)

    def pack(self, corpus: Corpus) -> dict:
        """Write a corpus as tokens of this vocabulary, unless that is done; return its sizes and what is left out."""
        tokenizer, record = self.tokenizer(), corpus.record
        identity = provenance.record(
            "tokens",
            tokens.VERSION,
            {"held out": f"one document in {tokens.HELD_OUT}"},
            {"corpus": record["content"], "vocabulary": tokenization.fingerprint_tokenizer(tokenizer)},
        )

        def texts() -> Iterator[str]:
            progress, done = Progress(f"bytes of {corpus.key} tokenized"), 0
            for document in corpus.documents():
                yield document.text
                done += len(document.text.encode()) + 1
                if done < record["bytes"]:
                    progress.update(done, record["bytes"])

        folder = paths.tokens(self.study.scale, corpus.key, self.key)
        return artefacts.cached(folder, identity, lambda new: tokens.pack(texts(), tokenizer, new))

    def packed(self, corpus: Corpus, split: str = "train") -> tokens.Tokens:
        """Open a split of a corpus, `train` or `held_out`, in tokens of this vocabulary, memory-mapped.

        The corpus is packed first if needed. Raises StudyError if a file is missing or truncated, and if the split has
        no document.
        """
        self.pack(corpus)
        return tokens.open_packed(paths.tokens(self.study.scale, corpus.key, self.key), split, f"corpus '{corpus.key}'")


@cache
def open_tokenizer(vocabulary: Vocabulary) -> "PreTrainedTokenizerBase":
    settings, study = vocabulary.settings, vocabulary.study
    if settings.file:
        if reason := vocabulary.why_not:
            raise StudyError(f"vocabulary '{vocabulary.key}': {reason}")
        return tokenization.load_vocabulary(study.data / settings.file, settings.cased, settings.language)
    if vocabulary.released:
        from lib.modeling.loading import load_tokenizer  # here, because importing torch takes seconds

        checkpoint = study.encoder(vocabulary.released)
        return load_tokenizer(checkpoint.source, checkpoint.title, checkpoint.revision)
    folder = paths.find(vocabulary.folder)
    if artefacts.read_record(folder) is None:
        key, scale = vocabulary.key, study.scale
        raise StudyError(f"vocabulary '{key}' is not built at scale '{scale}': run ./run_all.sh {scale} {key}")
    return tokenization.load_vocabulary(folder)


def at_hand(study: "Study") -> list[Vocabulary]:
    """List the registered vocabularies within the scale's budget that are available or can be trained here."""
    keys = study.budget.shown_vocabularies
    vocabularies = (study.vocabulary(key) for key in keys or params.keys("vocabularies"))
    return [vocabulary for vocabulary in vocabularies if not vocabulary.why_not]


def choose_common(study: "Study") -> list[Vocabulary]:
    """Choose the first four of COMMON that at_hand lists: published ones, and ours if those are missing."""
    available = {vocabulary.key: vocabulary for vocabulary in at_hand(study)}
    return [available[key] for key in COMMON if key in available][:4]
