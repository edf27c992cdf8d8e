"""The hallmarks of cancer: both forms read as written, archives that are not what they should be refused."""

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

from lib.benchmarks import hallmarks
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


def test_hallmarks_of_an_abstract_are_those_of_its_sentences(tmp_path):
    assert read_hoc(tmp_path, pack(FILES)) == DOCUMENTS
    assert read_hoc(tmp_path, pack(FILES), "1.txt,\n2.txt\n") == DOCUMENTS[::-1]
    assert read_hoc(tmp_path, gzip.decompress(pack(FILES))) == DOCUMENTS
    labelled_only = partial(hallmarks.read_hoc_labelled_only, left_out=(left_out := Counter()))
    assert read_hoc(tmp_path, pack(FILES), reader=labelled_only) == DOCUMENTS[1:]
    assert left_out == {"abstracts without a hallmark": 1}


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


@settings(FEW, max_examples=60)
@given(st.sampled_from([pack(FILES), gzip.decompress(pack(FILES))]), st.data())
def test_a_cut_or_spoilt_file_gives_documents_or_a_study_error(tmp_path_factory, content, data):
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    patch = data.draw(st.binary(max_size=9))
    spoilt = data.draw(st.sampled_from([content[:end], patch, content[:start] + patch + content[start + len(patch) :]]))
    try:
        found = read_hoc(tmp_path_factory.mktemp("spoilt"), spoilt)
    except StudyError as error:
        assert str(error).startswith("corpus.tar.gz")
    else:
        assert found and all(isinstance(document, Labelled) and document.sentences for document in found)


TEXTS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)
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
