"""Abstracts in PubTator form: made by hand, at random, and BC5CDR and NCBI-disease with the papers' counts."""

import gzip
from collections import Counter

import pytest
from conftest import each
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.benchmarks import conll, counting, pubtator
from lib.benchmarks.instances import Mention, Sentence
from lib.benchmarks.pubtator import Abstract
from lib.errors import StudyError

OVERLAPS = "mentions that overlap a longer one"
GOOD = (
    "12|t|Gold and gout\n12|a|It hurts.\n"
    "12\t0\t4\tGold\tChemical\tD1\n12\t9\t13\tgout\tDisease\tD2\n12\tCID\tD1\tD2\n\n"
)


def write(tmp_path, content: str | bytes):
    path = tmp_path / "set.txt"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_reads_a_record(tmp_path):
    assert list(pubtator.read(write(tmp_path, GOOD))) == [
        Abstract(
            "12",
            "Gold and gout\nIt hurts.",
            [Mention("D1", "CHEMICAL", 0, 4), Mention("D2", "DISEASE", 9, 13)],
        )
    ]


def test_sentences_of_one_kind(tmp_path):
    path = write(tmp_path, GOOD)
    assert pubtator.read_sentences(path, "Chemical") == [
        Sentence(["Gold", "and", "gout"], ["B-Chemical", "O", "O"], "12"),
        Sentence(["It", "hurts", "."], ["O"] * 3, "12"),
    ]
    assert counting.entities(pubtator.read_sentences(path, "Disease")) == 1


@pytest.mark.parametrize("kind", ["SpecificDisease", "DiseaseClass", "Modifier", "CompositeMention"])
def test_kinds_of_disease_are_diseases(tmp_path, kind):
    path = write(tmp_path, f"1|t|gout\n1|a|\n1\t0\t4\tgout  \t{kind}\t D2\n")
    assert next(pubtator.read(path)).mentions == [Mention("D2", "DISEASE", 0, 4)]


def test_names_of_parts_may_follow(tmp_path):
    path = write(tmp_path, "1|t|A and B pain\n1|a|\n1\t0\t12\tA and B pain\tDisease\tD1|D2\tA pain|B pain\n")
    assert next(pubtator.read(path)).mentions == [Mention("D1|D2", "DISEASE", 0, 12)]


def test_the_same_record_twice_is_counted(tmp_path):
    path = write(tmp_path, GOOD * 3)
    assert len(list(pubtator.read(path))) == 3
    assert len(pubtator.read_sentences(path, "Disease", left_out := Counter())) == 2
    assert left_out == {"records that come again": 2, OVERLAPS: 0}


def test_two_records_of_one_pmid_that_differ(tmp_path):
    path = write(tmp_path, GOOD + GOOD.replace("It hurts", "It helps"))
    with pytest.raises(StudyError, match="two different records of PMID 12"):
        pubtator.read_sentences(path, "Disease")


def test_overlaps_are_counted(tmp_path):
    path = write(tmp_path, "1|t|gout pain\n1|a|\n1\t0\t4\tgout\tDisease\tD1\n1\t0\t9\tgout pain\tDisease\tD2\n")
    assert pubtator.read_sentences(path, "Disease", left_out := Counter())[0].tags == ["B-Disease", "I-Disease"]
    assert left_out[OVERLAPS] == 1


def test_unknown_kind(tmp_path):
    with pytest.raises(StudyError, match="unknown kind 'Gene'"):
        pubtator.read_sentences(write(tmp_path, GOOD), "Gene")


HEAD = "1|t|secret\n1|a|\n"


@each(
    ("content", "message"),
    [
        ("", "no abstracts"),
        ("\n\n", "no abstracts"),
        ("1|t|secret\n", "set.txt:1: expected 'PMID|t|title'"),
        ("1|a|secret\n1|t|secret\n", ":1: expected 'PMID"),
        ("1|t|secret\n2|a|secret\n", ":1: .* of one PMID"),
        ("secret\n", ":1: expected"),
        (HEAD + "2\t0\t6\tsecret\tDisease\tD1\n", ":3: expected a line of PMID 1"),
        (HEAD + "1\t0\t6\tsecret\tDisease\n", ":3: expected a mention of 6 or 7 columns"),
        (HEAD + "1\tsecret\tD1\tD2\n", ":3: expected a mention"),
        (HEAD + "1\t0\t6\tsecret\tsecret\tD1\n", ":3: expected two offsets and a type"),
        (HEAD + "1\t-1\t6\tsecret\tDisease\tD1\n", ":3: expected two offsets"),
        (HEAD + f"1\t0\t{'9' * 5000}\tsecret\tDisease\tD1\n", ":3: expected two offsets"),
        (HEAD + "1\t1\t6\tsecret\tDisease\tD1\n", ":3: PMID 1 has another text at 1 to 6"),
        (HEAD + "1\t6\t6\t\tDisease\tD1\n", ":3: PMID 1 has another text at 6 to 6"),
        (HEAD + 2 * "1\t0\t6\tsecret\tDisease\tD1\n", ":4: the mention at 0 to 6 is there twice"),
        (HEAD + "1\t0\t6\tsecret\tDisease\tD1", ":3: the last line has no end"),
        (b"1|t|\xff\n", ":1: not UTF-8"),
        (gzip.compress(GOOD.encode(), mtime=0)[:-9], "cut off or damaged"),
    ],
)
def test_malformed_files_name_file_and_line_and_quote_nothing(tmp_path, content, message):
    with pytest.raises(StudyError, match=message) as error:
        list(pubtator.read(write(tmp_path, content)))
    assert "secret" not in str(error.value)


line = st.text(st.characters(categories=("L", "N", "P", "Zs")), min_size=1, max_size=12).filter(lambda t: t.strip())


@st.composite
def abstracts(draw) -> Abstract:
    title = draw(line)
    places = draw(st.sets(st.tuples(st.integers(0, len(title) - 1), st.sampled_from(["CHEMICAL", "DISEASE"]))))
    mentions = [Mention("D1", kind, start, len(title)) for start, kind in sorted(places)]
    return Abstract(str(draw(st.integers(1, 10**8))), f"{title}\n{draw(line)}", mentions)


def written(made: list[Abstract]) -> bytes:
    records = []
    for a in made:
        title, abstract = a.text.split("\n")
        lines = [f"{a.pmid}|t|{title}", f"{a.pmid}|a|{abstract}"]
        for m in a.mentions:
            lines.append(f"{a.pmid}\t{m.start}\t{m.end}\t{a.text[m.start : m.end]}\t{m.kind.capitalize()}\t{m.id}")
        lines += [f"{a.pmid}\tCID\tD1\tD2"] * (len(a.mentions) % 2)
        records.append("\n".join(lines) + "\n")
    return "\n".join(records).encode()


@settings(max_examples=25, deadline=None)
@given(st.lists(abstracts(), min_size=1, max_size=4))
def test_what_is_written_is_read(tmp_path_factory, made):
    assert list(pubtator.read(write(tmp_path_factory.mktemp("a"), written(made)))) == made


@settings(max_examples=25, deadline=None)
@given(st.integers(0, len(GOOD)), st.binary(max_size=8), st.booleans())
def test_any_bytes_give_abstracts_or_a_study_error(tmp_path_factory, kept, more, packed):
    content = gzip.compress(GOOD.encode())[:kept] if packed else GOOD.encode()[:kept] + more
    try:
        assert pubtator.read_sentences(write(tmp_path_factory.mktemp("a"), content), "Disease")
    except StudyError as error:
        assert "set.txt" in str(error) or "document 12" in str(error)


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("Training", {"Disease": 4182, "Chemical": 5203}),
        ("Development", {"Disease": 4244, "Chemical": 5347}),
        ("Test", {"Disease": 4424, "Chemical": 5385}),
    ],
)
def test_real_bc5cdr(real_data, name, counts):
    """Mentions as Gu et al. print them (table 3): in the development set 4244 diseases, two fewer than in IOB files."""
    path = real_data / f"ner/bc5cdr-pubtator/CDR_{name}Set.PubTator.txt"
    found = {kind: pubtator.read_sentences(path, kind, left_out := Counter()) for kind in counts}
    assert {len({s.document for s in sentences}) for sentences in found.values()} == {500}
    assert {kind: counting.entities(s) for kind, s in found.items()} == counts
    assert not left_out.total()


def spell_mentions(sentences: list[Sentence]) -> Counter[str]:
    """Mentions without spaces, as words are cut differently in other files."""
    found = []
    for sentence in sentences:
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            if tag[0] == "B":
                found.append(word)
            elif tag[0] == "I":
                found[-1] += word
    return Counter(found)


@pytest.mark.parametrize(
    ("pubtator_file", "iob_file", "kind", "only_here", "only_there"),
    [
        ("bc5cdr-pubtator/CDR_DevelopmentSet.PubTator.txt", "bc5cdr-chem/dev.tsv", "Chemical", 10, 10),
        ("bc5cdr-pubtator/CDR_TrainingSet.PubTator.txt", "bc5cdr-chem/train.tsv", "Chemical", 0, 0),
        ("bc5cdr-pubtator/CDR_DevelopmentSet.PubTator.txt", "bc5cdr-disease/dev.tsv", "Disease", 2, 4),
        ("ncbi-disease-pubtator/NCBItestset_corpus.txt", "ncbi-disease/test.tsv", "Disease", 0, 0),
    ],
)
def test_real_mentions_are_those_of_the_iob_files(real_data, pubtator_file, iob_file, kind, only_here, only_there):
    """But for what the IOB files of BC5CDR's development set do: two diseases are cut in two, at a sentence end after
    "St.", and ten chemicals have the rest of a word too, of which the corpus marks a part."""
    here = spell_mentions(pubtator.read_sentences(real_data / "ner" / pubtator_file, kind))
    there = spell_mentions(list(conll.read(real_data / "ner" / iob_file)))
    assert ((here - there).total(), (there - here).total()) == (only_here, only_there)


@pytest.mark.parametrize(
    ("name", "count", "mentions"), [("train", 592, 5134), ("develop", 100, 787), ("test", 100, 960)]
)
def test_real_ncbi_disease(real_data, name, count, mentions):
    """The training set without the record that its file has twice, with 11 mentions; counts as Gu et al. print them."""
    path = real_data / f"ner/ncbi-disease-pubtator/NCBI{name}set_corpus.txt"
    records = list(pubtator.read(path))
    sentences = pubtator.read_sentences(path, "Disease", left_out := Counter())
    repeats = left_out["records that come again"]
    assert (len(records) - repeats, repeats) == (count, name == "train")
    assert sum(len(record.mentions) for record in records) == mentions + 11 * repeats
    assert counting.entities(sentences) == mentions and left_out[OVERLAPS] == 0
