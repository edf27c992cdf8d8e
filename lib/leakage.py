"""Sentences of the benchmarks' test sets, to find the documents that they were taken from."""

import re
import zlib

SENTENCE_WORDS = 10  # a test sentence shorter than this may stand in an unrelated text


def plain_words(text: str) -> list[str]:
    """Lower-case runs of letters and digits: what two tokenisations of one text have in common."""
    return re.findall(r"[^\W_]+", text.lower())


class TestSentences:
    """An index of test texts by their beginnings."""

    __test__ = False

    def __init__(self, texts):
        """`texts`: strings. Those under SENTENCE_WORDS plain words are not used."""
        self.starts: dict[tuple, set[tuple]] = {}
        for text in texts:
            words = tuple(plain_words(text))
            if len(words) >= SENTENCE_WORDS:
                self.starts.setdefault(words[:SENTENCE_WORDS], set()).add(words)
        self.first = {start[0] for start in self.starts}

    def find(self, words: list[str]) -> set[int]:
        """Numbers that stand for the test texts found whole in a text, given as its plain words."""
        found = set()
        for i, word in enumerate(words):
            if word in self.first:  # most words begin no test text, so that most places cost one look
                for sentence in self.starts.get(tuple(words[i : i + SENTENCE_WORDS]), ()):
                    if tuple(words[i : i + len(sentence)]) == sentence:
                        found.add(zlib.crc32(" ".join(sentence).encode()))
        return found
