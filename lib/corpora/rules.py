"""Settings of corpora: which documents are selected, and how their text is cleaned."""

from typing import Literal

from lib.settings import Settings


class Selection(Settings):
    """Citations selected by the MeSH tree numbers of their headings; without any, only `complement_of` selects them."""

    title: str
    where: str
    each_of: list[list[str]] = []  # for each list, a heading below one of its branches
    major_of: list[str] = []  # a major heading below one of these
    none_of: list[str] = []  # no heading below any of these
    complement_of: str = ""  # another selection: select all that it does not, citations without headings too
    differs: str


class Cleaning(Settings):
    """A paper's rules for cleaning the text of one document."""

    title: str
    where: str
    minimum_pmid: int = 0  # if above 0, citations up to this PMID and documents without one are dropped
    minimum_words: int = 0  # documents with fewer words in their abstract or body are dropped
    minimum_characters: int = 0  # shorter lines are dropped
    one_paragraph: bool = False
    title_joined: bool = True  # the title begins the first paragraph; else it is a line of its own
    sentences: bool = False  # one sentence a line
    segmented: Literal[False, "NFKC, MeCab"] = False  # how Japanese is segmented into words
    differs: str
