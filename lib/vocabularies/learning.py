"""Training of vocabularies: the same text gives the same vocabulary, whatever the number of cores."""

import io
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING

import sentencepiece
from tokenizers import (
    BertWordPieceTokenizer,
    ByteLevelBPETokenizer,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
)

from lib.errors import StudyError
from lib.vocabularies.special_tokens import SPECIAL, wrap
from lib.vocabularies.tokenization import check_casing, load_wordpiece

if TYPE_CHECKING:  # importing transformers takes seconds, and the graph needs only VERSION
    from transformers import PreTrainedTokenizerBase

VERSION = 1  # increased when the same text and settings give a different vocabulary
ALPHABET = 500  # letters, each alone and as a continuation; rarer ones become the unknown token
JAPANESE_ALPHABET = 0.25  # of the vocabulary: alone and as continuations, letters take at most half of it

Texts = Callable[[], Iterable[str]]  # called once for each pass over the corpora


def train_vocabulary(
    texts: Texts, algorithm: str, size: int, cased: bool, language: str = "en"
) -> "PreTrainedTokenizerBase":
    """Train a tokenizer of at most `size` tokens, ready for `save_pretrained`: wordpiece, bpe or unigram.

    The result is the same for the same texts, whatever the number of cores. Japanese texts (`ja`, wordpiece only) are
    MeCab's words, as segment_japanese in lib/corpora/cleaning.py writes them. Raises StudyError if `cased` is set but
    the texts have no capitals.
    """
    with all_cores():
        if algorithm == "wordpiece":
            wordpiece = train_wordpiece(texts, size, cased, language)
            tokenizer = load_wordpiece(wordpiece.get_vocab(), cased, language)
        elif language == "ja":
            raise StudyError(f"Japanese: no {algorithm} vocabulary of MeCab's words; train wordpiece")
        else:
            tokenizer = wrap(TRAINERS[algorithm](texts, size, cased))
    check_casing(tokenizer, f"the {algorithm} vocabulary that was trained")
    return tokenizer


def train_wordpiece(texts: Texts, size: int, cased: bool, language: str = "en") -> BertWordPieceTokenizer:
    """Train WordPiece as in BERT: words split at white space and punctuation, continuations marked with ##.

    Japanese is split only at white space, with nothing stripped (が would become か) and with more letters. `texts` is
    called twice: first for the alphabet. The trainer numbers continued letters in the order of a hash map and settles
    ties by these numbers, so that two runs would give two vocabularies; passing the letters as special tokens fixes the
    numbers.
    """
    wordpiece, alphabet_size = BertWordPieceTokenizer(lowercase=not cased, strip_accents=not cased), ALPHABET
    if language == "ja":
        wordpiece.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        wordpiece.normalizer = normalizers.Sequence([] if cased else [normalizers.Lowercase()])
        alphabet_size = int(JAPANESE_ALPHABET * size)
    letters = common_letters((wordpiece.normalize(text) for text in texts()), alphabet_size)
    wordpiece.train_from_iterator(
        texts(),
        vocab_size=size,
        min_frequency=2,
        limit_alphabet=alphabet_size,
        initial_alphabet=letters,
        special_tokens=SPECIAL + [f"##{letter}" for letter in letters],
        show_progress=False,
    )
    return wordpiece


def train_bpe(texts: Texts, size: int, cased: bool) -> Tokenizer:
    """Train byte-level BPE as in RoBERTa: no unknown token, and a space belongs to the word after it."""
    bpe = ByteLevelBPETokenizer(add_prefix_space=True, lowercase=not cased)
    bpe.train_from_iterator(texts(), vocab_size=size, min_frequency=2, special_tokens=SPECIAL, show_progress=False)
    return bpe._tokenizer


def train_unigram(texts: Texts, size: int, cased: bool) -> Tokenizer:
    """Train SentencePiece's unigram language model, as in ALBERT.

    SentencePiece itself trains it, on one core: the trainer of `tokenizers` gives another vocabulary each time, and
    SentencePiece's depends on the number of its threads.
    """
    model = io.BytesIO()
    normalized_texts = (unicodedata.normalize("NFKC", text) for text in texts())  # as the tokenizer will see them
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line for text in normalized_texts for line in (text if cased else text.lower()).split("\n")),
        model_writer=model,
        model_type="unigram", vocab_size=size, hard_vocab_limit=False, normalization_rule_name="identity",
        max_sentence_length=2**20, num_threads=1, minloglevel=2, pad_id=0, unk_id=1, bos_id=2, eos_id=3,
        pad_piece="[PAD]", unk_piece="[UNK]", bos_piece="[CLS]", eos_piece="[SEP]", user_defined_symbols=["[MASK]"],
    )  # fmt: skip
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    tokens = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(len(processor))]
    tokenizer = Tokenizer(models.Unigram(tokens, unk_id=1))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    # As in ALBERT's code, a line end is a space; it would be an unknown token, since training reads single lines.
    steps = [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " "), *([] if cased else [normalizers.Lowercase()])]
    tokenizer.normalizer = normalizers.Sequence(steps)
    return tokenizer


TRAINERS = {"bpe": train_bpe, "unigram": train_unigram}


def common_letters(texts: Iterable[str], most: int) -> list[str]:
    """Return at most `most` of the commonest letters, in code point order; ties go to the lower code point."""
    letters = Counter(chain.from_iterable(texts))
    by_frequency = sorted((c for c in letters if not c.isspace()), key=lambda c: (-letters[c], c))
    return sorted(by_frequency[:most])


def repeats(sizes: dict[str, int], amplify: list[str]) -> dict[str, int]:
    """Return how often to read each corpus: amplified ones until together they are about as large as the others.

    After ouBioBERT's amplified vocabulary (Wada et al. 2020, section 2.2); the ratio is rounded, as in its code.
    """
    amplified_size = sum(size for name, size in sizes.items() if name in amplify)
    other_size = sum(sizes.values()) - amplified_size
    times = max(1, round(other_size / amplified_size)) if amplified_size else 1
    return {name: times if name in amplify else 1 for name in sizes}


@contextmanager
def all_cores() -> Iterator[None]:
    """Let `tokenizers` use every core; elsewhere a notebook keeps to the threads of its scale."""
    previous_setting = os.environ.get("TOKENIZERS_PARALLELISM", "false")
    os.environ["TOKENIZERS_PARALLELISM"] = "true"
    try:
        yield
    finally:
        os.environ["TOKENIZERS_PARALLELISM"] = previous_setting
