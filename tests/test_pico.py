"""EBM-NLP's own release, on a tree written here: the real one is at hand only in SciBERT's form."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.benchmarks import counting, pico
from lib.benchmarks.instances import Sentence
from lib.errors import StudyError

SHORT = {"PAR": "participants", "INT": "interventions", "OUT": "outcomes"}


def write(
    folder: Path, pmid: str, words: str, split="train", name="{}.AGGREGATED.ann", glue="\n", **labels: str
) -> Path:
    """One abstract, `labels` with a digit for each word."""
    write_text(folder / f"documents/{pmid}.tokens", glue.join(words.split()))
    for short in labels:
        place = folder / "annotations/aggregated/starting_spans" / SHORT[short] / split
        write_text(place / name.format(pmid), glue.join(labels[short]))
    return folder


def write_text(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


def write_release(folder: Path) -> Path:
    write(folder, "9", "ten men . given gold died .", INT="0000100", PAR="1101110", OUT="0000011")
    write(folder, "10", "secret", INT="0", PAR="0", OUT="1")
    return write(folder, "11", "test .", "test/gold", INT="10", PAR="00", OUT="00")


def test_reads_words_of_several_elements(tmp_path):
    folder = write_release(tmp_path)
    assert pico.read(folder, "train") == [
        Sentence(["ten", "men", "."], ["I-PAR", "I-PAR", "O"], "9"),
        Sentence(["given", "gold", "died", "."], ["I-PAR", "I-INT|I-PAR", "I-OUT|I-PAR", "I-OUT"], "9"),
        Sentence(["secret"], ["I-OUT"], "10"),
    ]
    assert pico.read(folder, "test") == [Sentence(["test", "."], ["I-INT", "O"], "11")]
    assert counting.element_words(pico.read(folder, "train")) == {"PAR": 5, "INT": 1, "OUT": 3}


def test_dev_is_a_list_from_outside(tmp_path):
    folder = write_release(tmp_path)
    assert {s.document for s in pico.read(folder, "dev", ["10"])} == {"10"}
    assert {s.document for s in pico.read(folder, "train", ["10"])} == {"9"}
    assert {s.document for s in pico.read(folder, "test", ["10"])} == {"11"}
    with pytest.raises(StudyError, match="PMID 11 of dev is no training abstract"):
        pico.read(folder, "train", ["10", "11"])
    with pytest.raises(StudyError, match="no abstracts in dev"):
        pico.read(folder, "dev")
    write_text(folder / "dev.txt", "10\n\n")
    assert pico.read(folder, "dev") == pico.read(folder, "dev", ["10"])
    assert pico.read(folder, "train") == pico.read(folder, "train", ["10"])


def test_release_1_has_other_names_and_commas(tmp_path):
    write(tmp_path, "9", "a b", name="{}_AGGREGATED.ann", glue=",", INT="01", PAR="00", OUT="00")
    write_text(tmp_path / "documents/9.tokens", "a b \n")
    write(tmp_path, "11", "b", "test/gold", INT="1", PAR="0", OUT="0")
    assert pico.read(tmp_path, "train") == [Sentence(["a", "b"], ["O", "I-INT"], "9")]


def test_abstracts_that_are_left_out_are_counted(tmp_path):
    folder = write_release(tmp_path)
    write(folder, "8", "a", INT="1", PAR="0")
    write(folder, "11", "test .", INT="10", PAR="00", OUT="00")
    found = pico.read(folder, "train", left_out=(left_out := Counter()))
    assert {s.document for s in found} == {"9", "10"}
    assert list(left_out.values()) == [1, 1]  # 8 has no outcomes, 11 is in the test set
    pico.read(folder, "test", left_out=(left_out := Counter()))
    assert not left_out.total()


LABELS = "annotations/aggregated/starting_spans/outcomes"


@pytest.mark.parametrize(
    ("place", "content", "message"),
    [
        ("documents/10.tokens", "", r"10\.tokens: empty file"),
        ("documents/10.tokens", " \n", r"10\.tokens: empty file"),
        ("documents/10.tokens", b"\xff", r"10\.tokens:1: not UTF-8"),
        ("documents/10.tokens", None, r"no file .*10\.tokens"),
        ("documents/10.tokens", "secret secret", "1 labels for 2 words"),
        (f"{LABELS}/train/10.AGGREGATED.ann", "", r"10\.AGGREGATED\.ann: empty file"),
        (f"{LABELS}/train/10.AGGREGATED.ann", "0 1", "2 labels for 1 words"),
        (f"{LABELS}/train/10.AGGREGATED.ann", "secret", "expected labels 0 to 9"),
        (f"{LABELS}/train/10.AGGREGATED.ann", b"\x1f\x8b\x08", "cut off or damaged"),
        (f"{LABELS}/train/10_AGGREGATED.ann", "0", "two files of one PMID"),
        (f"{LABELS}/test/gold/11.AGGREGATED.ann", None, "no labels in gold"),
    ],
)
def test_malformed_releases_name_the_file_and_quote_nothing(tmp_path, place, content, message):
    folder = write_release(tmp_path)
    if content is None:
        (folder / place).unlink()
    else:
        write_text(folder / place, content)
    with pytest.raises(StudyError, match=message) as error:
        pico.read(folder, "train")
    assert "secret" not in str(error.value)


def test_unknown_split(tmp_path):
    with pytest.raises(StudyError, match="unknown split 'devel'"):
        pico.read(tmp_path, "devel")


word = st.tuples(st.text("ab.\u00a0", min_size=1, max_size=3), st.sets(st.sampled_from(["INT", "OUT", "PAR"])))
document = st.lists(word, min_size=1, max_size=12)


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.integers(1, 10**8), document, min_size=1, max_size=3))
def test_what_is_written_is_read(tmp_path_factory, documents):
    folder = write(tmp_path_factory.mktemp("a"), "0", "a", "test/gold", INT="1", PAR="0", OUT="0")
    for pmid, pairs in documents.items():
        labels = {short: "".join("01"[short in elements] for _, elements in pairs) for short in SHORT}
        write(folder, str(pmid), "a", **labels)
        write_text(folder / f"documents/{pmid}.tokens", "\n".join(text for text, _ in pairs))
    found = pico.read(folder, "train")
    assert [s.document for s in found] == sorted((s.document for s in found), key=int)
    for pmid, pairs in documents.items():
        of_one = [s for s in found if s.document == str(pmid)]
        tags = ["|".join(f"I-{short}" for short in sorted(elements)) or "O" for _, elements in pairs]
        assert [word for s in of_one for word in s.words] == [text for text, _ in pairs]
        assert [tag for s in of_one for tag in s.tags] == tags
        assert all("." not in s.words[:-1] for s in of_one)
        assert all(s.words[-1] == "." for s in of_one[:-1])


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["documents/10.tokens", f"{LABELS}/train/10.AGGREGATED.ann"]), st.binary(max_size=6))
def test_any_bytes_give_sentences_or_a_study_error(tmp_path_factory, place, content):
    folder = write_release(tmp_path_factory.mktemp("a"))
    write_text(folder / place, content)
    try:
        assert len(pico.read(folder, "train")) >= 3
    except StudyError as error:
        assert "10." in str(error)
