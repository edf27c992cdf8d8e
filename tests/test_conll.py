"""Files with a word and its tag on a line, good and bad; made-up ones of every set; the real files' counts."""

import gzip
import random
import re
from collections import Counter
from functools import partial

import pytest
from conftest import each
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.benchmarks import conll, counting, i2b2, pico, pubtator, shareclef
from lib.benchmarks.instances import Sentence
from lib.errors import StudyError
from lib.made_up import smoke_tagging
from lib.study import texts

read_blocks = partial(texts.read_blocks, breaks=texts.BLOCKS["jnlpba"])
READERS = (conll.read, conll.read_merged, conll.read_pico, read_blocks)
QUICK = settings(max_examples=25, deadline=None)


def read(tmp_path, text: str | bytes, reader=conll.read):
    path = tmp_path / "train.tsv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(reader(path))


def test_reads_sentences(tmp_path):
    sentences = read(tmp_path, "-DOCSTART-\tO\n\nAspirin\tB-Chemical\nhelps\tO\n-DOCSTART-\tO\n\nNo\tO\n")
    assert [s.words for s in sentences] == [["Aspirin", "helps"], ["No"]]
    assert [s.tags for s in sentences] == [["B-Chemical", "O"], ["O"]]
    assert counting.entities(sentences) == 1


def test_marks_with_an_id_name_the_document(tmp_path):
    sentences = read(tmp_path, "no\tO\n\n-DOCSTART- (7)\n\na\tO\n\nb\tO\n-DOCSTART- (8)\nc\tO\n-DOCSTART-\tO\n\nd\tO\n")
    assert [s.document for s in sentences] == ["", "7", "7", "8", ""]


def test_merged_types_leave_the_letter(tmp_path):
    sentences = read(tmp_path, "a\tB-DNA\nb\tI-DNA\nc\tB-cell_line\nd\tO\n", conll.read_merged)
    assert sentences == [Sentence(["a", "b", "c", "d"], ["B", "I", "B", "O"])]


def test_pico_has_four_columns(tmp_path):
    sentences = read(tmp_path, "-DOCSTART- (5)\n\nten NN O I-PAR\nmen NN O O\n\ndied NN O I-OUT\n", conll.read_pico)
    assert sentences == [Sentence(["ten", "men"], ["I-PAR", "O"], "5"), Sentence(["died"], ["I-OUT"], "5")]
    assert counting.entities(sentences) == 0


def test_blocks_count_empty_ones(tmp_path):
    assert read(tmp_path, "-DOCSTART-\tO\n\na\tO\nb\tO\n\nc\tO\n", read_blocks) == ["", "", "a b", "c"]


@each(
    ("text", "message"),
    [
        ("a\tO\nb O\n", r"train\.tsv:2: expected 'word<TAB>tag', .* found 1 column"),
        ("a\tO\nb\tO\tO\n", r":2: .*found 3 column"),
        ("a\tO\n\tO\n", r":2: "),
        ("a\tX-Chemical\n", r":1: .* the tag O, B, I, B-type or I-type; found another tag"),
        *((f"a\t{tag}\n", ":1: .*another tag") for tag in ("E-DNA", "S-DNA", "L-DNA", "U-DNA", "B-", "b", "I_x", "")),
        ("a\tO\nb\tB-Chem", r":2: the last line has no end"),
        ("", "no sentences"),
        ("\n\n", "no sentences"),
        ("-DOCSTART-\tO\n\n", "no sentences"),
        (b"a\tO\n\xff\tO\n", ":2: not UTF-8"),
        (gzip.compress(b"a\tO\n" * 9, mtime=0)[:-12], "cut off or damaged"),
        (gzip.compress(b"a\tO\nb\tO", mtime=0), ":2: the last line has no end"),
    ],
)
def test_malformed_files_name_file_and_line(tmp_path, text, message):
    with pytest.raises(StudyError, match=message):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (conll.read_pico, "secret NN O\n"),
        (conll.read_pico, "secret\tNN\tO\tO\n"),
        (conll.read_pico, "secret NN O B-PAR\n"),
        (conll.read_pico, "secret NN O I-secret\n"),
        (conll.read_pico, "secret NN O I-INT|I-PAR\n"),
        (conll.read, "secret\tX-secret\n"),
        (read_blocks, "secret\n"),
    ],
)
def test_other_forms_are_refused_without_quoting_them(tmp_path, reader, text):
    with pytest.raises(StudyError, match=r"train\.tsv:1: expected") as error:
        read(tmp_path, text, reader)
    assert "secret" not in str(error.value)


words = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=6).filter(
    lambda word: not word.startswith(("-DOCSTART-", "\ufeff"))
)


def sentences(tags: list[str]):
    tokens = st.lists(st.tuples(words, st.sampled_from(tags)), min_size=1, max_size=6)
    document = st.lists(
        tokens.map(lambda pairs: ([word for word, _ in pairs], [tag for _, tag in pairs])), min_size=1, max_size=4
    )
    documents = st.dictionaries(st.integers(1, 10**8).map(str), document, min_size=1, max_size=4)
    return documents.map(lambda found: [Sentence(*pair, pmid) for pmid, pairs in found.items() for pair in pairs])


def written(made: list[Sentence], line: str) -> bytes:
    lines, document = [], ""
    for sentence in made:
        if sentence.document != document:
            document = sentence.document
            lines += [f"-DOCSTART- ({document})", ""]
        lines += [line.format(word, tag) for word, tag in zip(sentence.words, sentence.tags, strict=True)] + [""]
    return ("\n".join(lines) + "\n").encode()


@QUICK
@given(st.data(), st.booleans())
def test_what_is_written_is_read(tmp_path_factory, data, packed):
    form = data.draw(st.sampled_from(["plain", "pico"]))
    tags = {"plain": ["O", "B", "I", "B-x"], "pico": ["O", "I-PAR", "I-INT"]}
    reader = {"plain": conll.read, "pico": conll.read_pico}[form]
    made = data.draw(sentences(tags[form]))
    content = written(made, "{} NN O {}" if form == "pico" else "{}\t{}")
    assert read(tmp_path_factory.mktemp("a"), gzip.compress(content) if packed else content, reader) == made


@QUICK
@given(st.sampled_from(READERS), st.binary(max_size=60) | st.integers(0, 80))
def test_any_bytes_give_sentences_or_a_study_error(tmp_path_factory, reader, content):
    if isinstance(content, int):
        content = gzip.compress(b"a\tB-DNA\nb NN O O\n\n-DOCSTART- (3)\nc\tO\n" * 3)[:content]
    try:
        assert isinstance(read(tmp_path_factory.mktemp("a"), content, reader), list)
    except StudyError as error:
        assert re.search(r"train\.tsv", str(error))


NAMES = {kind: [f"{kind}{i}" for i in range(9)] for kind in ("drug", "disease", "device", "place")}


def test_made_up_sets_are_the_same_each_time_and_all_readable(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        smoke_tagging.write(folder, random.Random(3), NAMES)
    files = [{p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in folders]
    assert files[0] == files[1]
    ner = folders[0] / "ner"
    for name in ("bc5cdr-disease", "bc2gm", "linnaeus", "s800", "bc4chemd", "jnlpba-biobert", "jnlpba"):
        for split in ("train", "dev", "test"):
            found = list(conll.read(next((ner / name).glob(f"{split}.tsv*"))))
            assert len(found) == 60
            assert counting.entities(found) > 10
    types = {tag[2:] for s in conll.read(ner / "jnlpba/train.tsv.gz") for tag in s.tags if tag != "O"}
    assert types == {"protein", "DNA", "RNA", "cell_type", "cell_line"}
    scibert = {split: list(conll.read_pico(ner / f"ebm-nlp/{split}.txt")) for split in ("train", "dev", "test")}
    for split, found in scibert.items():
        original = pico.read(ner / "ebm-nlp-original", split)
        assert {s.document for s in original} == {s.document for s in found}
        assert counting.element_words(original)["INT"] == counting.element_words(found)["INT"] > 10
        assert any("|" in tag for s in original for tag in s.tags)
    for path, kind, repeats in (
        (ner / "bc5cdr-pubtator/CDR_DevelopmentSet.PubTator.txt", "Chemical", 0),
        (ner / "ncbi-disease-pubtator/NCBItrainset_corpus.txt", "Disease", 1),
    ):
        found = pubtator.read_sentences(path, kind, left_out := Counter())
        assert counting.entities(found) > 10 and left_out["records that come again"] == repeats
    training = [ner / "i2b2-2010/concept_assertion_relation_training_data" / site for site in ("beth", "partners")]
    assert len(i2b2.read_concepts(*training)) == 120
    test = [ner / "i2b2-2010" / name for name in ("test_data", "reference_standard_for_test_data")]
    assert len(i2b2.read_concepts(*test)) == 60
    labels = {relation.label for relation in i2b2.read_relations(*training)}
    assert labels == {"TeRP", "TrAP", "PIP", "false"}
    clef = {split: [folders[0] / name for name in names] for split, names in shareclef.FILES.items()}
    documents = {split: {s.document for s in shareclef.read(*files)} for split, files in clef.items()}
    assert {split: len(names) for split, names in documents.items()} == {"train": 7, "dev": 3, "test": 10}
    assert not documents["train"] & documents["dev"]
    mentions = {
        split: [mention for _, found in shareclef.read_notes(*clef[split]).values() for mention in found]
        for split in ("train", "test")
    }
    assert any(len(mention.spans) == 2 for mention in mentions["train"])
    assert counting.entities(shareclef.read(*clef["test"])) == len(mentions["test"]) > 10


@pytest.mark.parametrize(
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
    """Counts measured when the files were collected, with another program; JNLPBA's mentions as Gu et al. print."""
    files = [next((real_data / "ner" / key).glob(f"{split}.tsv*")) for split in ("train", "dev", "test")]
    splits = [list(conll.read_merged(path)) for path in files]
    assert tuple(map(len, splits)) == counts
    assert tuple(map(counting.entities, splits)) == mentions


def read_original(path) -> list[list[list[str]]]:
    """The sentences of JNLPBA's own files, a word and its tag each, without the marks of documents."""
    text = path.read_bytes()
    text = (gzip.decompress(text) if path.suffix == ".gz" else text).decode()
    blocks = [[line.split("\t") for line in block.split("\n") if line] for block in text.split("\n\n")]
    return [block for block in blocks if block and not block[0][0].startswith("###MEDLINE:")]


def test_real_jnlpba_is_the_original_divided(real_data):
    folder = real_data / "ner/jnlpba"
    found = list(conll.read(folder / "test.tsv"))
    whole = read_original(folder / "original/Genia4EReval1.iob2")
    assert bool([[list(pair) for pair in zip(s.words, s.tags, strict=True)] for s in found] == whole)
    assert (len(found), counting.entities(found)) == (3856, 8662)
    training = read_original(folder / "original/Genia4ERtask1.iob2.gz")
    mentions = sum(tag.startswith("B") for sentence in training for _, tag in sentence)
    assert (len(training), mentions) == (16807 + 1739, 46750 + 4551)


def test_real_pico_words(real_data):
    folder = real_data / "ner/ebm-nlp"
    for name, count, documents, expected in (
        ("dev.txt.gz", 7049, 960, {"INT": 25218, "PAR": 30382, "OUT": 32313}),
        ("test.txt", 2064, 191, {"INT": 2710, "PAR": 4060, "OUT": 5138}),
    ):
        found = list(conll.read_pico(folder / name))
        assert (len(found), len({s.document for s in found})) == (count, documents)
        assert counting.element_words(found) == expected
