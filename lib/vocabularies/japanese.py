"""Japanese vocabularies: WordPiece over MeCab's words, saved as BertJapaneseTokenizer of transformers."""

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import BertJapaneseTokenizer, PreTrainedTokenizerFast

from lib.errors import StudyError
from lib.vocabularies.special_tokens import put_special

WORDS = {"word_tokenizer_type": "mecab", "mecab_kwargs": {"mecab_dic": "ipadic"}}  # NFKC is its default


class JapaneseTokenizer(PreTrainedTokenizerFast):
    """A tokenizer of MeCab's words separated by spaces, as segment_japanese in lib/corpora/cleaning.py writes them.

    Nothing else splits or strips them, so that ids equal those of BertJapaneseTokenizer, the class that a saved folder
    opens as. Source: Wada et al. 2020, table 2, and tokenization_jp_mod.py (ou-medinfo/medbertjp).
    """

    def __init__(self, vocab: dict[str, int], cased: bool):
        backend = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
        backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        backend.decoder = decoders.WordPiece()
        if not cased:
            backend.normalizer = normalizers.Lowercase()
        super().__init__(tokenizer_object=backend, **put_special(backend))
        self.cased = cased

    def save_pretrained(self, folder: Path | str) -> None:
        """Write vocab.txt and the configuration of BertJapaneseTokenizer.

        A tokenizer.json is not written: it would open as a tokenizer that takes text but never cuts it into words.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        tokens = self.convert_ids_to_tokens(range(len(self)))
        (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
        bert_tokenizer = BertJapaneseTokenizer(str(folder / "vocab.txt"), do_lower_case=not self.cased, **WORDS)
        bert_tokenizer.save_pretrained(folder)


def take_words(tokenizer: BertJapaneseTokenizer, title: str) -> JapaneseTokenizer:
    """Return the same vocabulary as a tokenizer of words already cut.

    Raises StudyError if its words would differ from MeCab's with the IPA dictionary after NFKC, or its tokens from
    WordPiece's.
    """
    options = tokenizer.init_kwargs.get("mecab_kwargs") or {}
    settings = {
        "word_tokenizer_type": tokenizer.word_tokenizer_type,
        "subword_tokenizer_type": tokenizer.subword_tokenizer_type,
        "mecab_dic": options.get("mecab_dic", "unidic_lite"),
        "mecab_option": options.get("mecab_option") or "",
        "normalize_text": options.get("normalize_text", True),
    }
    expected = {"word_tokenizer_type": "mecab", "subword_tokenizer_type": "wordpiece", "mecab_dic": "ipadic",
            "mecab_option": "", "normalize_text": True}  # fmt: skip
    if differences := [f"{name}: {value}" for name, value in settings.items() if value != expected[name]]:
        raise StudyError(
            f"{title}: its words are made otherwise ({', '.join(differences)}); Japanese is cut here by MeCab with "
            "ipadic, after NFKC, and its words by WordPiece"
        )
    return JapaneseTokenizer(tokenizer.get_vocab(), not tokenizer.do_lower_case)
