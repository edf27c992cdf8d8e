"""Reading CoNLL files, good and bad; what is registered; the real files' counts."""

import pytest

from lib import conll, datasets
from lib.errors import StudyError


def read(tmp_path, text: str | bytes):
    path = tmp_path / "train.tsv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(conll.read(path))


def test_reads_sentences(tmp_path):
    sentences = read(tmp_path, "-DOCSTART-\tO\n\nAspirin\tB-Chemical\nhelps\tO\n-DOCSTART-\tO\n\nNo\tO\n")
    assert [s.words for s in sentences] == [["Aspirin", "helps"], ["No"]]
    assert [s.tags for s in sentences] == [["B-Chemical", "O"], ["O"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tO\nb O\n", r"train\.tsv:2: expected 'word<TAB>tag', found 1 column"),
        ("a\tO\nb\tO\tO\n", r":2: .*found 3 column"),
        ("a\tO\n\tO\n", r":2: "),
        ("a\tX-Chemical\n", r":1: tag 'X-Chemical' is not O, B, I"),
        ("a\tO\nb\tB-Chem", r":2: the last line has no end"),
        ("", "no sentences"),
        ("\n\n", "no sentences"),
        (b"a\tO\n\xff\tO\n", "not UTF-8"),
    ],
)
def test_malformed_files_name_file_and_line(tmp_path, text, message):
    with pytest.raises(StudyError, match=message):
        read(tmp_path, text)


def test_unknown_dataset_names_the_nearest():
    with pytest.raises(StudyError, match="unknown dataset 'ncbi-diseases': did you mean ncbi-disease"):
        datasets.lookup("ncbi-diseases")


def test_missing_data_are_a_reason_not_a_crash(monkeypatch, tmp_path):
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    assert datasets.why_not("bc2gm", "laptop").startswith("data not at hand")
    with pytest.raises(StudyError, match="no file"):
        datasets.load("bc2gm", "test", "laptop")


@pytest.mark.parametrize(
    ("key", "sentences", "mentions"),
    [
        ("bc5cdr-chem", (4560, 4581, 4797), (5203, 5347, 5385)),
        ("bc5cdr-disease", (4560, 4581, 4797), (4182, 4246, 4424)),
        ("ncbi-disease", (5424, 923, 940), (5134, 787, 960)),
        ("bc2gm", (12574, 2519, 5038), (15197, 3061, 6325)),
        ("linnaeus", (11935, 4078, 7142), (2119, 711, 1433)),
        ("s800", (5733, 830, 1630), (2557, 384, 767)),
    ],
)
def test_real_counts(real_data, key, sentences, mentions):
    """Counts measured when the files were collected, with another program."""
    splits = [datasets.load(key, split, "laptop") for split in datasets.SPLITS]
    assert tuple(map(len, splits)) == sentences
    assert tuple(map(conll.count_mentions, splits)) == mentions
