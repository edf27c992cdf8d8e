"""Tests of files with a word and its tag a line: documents, made-up files of tagged datasets, counts of real files.

test_formats.py tests reading each form and the errors for bad files.
"""

import gzip
from functools import partial

import pytest
from conftest import each
from golden import write
from notebook_code import definitions

from lib.benchmarks import conll, counting, pico, shareclef
from lib.errors import StudyError
from lib.study import paths

PAGE = definitions("22_input_lengths", "BLOCKS")
read_blocks = partial(PAGE.read_blocks, breaks=PAGE.BLOCKS["jnlpba"])


def test_marks_with_an_id_name_the_document(tmp_path):
    text = "no\tO\n\n-DOCSTART- (7)\n\na\tO\n\nb\tO\n-DOCSTART- (8)\nc\tO\n-DOCSTART-\tO\n\nd\tO\n"
    assert [sentence.document for sentence in conll.read_conll(write(tmp_path / "a", text))] == ["", "7", "7", "8", ""]


def test_a_comment_has_other_columns_than_the_rows(tmp_path):
    path = tmp_path / "a"
    for text in ("# a comment\na\tO\n# B_D\n#\n#\tO\n", "# a comment\na O\n# one more comment\n#\n# O\n"):
        assert [sentence.words for sentence in conll.read_conll(write(path, text))] == [["a", "#"]]
    for text in ("a\tO\n#\tB_D\nb\tO\n", "#\tB_D\na\tO\n", "a O\n# B_D\n"):
        with pytest.raises(StudyError, match=r"^a:[12]: .*another tag"):
            list(conll.read_conll(write(path, text)))
    with pytest.raises(StudyError, match="^a:2: "):
        list(conll.read_pico(write(path, "a NN O O\n# a comment\n")))


def test_a_type_that_was_cut_is_refused(tmp_path):
    whole = "a\tB-Disease\nb\tI-Disease"
    for text in (whole, "a\tB-X\n", whole[:-4] + "\n", "a\tO", "a\tB-X\n\nb\tB-X\nc\tU-X"):
        assert list(conll.read_conll(write(tmp_path / "a", text)))
    for cut in (4, 8):  # I-Dis, I
        with pytest.raises(StudyError, match="^a:2: .*cut off"):
            list(conll.read_conll(write(tmp_path / "a", whole[:-cut])))


def test_blocks_count_empty_ones(tmp_path):
    path = write(tmp_path / "a", "-DOCSTART-\tO\n\na\tO\nb\tO\n\nc\tO\n")
    assert list(read_blocks(path)) == ["", "", "a b", "c"]
    with pytest.raises(StudyError, match=r"^a:1: expected (?!.*secret)"):
        list(read_blocks(write(path, "secret\n")))


def test_made_up_forms_of_ebm_nlp_agree():
    for split in ("train", "dev", "test"):
        instances = list(conll.read_pico(paths.MADE_UP / f"ner/ebm-nlp/{split}.txt"))
        original = pico.read_elements(paths.MADE_UP / "ner/ebm-nlp-original", split)
        assert {sentence.document for sentence in original} == {sentence.document for sentence in instances}
        assert counting.element_words(original)["INT"] == counting.element_words(instances)["INT"] > 10
        assert any("|" in tag for sentence in original for tag in sentence.tags)


def test_made_up_notes_of_share_clef_are_divided():
    files = {split: [paths.MADE_UP / name for name in names] for split, names in shareclef.FILES.items()}
    documents = {
        split: {sentence.document for sentence in shareclef.read_disorders(*names)} for split, names in files.items()
    }
    assert {split: len(names) for split, names in documents.items()} == {"train": 7, "dev": 3, "test": 10}
    assert not documents["train"] & documents["dev"]


@each(
    ("key", "counts", "mentions"),
    [
        ("bc5cdr-chem", (4560, 4581, 4797), (5203, 5347, 5385)),
        ("bc5cdr-disease", (4560, 4581, 4797), (4182, 4246, 4424)),
        ("ncbi-disease", (5424, 923, 940), (5134, 787, 960)),
        ("bc2gm", (12574, 2519, 5038), (15197, 3061, 6325)),
        ("linnaeus", (11935, 4078, 7142), (2119, 711, 1433)),
        ("s800", (5733, 830, 1630), (2557, 384, 767)),
        ("jnlpba", (16807, 1739, 3856), (46750, 4551, 8662)),
        ("jnlpba-biobert", (14690, 3856, 3856), (32178, 8575, 6241)),
    ],
)
def test_real_counts(real_data, key, counts, mentions):
    """Another program counted these when the files were collected; JNLPBA's mentions are as Gu et al. print."""
    files = [next((real_data / "ner" / key).glob(f"{split}.tsv*")) for split in ("train", "dev", "test")]
    splits = [list(conll.read_merged(path)) for path in files]
    assert tuple(map(len, splits)) == counts
    assert tuple(map(counting.entities, splits)) == mentions


def read_original(path) -> list[list[list[str]]]:
    """Return the sentences of JNLPBA's original files as [word, tag] pairs, without the document marks."""
    text = path.read_bytes()
    text = (gzip.decompress(text) if path.suffix == ".gz" else text).decode()
    blocks = [[line.split("\t") for line in block.split("\n") if line] for block in text.split("\n\n")]
    return [block for block in blocks if block and not block[0][0].startswith("###MEDLINE:")]


def test_real_jnlpba_is_the_original_divided(real_data):
    folder = real_data / "ner/jnlpba"
    sentences = list(conll.read_conll(folder / "test.tsv"))
    original = read_original(folder / "original/Genia4EReval1.iob2")
    assert bool(
        [[list(pair) for pair in zip(example.words, example.tags, strict=True)] for example in sentences] == original
    )
    assert (len(sentences), counting.entities(sentences)) == (3856, 8662)
    training = read_original(folder / "original/Genia4ERtask1.iob2.gz")
    mentions = sum(tag.startswith("B") for sentence in training for _, tag in sentence)
    assert (len(training), mentions) == (16807 + 1739, 46750 + 4551)


def test_real_pico_words(real_data):
    folder = real_data / "ner/ebm-nlp"
    for name, count, documents, expected in (
        ("dev.txt.gz", 7049, 960, {"INT": 25218, "PAR": 30382, "OUT": 32313}),
        ("test.txt", 2064, 191, {"INT": 2710, "PAR": 4060, "OUT": 5138}),
    ):
        sentences = list(conll.read_pico(folder / name))
        assert (len(sentences), len({sentence.document for sentence in sentences})) == (count, documents)
        assert counting.element_words(sentences) == expected
