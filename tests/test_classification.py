"""Documents and their labels: every format read as written, archives that are not what they should be refused."""

import csv
import gzip
import io
import random
import tarfile
from collections import Counter, defaultdict
from functools import partial

import pytest
from conftest import each
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.benchmarks import hallmarks, tables
from lib.benchmarks.datasets import take_fold
from lib.benchmarks.instances import Labelled
from lib.errors import StudyError
from lib.made_up import smoke_language, smoke_texts
from lib.reading import find_file, read_columns

FEW = settings(max_examples=25, deadline=None, derandomize=True)
SECRET = "Zebrafish"  # stands in every bad file; no message may quote it
FILES = {
    "README.md": "left alone",
    "text/1.txt": "One .\nTwo .\nThree .\n",
    "labels/1.txt": "<Resisting cell death--Apoptosis ANDCellular energetics< <Resisting cell death--Necrosis--More ",
    "text/2.txt": "Four .\n",
    "labels/2.txt": "< NULL",
}
DOCUMENTS = [Labelled("2", ("Four .",), ()),
             Labelled("1", ("One .", "Two .", "Three ."), ("cellular energetics", "cell death"))]  # fmt: skip
JMED = (
    'tag,question,optionA,optionB,answer\nfever,"Asked?\n「One.\nTwo.」",hot,"not, hot",B\nM,"Why?\n「Three」",x,y,A\n'
)


def pack(files: dict[str, str | bytes], **kinds: str) -> bytes:
    """A gzipped tar; `kinds`: members that are links to somewhere."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, text in files.items():
            content = text if isinstance(text, bytes) else text.encode()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for target, kind in kinds.items():
            member = tarfile.TarInfo("text/9.txt")
            member.type, member.linkname = getattr(tarfile, kind), target
            archive.addfile(member)
    return gzip.compress(buffer.getvalue(), mtime=0)


def read_hoc(folder, corpus: bytes, names: str = "2.txt,1.txt", reader=hallmarks.read_hoc) -> list[Labelled]:
    (folder / "corpus.tar.gz").write_bytes(corpus)
    (folder / "list.tsv").write_text(names)
    return reader(folder / "corpus.tar.gz", folder / "list.tsv")


def read_text(reader, folder, content: str | bytes) -> list[Labelled]:
    (folder / "bad").write_bytes(content if isinstance(content, bytes) else content.encode())
    return reader(folder / "bad")


def test_hallmarks_of_an_abstract_are_those_of_its_sentences(tmp_path):
    assert read_hoc(tmp_path, pack(FILES)) == DOCUMENTS
    assert read_hoc(tmp_path, pack(FILES), "1.txt,\n2.txt\n") == DOCUMENTS[::-1]
    assert read_hoc(tmp_path, gzip.decompress(pack(FILES))) == DOCUMENTS
    labelled_only = partial(hallmarks.read_hoc_labelled_only, left_out=(left_out := Counter()))
    assert read_hoc(tmp_path, pack(FILES), reader=labelled_only) == DOCUMENTS[1:]
    assert left_out == {"abstracts without a hallmark": 1}


def test_reads_japanese_documents(tmp_path):
    content = 'id,text,label,notes\na,"熱、咳\n「疹」",感染症,\nb,胸の痛み,循環器,-\n'
    expected = [Labelled("a", ("熱、咳\n「疹」",), ("感染症",)), Labelled("b", ("胸の痛み",), ("循環器",))]
    assert read_text(tables.read_docclsjp, tmp_path, content) == expected
    expected = [Labelled("1", ("Asked?", "One.\nTwo."), ("not, hot",)), Labelled("2", ("Why?", "Three"), ("x",))]
    assert read_text(tables.read_jmed, tmp_path, JMED) == expected


@each(
    "corpus, names, message",
    [
        (pack(FILES)[:-20], "1.txt", "corpus.tar.gz: cut off or damaged"),
        (gzip.decompress(pack(FILES))[:700], "1.txt", "corpus.tar.gz: cut off, damaged or no archive"),
        (b"", "1.txt", "corpus.tar.gz: cut off, damaged or no archive"),
        (SECRET.encode() * 99, "1.txt", "corpus.tar.gz: cut off, damaged or no archive"),
        (pack(FILES), "1.txt,3.txt", "corpus.tar.gz: text/3.txt: no such member"),
        (pack({"text/1.txt": SECRET}), "1.txt", "corpus.tar.gz: labels/1.txt: no such member"),
        (pack(FILES), "", "list.tsv: no names in the list"),
        (pack(FILES), "1.txt,2.txt,1.txt", "list.tsv: 1 names come again"),
        (pack(FILES), f"1.txt,{SECRET}", "list.tsv: name 2 is not of the form <pmid>.txt"),
        (pack(FILES), "../1.txt", "list.tsv: name 1 is not of the form"),
        (pack(FILES | {"labels/1.txt": "< <"}), "1.txt", "corpus.tar.gz: document 1: 3 sentences and 2 annotations"),
        (pack(FILES | {"text/2.txt": ""}), "2.txt", "corpus.tar.gz: document 2: 0 sentences and 1 annotations"),
        (pack(FILES | {"labels/2.txt": f"<{SECRET}--x"}), "2.txt", "corpus.tar.gz: document 2: a label that is none"),
        (pack(FILES | {"text/2.txt": b"caf\xe9\n"}), "2.txt", "corpus.tar.gz: document 2, text:1: not UTF-8 text"),
        (pack(FILES | {f"../{SECRET}": "x"}), "1.txt", "corpus.tar.gz: has links, names twice or paths"),
        (pack(FILES | {f"/{SECRET}": "x"}), "1.txt", "corpus.tar.gz: has links, names twice or paths"),
        (pack(FILES | {f"a/../../{SECRET}": "x"}), "1.txt", "corpus.tar.gz: has links, names twice or paths"),
        (pack(FILES, README="SYMTYPE"), "1.txt", "corpus.tar.gz: has links, names twice or paths"),
        (pack(FILES, README="LNKTYPE"), "1.txt", "corpus.tar.gz: has links, names twice or paths"),
        (pack({"text/1.txt/": "", **FILES}, README="CHRTYPE"), "1.txt", "corpus.tar.gz: has links"),
    ],
)
def test_refuses_archives_and_lists_that_are_not_whole(tmp_path, corpus, names, message):
    with pytest.raises(StudyError) as error:
        read_hoc(tmp_path, corpus, names)
    assert str(error.value).startswith(message)
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


def test_refuses_a_member_that_comes_twice(tmp_path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for _ in range(2):
            archive.addfile(tarfile.TarInfo("text/1.txt"), io.BytesIO())
    with pytest.raises(StudyError, match="names twice"):
        read_hoc(tmp_path, buffer.getvalue(), "1.txt")


@each(
    "reader, content, message",
    [
        (tables.read_docclsjp, "", "bad: no rows"),
        (tables.read_docclsjp, "id,text,label\n", "bad: no rows"),
        (tables.read_docclsjp, f"id,label\n1,{SECRET}\n", "bad:1: expected the columns id, text, label"),
        (tables.read_docclsjp, f"id,text,text,label\n1,{SECRET},b,c\n", "bad:1: expected the columns"),
        (tables.read_docclsjp, f"id,text,label\n1,{SECRET}\n", "bad:2: expected 3 columns, found 2"),
        (tables.read_docclsjp, f'id,text,label\n1,"{SECRET}\n', "bad:2: not CSV"),
        (tables.read_docclsjp, f'id,text,label\n1,"{SECRET}"x,b\n', "bad:2: not CSV"),
        (tables.read_docclsjp, f"id,text,label\n1,a,b\n1,{SECRET},b\n", "bad:3: an id that is empty or came before"),
        (tables.read_docclsjp, f"id,text,label\n1, ,{SECRET}\n", "bad:2: a blank text or label"),
        (
            tables.read_docclsjp,
            gzip.compress(b"id,text,label\n1,a,b\n" * 9, mtime=0)[:-8],
            "bad: cut off or damaged",
        ),
        (tables.read_jmed, f"tag,question,answer\nx,{SECRET},A\n", "bad:1: expected the columns tag, question"),
        (tables.read_jmed, JMED.replace("」", ""), "bad:4: expected a question over a document"),
        (tables.read_jmed, JMED.replace(",B\n", f",{SECRET}\n"), "bad:4: expected a question over a document"),
        (tables.read_jmed, JMED.replace("x,y,A", f",{SECRET},A"), "bad:6: expected a question over a document"),
    ],
)  # fmt: skip
def test_names_the_place_of_what_is_wrong_and_quotes_nothing(tmp_path, reader, content, message):
    with pytest.raises(StudyError) as error:
        read_text(reader, tmp_path, content)
    assert str(error.value).startswith(message)
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


SPOILT = {
    "hoc": (read_hoc, pack(FILES)),
    "hoc-unpacked": (read_hoc, gzip.decompress(pack(FILES))),
    "docclsjp": (partial(read_text, tables.read_docclsjp), b'id,text,label\n1,"a\nb",c\n2,d,e\n'),
    "jmed": (partial(read_text, tables.read_jmed), JMED.encode()),
}  # fmt: skip


@settings(FEW, max_examples=60)
@given(st.sampled_from(sorted(SPOILT)), st.data())
def test_a_cut_or_spoilt_file_gives_documents_or_a_study_error(tmp_path_factory, name, data):
    reader, content = SPOILT[name]
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    patch = data.draw(st.binary(max_size=9))
    spoilt = data.draw(st.sampled_from([content[:end], patch, content[:start] + patch + content[start + len(patch) :]]))
    try:
        found = reader(tmp_path_factory.mktemp("spoilt"), spoilt)
    except StudyError as error:
        assert str(error).startswith(("bad", "corpus.tar.gz"))
    else:
        assert found and all(isinstance(document, Labelled) and document.sentences for document in found)


TEXTS = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="「」"), min_size=1, max_size=20)
SENTENCES = st.tuples(TEXTS, st.sets(st.sampled_from(list(hallmarks.HALLMARKS)), max_size=3))
ABSTRACTS = st.lists(st.lists(SENTENCES, min_size=1, max_size=4), min_size=1, max_size=5)


@FEW
@given(ABSTRACTS)
def test_both_forms_of_hallmarks_are_read_as_written(tmp_path_factory, abstracts):
    folder = tmp_path_factory.mktemp("hoc")
    files = {}
    for pmid, sentences in enumerate(abstracts, start=1):
        files[f"text/{pmid}.txt"] = "".join(f"{text}\n" for text, _ in sentences)
        files[f"labels/{pmid}.txt"] = "".join(
            f"<{' AND'.join(f'{name}--x' for name in found)}" for _, found in sentences
        )
    expected = [
        Labelled(
            str(pmid),
            tuple(text for text, _ in sentences),
            tuple(
                own for name, own in hallmarks.HALLMARKS.items() if any(name in found for _, found in sentences)
            ),
        )
        for pmid, sentences in enumerate(abstracts, start=1)
    ]
    names = ",".join(f"{document.id}.txt" for document in expected)
    assert read_hoc(folder, pack(files), names) == expected


@FEW
@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS, min_size=1, max_size=3), TEXTS), min_size=1, max_size=9))
def test_csv_is_read_as_written(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("csv")
    labelled = [Labelled(str(i), ("\n".join(lines),), (label,)) for i, (_, lines, label) in enumerate(rows, 1)]
    asked = [Labelled(d.id, (row[0], d.sentences[0]), d.labels) for d, row in zip(labelled, rows, strict=True)]
    content = to_csv(["id", "text", "label"], [[d.id, *d.sentences, *d.labels] for d in labelled])
    assert read_text(tables.read_docclsjp, folder, content) == labelled
    table = [["t", f"{d.sentences[0]}\n「{d.sentences[1]}」", "other", *d.labels, "B"] for d in asked]
    content = to_csv(["tag", "question", "optionA", "optionB", "answer"], table)
    assert read_text(tables.read_jmed, folder, content) == asked


def to_csv(header: list[str], rows: list[list[str]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([header, *rows])
    return text.getvalue()


@FEW
@given(st.lists(st.integers(2, 9), min_size=1, max_size=4), st.integers(2, 5), st.randoms())
def test_folds_hold_every_document_once_and_labels_in_equal_shares(sizes, folds, rng):
    labels = [f"label{i}" for i, size in enumerate(sizes) for _ in range(size * folds)]
    rng.shuffle(labels)
    documents = [Labelled(str(i), (f"A{i}",), (label,)) for i, label in enumerate(labels)]
    tests = [take_fold(documents, "test", fold, folds) for fold in range(1, folds + 1)]
    assert sorted((d for part in tests for d in part), key=lambda d: int(d.id)) == documents
    for fold, part in enumerate(tests, start=1):
        assert Counter(d.labels for d in part) == {(f"label{i}",): size for i, size in enumerate(sizes)}
        train = take_fold(documents, "train", fold, folds)
        assert train == [d for d in documents if d not in part]
        assert take_fold(documents, "test", fold, folds) == part


def test_a_label_rarer_than_there_are_folds_is_kept(recwarn):
    documents = [Labelled(str(i), (f"A{i}",), ("rare" if i < 2 else "common",)) for i in range(20)]
    tests = [take_fold(documents, "test", fold) for fold in range(1, 6)]
    assert [sum(d.labels == ("rare",) for d in part) for part in tests].count(1) == 2
    assert sum(map(len, tests)) == 20
    assert not recwarn


def test_questions_of_one_document_stay_in_one_fold():
    documents = [Labelled(str(i), (f"Q{i % 3}", f"D{i // 3}"), (f"label{i % 2}",)) for i in range(60)]
    for fold in range(1, 6):
        train, test = (take_fold(documents, split, fold) for split in ("train", "test"))
        assert len(train) + len(test) == 60
        assert not {d.sentences[-1] for d in train} & {d.sentences[-1] for d in test}
    with pytest.raises(StudyError, match="no fold"):
        take_fold(documents[:3] * 4, "test", 1)


@pytest.mark.parametrize(
    "split, fold, folds", [("dev", 1, 5), ("test", 0, 5), ("test", 6, 5), ("test", 1, 1), ("test", 1, 9)]
)
def test_refuses_a_fold_that_cannot_be(split, fold, folds):
    documents = [Labelled(str(i), (f"A{i}",), ("x",)) for i in range(8)]
    with pytest.raises(StudyError, match="unknown split|no fold"):
        take_fold(documents, split, fold, folds)
    with pytest.raises(StudyError, match="no fold 1 of 5 of 0 documents"):
        take_fold([], "train", 1)


def read_table_of_sentences(path) -> list[Labelled]:
    """The abstracts of BLURB's form of the hallmarks, a sentence a row with ten flags, each with all its labels."""
    sentences, labels = defaultdict(list), defaultdict(set)
    for _, (flags, sentence, index) in read_columns(path, 3, "labels sentence index"):
        pmid = index.split("_")[0]
        sentences[pmid].append(sentence)
        labels[pmid] |= {number for number, flag in enumerate(flags.split(",")) if flag.endswith("_1")}
    names = list(hallmarks.HALLMARKS.values())
    return [Labelled(id, tuple(sentences[id]), tuple(names[i] for i in sorted(labels[id]))) for id in sentences]


def test_made_up_files_have_every_label(tmp_path):
    smoke_texts.write(tmp_path, random.Random(1), smoke_language.Lexicon(1).names)
    folder = tmp_path / "doccls/hoc"
    for split in ("train", "dev", "test"):
        documents = hallmarks.read_hoc(folder / "hoc-corpus.tar.gz", folder / f"splits/{split}_pmid.tsv")
        assert read_table_of_sentences(find_file(folder / f"blurb/{split}.tsv")) == documents
        assert {label for d in documents for label in d.labels} == set(hallmarks.HALLMARKS.values())
        assert len(documents) == 30 and any(not d.labels for d in documents)
    documents = tables.read_docclsjp(tmp_path / "doccls/docclsjp/docclsjp.csv")
    assert {label for d in documents for label in d.labels} == set(smoke_texts.CATEGORIES)
    for key, (_, _, options) in smoke_texts.JMED.items():
        documents = tables.read_jmed(find_file(tmp_path / f"doccls/jmed-llm/all/{key.upper()}.csv"))
        assert {label for d in documents for label in d.labels} == set(options)
        assert len(take_fold(documents, "test", 1)) == 12
        assert tables.read_jmed(tmp_path / f"doccls/jmed-llm/{key}.csv") == documents[:30]


def test_the_real_hallmarks_are_those_of_the_form_that_blurb_has(real_data):
    folder = real_data / "doccls/hoc"
    corpus = []
    for split in ("train", "dev", "test"):
        corpus.append(hallmarks.read_hoc(folder / "hoc-corpus.tar.gz", folder / f"splits/{split}_pmid.tsv"))
        table = read_table_of_sentences(find_file(folder / f"blurb/{split}.tsv"))
        assert bool(corpus[-1] == table)
    assert [len(split) for split in corpus] == [1295, 186, 371]  # gu, table 3
    documents = [d for split in corpus for d in split]
    assert len({d.id for d in documents}) == 1852 and sum(len(d.sentences) for d in documents) == 17464
    per_label = Counter(label for d in documents for label in d.labels)
    counts = [per_label[label] for label in hallmarks.HALLMARKS.values()]
    assert counts == [291, 108, 105, 115, 240, 333, 143, 429, 462, 240]
    assert [sum(bool(d.labels) for d in split) for split in corpus] == [1098, 164, 318]  # 1,580, as BLUE's


def test_real_japanese_sets_have_the_counts_of_their_source(real_data):
    folder = real_data / "doccls/jmed-llm"
    for key, size, labels in (("CRADE", 1630, 8), ("RRTNM", 324, 11), ("SMDIS", 15360, 16)):
        documents = tables.read_jmed(find_file(folder / f"all/{key}.csv"))
        assert (len(documents), len({d.labels for d in documents})) == (size, labels)
        assert len(tables.read_jmed(folder / f"{key.lower()}.csv")) == 100
