"""Vocabularies: trained on a mix of corpora, or published; and loading them with their casing checked."""

import io
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import sentencepiece
from tokenizers import (
    BertWordPieceTokenizer,
    ByteLevelBPETokenizer,
    SentencePieceBPETokenizer,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from lib import artefacts, provenance
from lib.corpora import corpora
from lib.errors import StudyError
from lib.places import show_path
from lib.study import params, paths

if TYPE_CHECKING:  # importing transformers takes seconds, and the graph only asks why_not
    from transformers import PreTrainedTokenizerBase

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # in BERT's order, so that padding is 0
VERSION = 1  # raised when the same text and settings give another vocabulary
ALPHABET = 500  # letters, each alone and as a continuation; rarer ones become the unknown piece
MARKS = re.compile("^(##|\u2581|\u0120)")  # WordPiece goes on; a space of SentencePiece, of byte-level BPE

Texts = Callable[[], Iterable[str]]  # called once for each pass over the corpora


def train(key: str, scale: str) -> dict:
    """Train a vocabulary on its corpora, unless it is there already; returns the record.

    Writes outputs/<scale>/vocabularies/<key> in the save_pretrained layout. The same bytes for the same corpora,
    whatever the number of cores.
    """
    vocabulary = params.load("vocabularies", key)
    if vocabulary.file:
        raise StudyError(f"vocabulary '{key}' is published: there is nothing to train")
    limit = params.load("scales", scale).vocabulary_size
    size = min(vocabulary.size, limit or vocabulary.size)
    built = {name: corpora.built(name, scale) for name in vocabulary.corpora}
    identity = provenance.record(
        "vocabularies",
        VERSION,
        vocabulary.model_dump(include={"algorithm", "cased", "corpora", "amplify"}) | {"size": size},
        {name: corpus["content"] for name, corpus in built.items()},
    )
    repeated = repeats({name: corpus["bytes"] for name, corpus in built.items()}, vocabulary.amplify)

    def texts() -> Iterator[str]:
        for name, times in repeated.items():
            for _ in range(times):
                yield from (document.text for document in corpora.iterate(name, scale))

    def write(new: Path) -> dict:
        with all_cores():
            if vocabulary.algorithm == "wordpiece":
                wordpiece = train_wordpiece(texts, size, vocabulary.cased)
                wordpiece.save_model(str(new))
                tokenizer = load_wordpiece(new / "vocab.txt", vocabulary.cased)
            else:
                tokenizer = wrap(TRAINERS[vocabulary.algorithm](texts, size, vocabulary.cased))
        check_casing(tokenizer, f"vocabulary '{key}'")
        tokenizer.save_pretrained(new)
        return {"repeats": repeated, "size": len(tokenizer)}

    return artefacts.cached(paths.vocabulary(scale, key), identity, write)


@contextmanager
def all_cores() -> Iterator[None]:
    """Let `tokenizers` use every core; elsewhere a notebook keeps to the threads of its scale."""
    before = os.environ.get("TOKENIZERS_PARALLELISM", "false")
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    try:
        yield
    finally:
        os.environ["TOKENIZERS_PARALLELISM"] = before


def repeats(sizes: dict[str, int], amplify: list[str]) -> dict[str, int]:
    """How often each corpus is read: the amplified ones together as often as they go into the size of the others.

    After ouBioBERT's amplified vocabulary (Wada et al. 2020, section 2.2); the ratio is rounded, as in its code.
    """
    core = sum(size for name, size in sizes.items() if name in amplify)
    times = max(1, round((sum(sizes.values()) - core) / core)) if core else 1
    return {name: times if name in amplify else 1 for name in sizes}


def train_wordpiece(texts: Texts, size: int, cased: bool) -> BertWordPieceTokenizer:
    """WordPiece as in BERT: words split at white space and punctuation, continuations marked with ##.

    `texts` is called twice: first for the alphabet. The trainer numbers continued letters in the order of a hash map,
    and settles ties by these numbers, so that two runs would give two vocabularies; naming them as special pieces
    fixes the numbers.
    """
    wordpiece = BertWordPieceTokenizer(lowercase=not cased, strip_accents=not cased)
    letters = common_letters(wordpiece.normalize(text) for text in texts())
    wordpiece.train_from_iterator(
        texts(),
        vocab_size=size,
        min_frequency=2,
        limit_alphabet=ALPHABET,
        initial_alphabet=letters,
        special_tokens=SPECIAL + [f"##{letter}" for letter in letters],
        show_progress=False,
    )
    return wordpiece


def train_bpe(texts: Texts, size: int, cased: bool) -> Tokenizer:
    """Byte-level BPE as in RoBERTa: no unknown piece, a space belongs to the word after it."""
    bpe = ByteLevelBPETokenizer(add_prefix_space=True, lowercase=not cased)
    bpe.train_from_iterator(texts(), vocab_size=size, min_frequency=2, special_tokens=SPECIAL, show_progress=False)
    return bpe._tokenizer


def train_sentencepiece_bpe(texts: Texts, size: int, cased: bool) -> Tokenizer:
    """BPE over whole lines with the space as a letter, as SentencePiece has it."""
    bpe = SentencePieceBPETokenizer(unk_token="[UNK]")
    bpe.train_from_iterator(
        fold(texts, cased), vocab_size=size, min_frequency=2, special_tokens=SPECIAL, limit_alphabet=ALPHABET,
        initial_alphabet=common_letters(fold(texts, cased)), show_progress=False,
    )  # fmt: skip
    return with_normalizer(bpe._tokenizer, cased)


def train_unigram(texts: Texts, size: int, cased: bool) -> Tokenizer:
    """SentencePiece's unigram language model, as in ALBERT.

    By SentencePiece itself, on one core: the trainer of `tokenizers` gives another vocabulary each time, and
    SentencePiece's own depends on the number of its threads.
    """
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line for text in fold(texts, cased) for line in text.split("\n")), model_writer=model,
        model_type="unigram", vocab_size=size, hard_vocab_limit=False, normalization_rule_name="identity",
        max_sentence_length=2**20, num_threads=1, minloglevel=2, pad_id=0, unk_id=1, bos_id=2, eos_id=3,
        pad_piece="[PAD]", unk_piece="[UNK]", bos_piece="[CLS]", eos_piece="[SEP]", user_defined_symbols=["[MASK]"],
    )  # fmt: skip
    trained = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [(trained.id_to_piece(i), trained.get_score(i)) for i in range(len(trained))]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=1))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return with_normalizer(tokenizer, cased)


TRAINERS = {"bpe": train_bpe, "unigram": train_unigram, "sentencepiece-bpe": train_sentencepiece_bpe}


def fold(texts: Texts, cased: bool) -> Iterator[str]:
    """The texts as the tokenizers of SentencePiece's kind see them."""
    folded = (unicodedata.normalize("NFKC", text) for text in texts())
    return folded if cased else (text.lower() for text in folded)


def common_letters(texts: Iterable[str]) -> list[str]:
    """The ALPHABET commonest letters, in order; ties by code point."""
    letters = Counter()
    for text in texts:
        letters.update(text)
    common = sorted((c for c in letters if not c.isspace()), key=lambda c: (-letters[c], c))
    return sorted(common[:ALPHABET])


def with_normalizer(tokenizer: Tokenizer, cased: bool) -> Tokenizer:
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), *([] if cased else [normalizers.Lowercase()])])
    return tokenizer


def wrap(tokenizer: Tokenizer) -> "PreTrainedTokenizerBase":
    """A trained tokenizer with BERT's special pieces around one text, or two."""
    from transformers import PreTrainedTokenizerFast

    ids = {piece: tokenizer.token_to_id(piece) for piece in ("[CLS]", "[SEP]")}
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=list(ids.items())
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **dict(zip(names, SPECIAL, strict=True)),
    )


def load_wordpiece(path: Path, cased: bool) -> "PreTrainedTokenizerBase":
    """BERT's tokenizer over a vocabulary of one piece a line."""
    from transformers import BertTokenizer

    return BertTokenizer(vocab=str(path), do_lower_case=not cased, strip_accents=None)


def why_not(key: str, scale: str) -> str:
    """Why a vocabulary cannot be had at a scale, or an empty string when it can."""
    vocabulary = params.load("vocabularies", key)
    if vocabulary.file:
        if params.load("scales", scale).made_up:
            return "published vocabularies are not shown beside made-up data"
        return "" if (paths.data(scale) / vocabulary.file).is_file() else "not at hand: run ./run_all.sh data vocab"
    return "" if paths.find(paths.vocabulary(scale, key)).is_dir() else why_not_trained(key, scale)


def why_not_trained(key: str, scale: str) -> str:
    """Why a vocabulary of ours cannot be trained at a scale, or an empty string when it can."""
    corpora_of = params.load("vocabularies", key).corpora
    return next(filter(None, (corpora.why_not(corpus, scale) for corpus in corpora_of)), "")


def amplified(scale: str) -> list[str]:
    """The vocabularies that amplify a core, and whose corpora are at hand."""
    return [k for k in params.keys("vocabularies") if params.load("vocabularies", k).amplify and not why_not(k, scale)]


def at_hand(scale: str) -> list[str]:
    """The registered vocabularies of English that can be had at a scale."""
    keys = params.keys("vocabularies")
    return [k for k in keys if params.load("vocabularies", k).language == "en" and not why_not(k, scale)]


@cache
def load(key: str, scale: str) -> "PreTrainedTokenizerBase":
    """A registered vocabulary, trained or published, as a tokenizer whose casing is checked."""
    from transformers import AutoTokenizer

    vocabulary = params.load("vocabularies", key)
    if vocabulary.file:
        if reason := why_not(key, scale):
            raise StudyError(f"vocabulary '{key}': {reason}")
        path = paths.data(scale) / vocabulary.file
        tokenizer = load_wordpiece(path, vocabulary.cased)
        check_casing(tokenizer, show_path(path))
        return tokenizer
    folder = paths.find(paths.vocabulary(scale, key))
    if artefacts.read_record(folder) is None:
        raise StudyError(f"vocabulary '{key}' is not built at scale '{scale}': run ./run_all.sh {scale} {key}")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    check_casing(tokenizer, show_path(folder))
    return tokenizer


def check_casing(tokenizer: "PreTrainedTokenizerBase", name: str) -> None:
    """StudyError when a tokenizer lower-cases a cased vocabulary, or feeds capitals to an uncased one.

    Pieces of one letter do not count: they are the alphabet, which byte-level vocabularies always have whole.
    """
    special = set(tokenizer.all_special_tokens)
    pieces = [p for p in tokenizer.get_vocab() if p not in special and not p.startswith("[unused")]
    capitals = [p for p in pieces if re.search("[A-Z]", p)]
    longer = sum(len(MARKS.sub("", piece)) > 1 for piece in capitals)
    normalizer = tokenizer.backend_tokenizer.normalizer
    lowers = normalizer is not None and "abc" in normalizer.normalize_str("ABC")
    if lowers and longer > 0.01 * len(pieces):
        raise StudyError(
            f"{name}: the vocabulary is cased ({longer} of {len(pieces)} pieces hold capitals) but its tokenizer "
            "lower-cases: set do_lower_case to false in tokenizer_config.json"
        )
    if not lowers and not capitals:
        raise StudyError(
            f"{name}: no piece of the vocabulary holds a capital, but its tokenizer keeps them: "
            "set do_lower_case to true in tokenizer_config.json"
        )


def pieces_of_words(tokenizer: "PreTrainedTokenizerBase", words: Iterable[str]) -> dict[str, list[int]]:
    """Piece ids of each distinct word, without special tokens; a word of no known piece becomes the unknown piece."""
    distinct = sorted(set(words))
    encoded = tokenizer(distinct, add_special_tokens=False)["input_ids"] if distinct else []
    return {w: ids or [tokenizer.unk_token_id] for w, ids in zip(distinct, encoded, strict=True)}


def continuation_flags(tokenizer: "PreTrainedTokenizerBase") -> list[bool]:
    """For each piece id, whether the piece continues a word.

    WordPiece marks that (##); unigram and BPE mark where a word begins, and then letters and digits without that mark
    continue one, while punctuation stands alone.
    """
    pieces = [piece for piece, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]
    if any(MARKS.sub("", piece) != piece and not piece.startswith("##") for piece in pieces):
        special = set(tokenizer.all_special_tokens)
        return [MARKS.sub("", piece) == piece and piece.isalnum() and piece not in special for piece in pieces]
    return [piece.startswith("##") for piece in pieces]
