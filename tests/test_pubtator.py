"""Tests of abstracts in PubTator form: mentions, what is left out, and real mentions against the IOB files.

test_formats.py tests reading the form and the errors for bad files.
"""

from collections import Counter

from conftest import each
from golden import PUBTATOR, write

from lib.benchmarks import conll, pubtator
from lib.benchmarks.instances import Mention, Sentence
from lib.benchmarks.pubtator import Abstract

OVERLAPS = "mentions that overlap a longer one"


def test_mentions_and_sentences_of_one_kind(tmp_path):
    path = write(tmp_path / "set.txt", PUBTATOR)
    mentions = [Mention("D1", "CHEMICAL", 0, 4), Mention("D2", "DISEASE", 9, 13)]
    assert list(pubtator.read_abstracts(path)) == [Abstract("12", "Gold and gout\nIt hurts.", mentions)]
    assert pubtator.read_sentences(path, "Chemical")[0].tags == ["B-Chemical", "O", "O"]


def test_ncbi_has_several_types_of_disease_trailing_spaces_and_names_of_parts(tmp_path):
    lines = [
        "1\t0\t12\tA and B pain\tCompositeMention\tD1|D2\tA pain|B pain",
        "1\t13\t17\tgout  \tModifier\t D2",
    ]
    path = write(tmp_path / "set.txt", "1|t|A and B pain\n1|a|gout\n" + "".join(f"{line}\n" for line in lines))
    assert next(pubtator.read_abstracts(path)).mentions == [
        Mention("D1|D2", "DISEASE", 0, 12), Mention("D2", "DISEASE", 13, 17),
    ]  # fmt: skip


def test_repeated_records_and_overlaps_are_left_out_and_counted(tmp_path):
    path = write(tmp_path / "set.txt", PUBTATOR * 3)
    assert len(list(pubtator.read_abstracts(path))) == 3
    assert len(pubtator.read_sentences(path, "Disease", left_out := Counter())) == 2
    assert left_out == {"records that come again": 2, OVERLAPS: 0}
    text = "1|t|gout pain\n1|a|\n1\t0\t4\tgout\tDisease\tD1\n1\t0\t9\tgout pain\tDisease\tD2\n"
    (sentence,) = pubtator.read_sentences(write(path, text), "Disease", left_out)
    assert sentence.tags == ["B-Disease", "I-Disease"] and left_out[OVERLAPS] == 1


def spell_mentions(sentences: list[Sentence]) -> Counter[str]:
    """Count mentions spelt without spaces, because other files tokenize differently."""
    mentions = []
    for sentence in sentences:
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            if tag[0] == "B":
                mentions.append(word)
            elif tag[0] == "I":
                mentions[-1] += word
    return Counter(mentions)


@each(
    ("pubtator_file", "iob_file", "kind", "only_here", "only_there"),
    [
        ("bc5cdr-pubtator/CDR_DevelopmentSet.PubTator.txt", "bc5cdr-chem/dev.tsv", "Chemical", 10, 10),
        ("bc5cdr-pubtator/CDR_TrainingSet.PubTator.txt", "bc5cdr-chem/train.tsv", "Chemical", 0, 0),
        ("bc5cdr-pubtator/CDR_DevelopmentSet.PubTator.txt", "bc5cdr-disease/dev.tsv", "Disease", 2, 4),
        ("ncbi-disease-pubtator/NCBItestset_corpus.txt", "ncbi-disease/test.tsv", "Disease", 0, 0),
    ],
)
def test_real_mentions_are_those_of_the_iob_files(real_data, pubtator_file, iob_file, kind, only_here, only_there):
    """Only BC5CDR's development set differs.

    Its IOB files cut two diseases in two, at a sentence end after "St.", and extend ten chemicals to the whole word
    of which the corpus marks a part.
    """
    from_pubtator = spell_mentions(pubtator.read_sentences(real_data / "ner" / pubtator_file, kind))
    from_iob = spell_mentions(list(conll.read_conll(real_data / "ner" / iob_file)))
    assert ((from_pubtator - from_iob).total(), (from_iob - from_pubtator).total()) == (only_here, only_there)
