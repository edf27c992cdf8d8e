"""Vocabularies: training, loading, and what they make of a word."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import pandas as pd
from tokenizers import BertWordPieceTokenizer
from transformers import BertTokenizer, PreTrainedTokenizerBase

from lib import artefacts, corpora, datasets, params, paths, provenance
from lib.errors import StudyError

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # in BERT's order, so that padding is 0
ALPHABET = 500  # letters, each alone and as a continuation; rarer ones become the unknown piece


def train(key: str, scale: str) -> dict:
    """Train a WordPiece vocabulary on its corpora, unless it is there already; returns the record.

    Writes outputs/<scale>/vocabularies/<key> in the save_pretrained layout.
    """
    vocabulary = params.load("vocabularies", key)
    size = params.load("scales", scale).vocabulary_size
    record = provenance.record(
        vocabulary.model_dump(exclude={"title", "differs"}) | {"size": size},
        {name: corpora.built(name, scale)["fingerprint"] for name in vocabulary.corpora}
        | {"code": provenance.code_fingerprint("vocabularies")},
    )
    folder = paths.vocabulary(scale, key)
    if finished := artefacts.reuse(folder, record["fingerprint"]):
        return finished

    def texts() -> Iterator[str]:
        return (document.text for name in vocabulary.corpora for document in corpora.iterate(name, scale))

    wordpiece = train_wordpiece(texts, size, vocabulary.cased)
    record["size"] = wordpiece.get_vocab_size()
    with artefacts.whole_folder(folder) as temporary:
        wordpiece.save_model(str(temporary))
        tokenizer = BertTokenizer(
            vocab=str(temporary / "vocab.txt"), do_lower_case=not vocabulary.cased, strip_accents=None
        )
        tokenizer.save_pretrained(temporary)
        artefacts.write_record(temporary, record)
    return record


def train_wordpiece(texts: Callable[[], Iterable[str]], size: int, cased: bool) -> BertWordPieceTokenizer:
    """WordPiece as in BERT: words split at white space and punctuation, continuations marked with ##.

    `texts` is called twice: first for the alphabet. The trainer numbers continued letters in the order of a hash map,
    and settles ties by these numbers, so that two runs would give two vocabularies; naming them as special pieces
    fixes the numbers.
    """
    wordpiece = BertWordPieceTokenizer(lowercase=not cased, strip_accents=not cased)
    letters = Counter()
    for text in texts():
        letters.update(wordpiece.normalize(text))
    # The commonest, ties by code point; white space is in no piece.
    common = sorted((c for c in letters if not c.isspace()), key=lambda c: (-letters[c], c))[:ALPHABET]
    wordpiece.train_from_iterator(
        texts(),
        vocab_size=size,
        min_frequency=2,
        limit_alphabet=ALPHABET,
        initial_alphabet=sorted(common),
        special_tokens=SPECIAL + [f"##{letter}" for letter in sorted(common)],
        show_progress=False,
    )
    return wordpiece


def load(key: str, scale: str) -> PreTrainedTokenizerBase:
    """A registered vocabulary as a tokenizer."""
    params.load("vocabularies", key)  # an unknown key fails here, with the nearest names
    folder = paths.vocabulary(scale, key)
    if artefacts.read_record(folder) is None:
        raise StudyError(f"vocabulary '{key}' is not built at scale '{scale}': run ./run_all.sh {scale} 02")
    tokenizer = BertTokenizer.from_pretrained(folder)
    check_casing(tokenizer, paths.show(folder))
    return tokenizer


def check_casing(tokenizer: PreTrainedTokenizerBase, name: str) -> None:
    """StudyError when a WordPiece tokenizer lower-cases a cased vocabulary, or feeds capitals to an uncased one."""
    pieces = [p for p in tokenizer.get_vocab() if p not in tokenizer.all_special_tokens and not p.startswith("[unused")]
    if not any(piece.startswith("##") for piece in pieces):
        return  # byte-level and SentencePiece vocabularies do not separate cased from uncased in this way
    capitals = sum(piece != piece.lower() for piece in pieces)
    normalizer = tokenizer.backend_tokenizer.normalizer
    lowers = normalizer is not None and normalizer.normalize_str("ABC") == "abc"
    if lowers and capitals > 0.01 * len(pieces):
        raise StudyError(
            f"{name}: the vocabulary is cased ({capitals} of {len(pieces)} pieces hold capitals) but its tokenizer "
            "lower-cases: set do_lower_case to false in tokenizer_config.json"
        )
    if not lowers and not capitals:
        raise StudyError(
            f"{name}: no piece of the vocabulary holds a capital, but its tokenizer keeps them: "
            "set do_lower_case to true in tokenizer_config.json"
        )


def pieces_of_words(tokenizer: PreTrainedTokenizerBase, words: Iterable[str]) -> dict[str, list[int]]:
    """Piece ids of each distinct word, without special tokens; a word of no known piece becomes the unknown piece."""
    distinct = sorted(set(words))
    encoded = tokenizer(distinct, add_special_tokens=False)["input_ids"] if distinct else []
    return {w: ids or [tokenizer.unk_token_id] for w, ids in zip(distinct, encoded, strict=True)}


def continuation_flags(tokenizer: PreTrainedTokenizerBase) -> list[bool]:
    """For each piece id, whether the piece continues a word (##)."""
    by_id = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return [piece.startswith("##") for piece, _ in by_id]


def show_pieces(term: str, tokenizer: PreTrainedTokenizerBase) -> str:
    """A term's pieces joined by `-`, as the papers print them; ✓ when it is kept whole."""
    pieces = tokenizer.tokenize(term)
    return "✓" if len(pieces) == 1 else "-".join(piece.removeprefix("##") for piece in pieces)


def compare_printed_terms(terms: pd.DataFrame, paper: str, tokenizers: dict) -> pd.DataFrame:
    """The terms of a paper's vocabulary tables: the printed pieces beside those of the named tokenizers."""
    printed = terms[terms["paper"] == paper].copy()
    printed["shown"] = printed["pieces"].where(printed["whole_word"] != "1", "✓")
    wide = printed.pivot_table(index="term", columns="vocabulary", values="shown", aggfunc="first", sort=False)
    for name, tokenizer in tokenizers.items():
        wide[f"{name} (ours)"] = [show_pieces(term, tokenizer) for term in wide.index]
    return wide.reset_index()


def mean_pieces(words: Sequence[str], tokenizer: PreTrainedTokenizerBase) -> float:
    """Mean number of pieces of a word, over all its occurrences."""
    pieces = pieces_of_words(tokenizer, words)
    return sum(len(pieces[word]) for word in words) / len(words)


def pieces_in_entities(keys: list[str], dataset_keys: list[str], scale: str) -> pd.DataFrame:
    """Mean pieces of a word inside the gold entities of each training set, under each vocabulary."""
    tokenizers = {key: load(key, scale) for key in keys}
    rows = []
    for dataset in dataset_keys:
        sentences = datasets.load(dataset, "train", scale)
        words = [w for s in sentences for w, tag in zip(s.words, s.tags, strict=True) if tag != "O"]
        rows.append({"dataset": dataset} | {key: mean_pieces(words, tok) for key, tok in tokenizers.items()})
    return pd.DataFrame(rows)
