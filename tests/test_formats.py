"""Tests of every dataset format: golden files are read as written; errors locate the damage and never quote the data.

The golden files are in golden.py. For a new reader, add a golden file there and its damaged variants here.
"""

import bz2
import gzip
import re
import tarfile
import warnings
import zipfile
from pathlib import Path

import pytest
from conftest import each
from golden import (
    ABSTRACTS,
    BIOSSES,
    CONCEPTS,
    ENTITIES,
    FALSE,
    FILE,
    FORMATS,
    HOC,
    JMED,
    KNOWTATOR,
    PUBTATOR,
    RELATED,
    ddi_corpus,
    golden,
    lim,
    nli,
    scibert,
    sentence,
    squad,
    tarred,
    write_files,
    zipped,
)  # fmt: skip

from lib import reading
from lib.errors import StudyError

SECRET = "Secret"  # part of the damaged data; no message may quote it, in upper or lower case
TWO = {"0-2": "sec", "3-5": "ret"}
FIRST = ("q_1", "A?", SECRET, [(SECRET, 0)])
PLACE = "file: data[0].paragraphs[0]"  # how messages locate the first context of a file in SQuAD's format
HEAD = "1|t|secret\n1|a|\n"  # the beginning of a record in PubTator format
LABELS = "annotations/aggregated/starting_spans/outcomes"
LONG = "9" * 5000
LONG_WORD = re.compile(r"\w{4,}|[^\x00-\x7f]+")
CUT = "cut off or damaged"
ENTITY = '<!DOCTYPE document [<!ENTITY x "ha">]>'


def con(line: str) -> dict[str, str]:
    return {"concept/note.con": line}


def rel(old: str, new: str) -> dict[str, str]:
    return {"rel/note.rel": RELATED.replace(old, new)}


def ddi(body: str, head: str = "") -> dict[str, bytes]:
    return {"ddi.zip": ddi_corpus(body, head)}


def hoc(changes: dict, **options) -> dict[str, bytes]:
    return {"corpus.tar.gz": tarred(HOC | changes, **options)}


def pipes(line: str) -> dict[str, str]:
    return {"gold/note.pipe.txt": line}


def xml(old: str, new: str) -> dict[str, str]:
    assert old in KNOWTATOR
    return {"gold/note.txt.knowtator.xml": KNOWTATOR.replace(old, new)}


# Format, content of the damaged file (or of several by name, None for a missing one), a part of the message.
DAMAGES = [
    # Tables: read_columns, read_json_rows, read_csv and read_members, which most formats share.
    ("chemprot", {"abstracts.tsv": "7\tsecret\n"}, "abstracts.tsv:1: expected 3 columns, found 2"),
    ("lim", zipped({"dev": ""}), "file: dev: empty file"),
    ("lim", zipped({"dev": lim().encode() + b"\xff"}), "file: dev:2: not UTF-8"),
    ("lim", zipped({"other": lim()}), "file: dev: no such member"),
    ("lim", zipped({"dev": lim("secret")}), "file: dev:1: expected the label 0, 1, 2, 3, 4, 5"),
    ("lim", zipped({"dev": lim() + lim()}), "file: dev:2: an id that is empty or came before"),
    ("lim", zipped({"dev": lim(ids="7\tT1\t")}), "file: dev:1: an id that is empty or came before"),
    ("lim", zipped({"dev": lim(words="bc6entc, bc6entc, secret")}), "file: dev:1: expected bc6entc and bc6entg, fo"),
    ("bioelectra", "sentence\tlabel\n", "file: no rows in the file"),
    ("bioelectra", "secret\tsecret\n", "file:1: expected the header sentence, label"),
    ("bioelectra", 'sentence\tlabel\nBC6ENTC "BC6ENTG secret\tFalse\n', "file:2: a quotation mark"),
    ("gad", "index\tsentence\tlabel\n@GENE$ @DISEASE$\t1\n", "file:2: expected 3 columns, found 2"),
    ("biosses", f"{BIOSSES}1\t \t{SECRET}\t1\n", "file:2: one of the two texts is blank"),
    ("biosses", f"{BIOSSES}1\tA\tB\t{SECRET}\n", "file:2: expected a score of 0 to 4"),
    ("biosses", f"{BIOSSES}1\t{SECRET}\tB\tnan\n", "file:2: expected a score of 0 to 4"),
    ("medsts", f"{SECRET}\tB\t5.5\n", "file:1: expected a score of 0 to 5"),
    ("mednli", nli().replace("sentence1", SECRET), "file:1: expected a text under sentence1"),
    ("docclsjp", f"id,label\n1,{SECRET}\n", "file:1: expected the columns id, text, label"),
    ("docclsjp", f"id,text,text,label\n1,{SECRET},b,c\n", "file:1: expected the columns"),
    ("docclsjp", f"id,text,label\n1,{SECRET}\n", "file:2: expected 3 columns, found 2"),
    ("docclsjp", f'id,text,label\n1,"{SECRET}\n', "file:2: not CSV"),
    ("docclsjp", f"id,text,label\n1, ,{SECRET}\n", "file:2: a blank text or label"),
    ("jmed", JMED.replace("」", ""), "file:4: expected a question over a document"),
    ("jmed", JMED.replace(",B\n", f",{SECRET}\n"), "file:4: expected a question over a document"),
    # Relations.
    ("chemprot", {"abstracts.tsv": ABSTRACTS + "7\tsecret\tsecret\n"}, "abstracts.tsv:2: no PMID of its own"),
    ("chemprot", {"entities.tsv": ENTITIES + "7\tT7\tsecret\t0\t4\tIron\n"},
     "entities.tsv:7: expected the label CHEMICAL, GENE-Y, GENE-N"),
    ("chemprot", {"entities.tsv": "7\tT1\tCHEMICAL\t1\t5\tsecret\n"},
     "entities.tsv:1: the text has other words at 1 to 5"),
    ("chemprot", {"entities.tsv": "7\tT1\tCHEMICAL\t900\t900\t\n"}, "entities.tsv:1: the text has other words"),
    ("chemprot", {"entities.tsv": ENTITIES + "7\tT1\tCHEMICAL\t0\t4\tIron\n"}, "entities.tsv:7: no entity id of its"),
    ("chemprot", {"relations.tsv": "7\tsecret\tY \tX\tArg1:T1\tArg2:T2\n"}, "relations.tsv:1: expected the label CPR"),
    ("chemprot", {"relations.tsv": "7\tCPR:3\tY \tX\tArg1:T2\tArg2:T1\n"},
     "relations.tsv:1: expected Arg1 of a chemical and Arg2 of a gene"),
    ("scibert", scibert() + "secret", "file:2: not JSON"),
    ("scibert", '["secret"]\n', "file:1: not a JSON object"),
    ("scibert", scibert(text=["secret"]), "file:1: expected a text"),
    ("ddi", ddi(sentence("secret", {"2-6": "cret"})), "a b.xml: sentence s, entity 1: does not stand at its offsets"),
    ("ddi", ddi(sentence("secret x", {"2-3;6-6": "ec x"})), "entity 1: does not stand at its offsets"),
    ("ddi", ddi(sentence("secret", {"": "secret"})), "entity 1: expected a charOffset such as"),
    ("ddi", ddi(sentence("secret", TWO).replace("e1", "e0")), "entity 2: no id of its own"),
    ("ddi", ddi(sentence("secret", TWO, f"e0 e7 {FALSE}")), "a b.xml: pair p0 names an unknown entity"),
    ("ddi", ddi(sentence("secret", TWO, f"e0 e0 {FALSE}")), "pair p0 names an unknown entity"),
    ("ddi", ddi(sentence("secret", TWO, 'e0 e1 ddi="true" type="secret"')), "p0: expected the label DDI-false, DDI-me"),
    ("ddi", ddi(sentence("secret", TWO, 'e0 e1 ddi="true" type=""')), "p0: expected the label DDI-false, DDI-me"),
    ("ddi", ddi(2 * sentence("secret", TWO, f"e0 e1 {FALSE}")), "pair p0: an id that is empty or came before"),
    ("ddi", ddi(sentence("secret", TWO)), "files.tsv: no rows in the file"),
    ("ddi", ddi("secret"), "a b.xml: not a document with sentences"),
    ("ddi", ddi("<sentence text='secret'>"), "a b.xml:1: not well-formed XML"),
    ("ddi", ddi("<sentence text='a'>&x;</sentence>", ENTITY), "entities of its own"),
    ("ddi", {"files.tsv": "train_dataset/DrugBank/a b.xml\nsecret\n"},
     "files.tsv:2: expected names such as train_dataset/DrugBank"),
    # Documents, and archives: read_members, which every reader of archives calls.
    ("hoc", {"list.tsv": "1.txt,3.txt"}, "corpus.tar.gz: text/3.txt: no such member"),
    ("hoc", {"list.tsv": ""}, "list.tsv: empty file"),
    ("hoc", {"list.tsv": "1.txt,2.txt,1.txt"}, "list.tsv:1: expected names such as 8829650.txt, each once"),
    ("hoc", {"list.tsv": f"1.txt,{SECRET}"}, "list.tsv:1: expected names such as 8829650.txt, each once"),
    ("hoc", hoc({"labels/1.txt": "< <"}), "corpus.tar.gz: document 1: 3 sentences and 2 annotations"),
    ("hoc", hoc({"labels/2.txt": f"<{SECRET}--x"}), "corpus.tar.gz: document 2: a label that is none"),
    ("hoc", hoc({"text/2.txt": b"caf\xe9\n"}), "corpus.tar.gz: document 2, text:1: not UTF-8 text"),
    ("hoc", {"list.tsv": "9.txt"} | hoc({}, link="/etc/hostname"), "corpus.tar.gz: text/9.txt: no such member"),
    # Questions.
    ("squad", f'{{"data": ["{SECRET}', "file: Invalid JSON: EOF"),
    ("squad", "[" * 100_000, "file: Invalid JSON: recursion limit"),
    ("squad", '{"data": []}', "file: no questions"),
    ("squad", '{"data": [{"paragraphs": [{"context": "A"}]}]}', PLACE + ".qas: Field required"),
    ("squad", squad(("a", " ", SECRET, [])), PLACE + ".qas[0].question: String should match"),
    ("squad", squad(("a", "A?", SECRET, [])), PLACE + ".qas[0]: no answers"),
    ("squad", squad(FIRST, FIRST), "file: data[0].paragraphs[1].qas[0]: an id that is empty or came before"),
    ("squad", squad(("a", "A?", SECRET, [(SECRET, 1)])), PLACE + ": qas[0]: an answer is"),
    ("squad", squad(("a", "A?", SECRET, [(SECRET[-3:], -3)])), PLACE + ": qas[0]: an answer is"),
    ("bioasq", squad((SECRET, "A?", "B", None)), PLACE + ".qas[0]: expected an id such as"),
    ("bioasq", squad(FIRST, ("q_001", "A?", SECRET, None)), "file: data[0].paragraphs[1].qas[0]: an id that came"),
    ("bioasq", squad(FIRST, ("q_2", "B?", SECRET, [])), "file: data[0].paragraphs[1].qas[0]: another question"),
    ("golden", golden(("q", SECRET, [], ["x"]), kind=SECRET), "file: questions[0].type: Input should be 'yesno'"),
    ("golden", golden(("q", SECRET, [], [])), "file: questions[0]: expected texts under exact_answer"),
    ("golden", golden(("q", SECRET, [], [[[SECRET]]])), "file: questions[0].exact_answer[0]: Input should be"),
    ("golden", golden(("q", "A?", [], ["x"]), ("q", SECRET, [], ["x"])), "file: questions[1]: an id that came"),
    # Words with tags.
    ("conll", "a\tO\nsecret O\n", "file:2: expected 'word<TAB>tag', the tag O, B, I, B-type or I-type; found 1 column"),
    ("conll", "a\tO\n\tO\n", "file:2: expected 'word<TAB>tag'"),
    *(("conll", f"secret\t{tag}\n", "file:1: expected 'word<TAB>tag', the tag O, B, I, B-type or I-type; found another")
      for tag in ("X-secret", "B-", "")),
    ("conll", "a O\nsecret\tO\n", "file:2: expected 'word<TAB>tag', the tag O, B, I, B-type or I-type; found 1 column"),
    ("conll", "-DOCSTART-\tO\n\n", "file: no sentences"),
    ("pubtator", "\n\n", "file: no abstracts"),
    ("pubtator", "1|t|secret\n2|a|secret\n", "file:1: expected 'PMID|t|title' and 'PMID|a|abstract' of one PMID"),
    ("pubtator", HEAD + "2\t0\t6\tsecret\tDisease\tD1\n", "file:3: expected a line of PMID 1"),
    ("pubtator", HEAD + "1\t0\t6\tsecret\tDisease\n", "file:3: expected a mention of 6 or 7 columns"),
    ("pubtator", HEAD + "1\t0\t6\tsecret\tsecret\tD1\n", "file:3: expected the label Chemical"),
    ("pubtator", HEAD + f"1\t0\t{LONG}\tsecret\tDisease\tD1\n", "file:3: expected two offsets"),
    ("pubtator", HEAD + "1\t1\t6\tsecret\tDisease\tD1\n", "file:3: the text has other words at 1 to 6"),
    ("pubtator", HEAD + "1\t6\t6\t\tDisease\tD1\n", "file:3: the text has other words at 6 to 6"),
    ("pubtator", HEAD + 2 * "1\t0\t6\tsecret\tDisease\tD1\n", "file:4: the mention at 0 to 6 is there twice"),
    ("pubtator", HEAD + "1\t0\t6\tsecret\tDisease\tD1", "file:3: the last line has no end"),
    ("pubtator", PUBTATOR + PUBTATOR.replace("It hurts", SECRET), "file: two different records of PMID 12"),
    # Folders of notes and abstracts.
    ("i2b2-relations", {"txt/note.txt": "\n \n"}, "note.txt: empty file"),
    ("i2b2-relations", con('c="secret pain" 1:0 1:1||t="secret"\n'), "note.con:1: expected a concept of type problem"),
    ("i2b2-relations", con('c="secret" 1:0 1:1||t="problem"\n'),
     "note.con:1: words 0 to 1 of line 1 are not the concept's text"),
    ("i2b2-relations", con('c="secret pain" 1:0 2:1||t="problem"\n'), "note.con:1: words 0 to 1 of line 1 are not the"),
    ("i2b2-relations", con('c="secret pain" 0:0 0:1||t="problem"\n'), "note.con:1: words 0 to 1 of line 0 are not the"),
    ("i2b2-relations", con('c="secret pain" 1:1 1:0||t="problem"\n'), "note.con:1: words 1 to 0 of line 1 are not the"),
    ("i2b2-relations", con('c="mri ." 1:4 1:9||t="test"\n'), "note.con:1: words 4 to 9 of line 1 are not the"),
    ("i2b2-relations", con(2 * 'c="secret pain" 1:0 1:1||t="problem"\n'), "note.con:2: the concept is on an earlier l"),
    ("i2b2-relations", rel("TrAP", "secret"), "note.rel:1: expected a relation of label TrIP"),
    ("i2b2-relations", rel('"his pain" 3:3', '"pain" 3:4'), "note.rel:1: expected two concepts of one line"),
    ("i2b2-relations", rel('"his pain" 3:3 3:4', '"the mri" 1:3 1:4'), "note.rel:1: expected two concepts of one line"),
    ("i2b2-relations", rel('"his pain" 3:3 3:4', '"secret aspirin" 3:0 3:1'), "note.rel:1: expected two concepts"),
    ("i2b2-concepts", {"txt/note.txt": " a\n"} | con('c="a" 1:0 1:0||t="problem"\n'),  # the empty first word
     "note.con:1: words 0 to 0 of line 1 are not the concept's text"),
    ("i2b2-concepts", con(CONCEPTS + 'c="pain" 1:1 1:1||t="problem"\n'), "note.con: concept l5 overlaps another"),
    ("i2b2-concepts", {"concept/note.con": None}, "no .con files in"),
    ("i2b2-concepts", {"txt/other.txt": SECRET}, "other lacks one of .txt, .con and .rel"),
    *(("share-clef", pipes(line), "note.pipe.txt:1: expected the note's name, a type, a CUI and pairs of offsets")
      for line in ("note.txt||Disease_Disorder||C1||0\n", "secret.txt||Disease_Disorder||C1||0||6\n",
                   "note.txt||Disease_Disorder||||0||6\n")),
    *(("share-clef", pipes(line), "note.pipe.txt:1: expected the type Disease_Disorder and pairs of offsets")
      for line in ("note.txt||secret||C1||0||6\n", "note.txt||Disease_Disorder||C1||0||secret\n")),
    *(("share-clef", pipes(line), "note.pipe.txt:1: offsets outside the note or parts that overlap")
      for line in ("note.txt||Disease_Disorder||C1||0||999\n", "note.txt||Disease_Disorder||C1||6||6\n",
                   "note.txt||Disease_Disorder||C1||0||6||3||9\n")),
    ("share-clef", {"notes/note.txt": " \n"}, "note.txt: empty file"),
    ("share-clef", {"gold/other.pipe.txt": ""}, "other.pipe.txt: no note of this name"),
    ("share-clef", {"gold/note.txt": ""}, "note.txt: stands for the same as"),
    ("share-clef", {"gold/note.pipe.txt": None}, "note.txt: no annotations in gold"),
    ("share-clef", {"notes/note.txt": None}, "no .txt files in notes"),
    ("share-clef-xml", xml('<mention id="m1"/>', ""), "knowtator.xml:3: an annotation of no class"),
    ("share-clef-xml", xml('<span start="29" end="33"/>', ""), "knowtator.xml:7: expected the type"),
    ("share-clef-xml", xml('end="33"', ""), "knowtator.xml:7: expected"),
    ("share-clef-xml", xml(KNOWTATOR[KNOWTATOR.index("</annotation>"):], "secret<"), "knowtator.xml:4: not well-form"),
    ("share-clef-xml", xml("<annotations ", '<!DOCTYPE annotations [<!ENTITY a "secret">]><annotations '),
     "knowtator.xml: declares 1 entities of its own: refused"),
    ("ebm-nlp", {"documents/10.tokens": " \n"}, "10.tokens: empty file"),
    ("ebm-nlp", {"documents/10.tokens": None}, "no file 10.tokens"),
    ("ebm-nlp", {"documents/10.tokens": "secret secret"}, "10.AGGREGATED.ann: 1 labels for 2 words"),
    ("ebm-nlp", {f"{LABELS}/train/10.AGGREGATED.ann": "secret"}, "10.AGGREGATED.ann: expected labels 0 to 9"),
    ("ebm-nlp", {f"{LABELS}/train/10_AGGREGATED.ann": "0"}, "stands for the same as"),
    ("ebm-nlp", {f"{LABELS}/test/gold/11.AGGREGATED.ann": None}, "no labels in gold"),
]  # fmt: skip
MAY_BE_EMPTY = ("note.con", "note.rel", "note.pipe.txt", "gold/note.txt")  # if a note has no mentions
NEVER_SHORT = {"ddi.zip", "corpus.tar.gz"}  # a truncated archive is never read as if complete
NOT_READ = {"documents/11.tokens", *(name for name in FORMATS["ebm-nlp"].files if "test/gold" in name)}  # in training


@each("form", FORMATS)
def test_golden_files_are_read_as_written_compressed_or_not(tmp_path, form):
    read, files, expected = FORMATS[form]
    assert read(write_files(tmp_path / "plain", files)) == expected
    for pack in (gzip.compress, bz2.compress):
        packed = {name: pack(c.encode()) if isinstance(c, str) else unpack(c) for name, c in files.items()}
        assert read(write_files(tmp_path / pack.__module__, packed)) == expected


def unpack(content: bytes) -> bytes:
    """Return the content without gzip compression."""
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content


def fail(form: str, folder: Path) -> str:
    """Return the message of the StudyError that reading raises; check that it and its causes quote no data."""
    with pytest.raises(StudyError) as error:
        FORMATS[form].read(folder)
    message = str(error.value)
    assert SECRET.lower() not in message.lower() and error.value.__cause__ is None
    texts = [text for item in FORMATS[form].expected for text in ([item] if isinstance(item, str) else item.natural)]
    assert not {word for text in texts for word in LONG_WORD.findall(text)} & {*LONG_WORD.findall(message)}
    assert error.value.__suppress_context__ or error.value.__context__ is None
    return message


@each("form, damaged, message", DAMAGES)
def test_a_message_names_the_place_of_the_damage_and_quotes_nothing(tmp_path, form, damaged, message):
    write_files(tmp_path, FORMATS[form].files)
    write_files(tmp_path, damaged if isinstance(damaged, dict) else {FILE: damaged})
    assert message in fail(form, tmp_path)


@each("form, name", [(form, name) for form, (_, files, _) in FORMATS.items() for name in files if name not in NOT_READ])
def test_an_empty_or_truncated_file_or_another_encoding_is_refused(tmp_path, form, name):
    content = (write_files(tmp_path, FORMATS[form].files) / name).read_bytes()
    packed = content[:2] in (b"\x1f\x8b", b"PK")
    for damaged, message in (
        (b"", ""),
        (b"\xff" + content, "damaged" if packed else "" if name.endswith(".xml") else "not UTF-8"),
        (content[:-9] if packed else gzip.compress(content, mtime=0)[:-9], "damaged"),
        (b"\x1f\x8b", CUT),
    ):
        if damaged or not name.endswith(MAY_BE_EMPTY):
            write_files(tmp_path, {name: damaged})
            raised = fail(form, tmp_path)
            assert message in raised and name.rpartition("/")[2] in raised, (damaged[:9], raised)


@each("form, name", [(form, name) for form, (_, files, _) in FORMATS.items() for name in files])
def test_a_file_damaged_anywhere_gives_examples_or_a_study_error(tmp_path, form, name):
    content = (write_files(tmp_path, FORMATS[form].files) / name).read_bytes()
    for offset in range(0, len(content), 1 + len(content) // 30):
        for spoilt in (content[:offset], content[:offset] + b'9\t"' + content[offset + 2 :]):
            write_files(tmp_path, {name: spoilt})
            try:
                assert FORMATS[form].read(tmp_path)
                assert name not in NEVER_SHORT or len(spoilt) >= len(content)
            except StudyError as error:
                assert SECRET.lower() not in str(error).lower()


def test_a_disk_error_is_not_reported_as_damage(tmp_path):
    (tmp_path / FILE).write_text("a")
    with pytest.raises(OSError, match="No space left"), reading.open_bytes(tmp_path / FILE):
        raise OSError(28, "No space left")


def test_archives_with_a_member_twice_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the name that comes twice
        for text in "xy":
            archive.writestr("a", text)
    with tarfile.open(tmp_path / "tar", "w") as archive:
        for _ in range(2):
            archive.addfile(tarfile.TarInfo("a"))
    for form in ("zip", "tar"):
        with pytest.raises(StudyError, match="a member is there twice"):
            reading.read_members(tmp_path / form, ["a"])
        with pytest.raises(StudyError, match="b: no such member"):
            reading.read_members(tmp_path / form, ["b"])
