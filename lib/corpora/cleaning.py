"""Cleaning of documents before pretraining, as in each paper: named rules, read from params/cleaning.yaml."""

import unicodedata
from functools import cache

import sentencex

from lib.corpora.records import Document
from lib.corpora.rules import Cleaning


def clean_document(document: Document, rules: Cleaning) -> tuple[str, str, int]:
    """Return the cleaned text, or an empty text and the reason, and the number of lines dropped.

    A line is a paragraph, or a sentence if the rules ask for one a line.
    """
    if rules.minimum_pmid and not (document.id.isdigit() and int(document.id) > rules.minimum_pmid):
        return "", "PMID", 0
    if rules.minimum_words and len(document.text.split()) < rules.minimum_words:
        return "", "too few words", 0
    text = document.text
    if rules.one_paragraph:
        text = " ".join(line for line in text.splitlines() if line.strip())
    lines = [line for paragraph in (document.title, *text.split("\n")) if (line := paragraph.strip())]
    if rules.title_joined and document.title.strip():
        lines[:2] = [" ".join(lines[:2])]
    if rules.sentences:
        lines = [sentence for line in lines for sentence in split_sentences(line, document.language)]
    kept_lines = [line for line in lines if len(line) >= rules.minimum_characters]
    if rules.segmented:
        kept_lines = [segment_japanese(line) for line in kept_lines]
    return "\n".join(kept_lines), "" if kept_lines else "nothing left", len(lines) - len(kept_lines)


def split_sentences(text: str, language: str = "") -> list[str]:
    """Split a paragraph of English or Japanese into sentences."""
    language_code = "ja" if language.startswith("ja") else "en"
    return [sentence.strip() for sentence in sentencex.segment(language_code, text) if sentence.strip()]


def segment_japanese(text: str) -> str:
    """Separate Japanese words with spaces, as every Japanese vocabulary expects in pretraining and fine-tuning.

    NFKC, then MeCab with the IPA dictionary, as in BertJapaneseTokenizer of transformers and in tokenization_jp_mod.py
    of Wada et al. (ou-medinfo/medbertjp).
    """
    words = mecab()(unicodedata.normalize("NFKC", text))
    return " ".join(part for word in words for part in word.surface.split())


@cache
def mecab():
    import fugashi
    import ipadic

    return fugashi.GenericTagger(ipadic.MECAB_ARGS)
