"""Tests of abstracts in PubTator form: mentions, what is left out, and printed counts of BC5CDR and NCBI-disease.

test_formats.py tests reading the form and the errors for bad files.
"""

from collections import Counter

import pytest
from conftest import each
from golden import PUBTATOR, write

from lib.benchmarks import conll, counting, pubtator
from lib.benchmarks.instances import Mention, Sentence
from lib.benchmarks.pubtator import Abstract
from lib.errors import StudyError

OVERLAPS = "mentions that overlap a longer one"


def test_mentions_and_sentences_of_one_kind(tmp_path):
    path = write(tmp_path / "set.txt", PUBTATOR)
    mentions = [Mention("D1", "CHEMICAL", 0, 4), Mention("D2", "DISEASE", 9, 13)]
    assert list(pubtator.read_abstracts(path)) == [Abstract("12", "Gold and gout\nIt hurts.", mentions)]
    assert pubtator.read_sentences(path, "Chemical")[0].tags == ["B-Chemical", "O", "O"]
    with pytest.raises(StudyError, match="unknown kind 'Gene'"):
        pubtator.read_sentences(path, "Gene")


@each("kind", ["SpecificDisease", "DiseaseClass", "Modifier", "CompositeMention"])
def test_kinds_of_disease_are_diseases(tmp_path, kind):
    path = write(tmp_path / "set.txt", f"1|t|gout\n1|a|\n1\t0\t4\tgout  \t{kind}\t D2\n")
    assert next(pubtator.read_abstracts(path)).mentions == [Mention("D2", "DISEASE", 0, 4)]


def test_names_of_parts_may_follow(tmp_path):
    text = "1|t|A and B pain\n1|a|\n1\t0\t12\tA and B pain\tDisease\tD1|D2\tA pain|B pain\n"
    path = write(tmp_path / "set.txt", text)
    assert next(pubtator.read_abstracts(path)).mentions == [Mention("D1|D2", "DISEASE", 0, 12)]


def test_the_same_record_twice_is_counted(tmp_path):
    path = write(tmp_path / "set.txt", PUBTATOR * 3)
    assert len(list(pubtator.read_abstracts(path))) == 3
    assert len(pubtator.read_sentences(path, "Disease", left_out := Counter())) == 2
    assert left_out == {"records that come again": 2, OVERLAPS: 0}


def test_overlaps_are_counted(tmp_path):
    text = "1|t|gout pain\n1|a|\n1\t0\t4\tgout\tDisease\tD1\n1\t0\t9\tgout pain\tDisease\tD2\n"
    path = write(tmp_path / "set.txt", text)
    assert pubtator.read_sentences(path, "Disease", left_out := Counter())[0].tags == ["B-Disease", "I-Disease"]
    assert left_out[OVERLAPS] == 1


@each(
    ("name", "counts"),
    [
        ("Training", {"Disease": 4182, "Chemical": 5203}),
        ("Development", {"Disease": 4244, "Chemical": 5347}),
        ("Test", {"Disease": 4424, "Chemical": 5385}),
    ],
)
def test_real_bc5cdr(real_data, name, counts):
    """Mentions are as Gu et al. print (table 3): 4244 diseases in the development set, two fewer than in IOB files."""
    path = real_data / f"ner/bc5cdr-pubtator/CDR_{name}Set.PubTator.txt"
    sentences_by_kind = {kind: pubtator.read_sentences(path, kind, left_out := Counter()) for kind in counts}
    assert {len({s.document for s in sentences}) for sentences in sentences_by_kind.values()} == {500}
    assert {kind: counting.entities(s) for kind, s in sentences_by_kind.items()} == counts
    assert not left_out.total()


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


@each(("name", "count", "mentions"), [("train", 592, 5134), ("develop", 100, 787), ("test", 100, 960)])
def test_real_ncbi_disease(real_data, name, count, mentions):
    """Counts are as Gu et al. print, without the training record of 11 mentions that its file repeats."""
    path = real_data / f"ner/ncbi-disease-pubtator/NCBI{name}set_corpus.txt"
    records = list(pubtator.read_abstracts(path))
    sentences = pubtator.read_sentences(path, "Disease", left_out := Counter())
    repeats = left_out["records that come again"]
    assert (len(records) - repeats, repeats) == (count, name == "train")
    assert sum(len(record.mentions) for record in records) == mentions + 11 * repeats
    assert counting.entities(sentences) == mentions and left_out[OVERLAPS] == 0
