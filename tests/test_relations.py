"""Relation sets: every format and its oddities, what is said of bad files, the real files' counts."""

import gzip
import hashlib
import io
import json
import random
import sys
import tarfile
import zipfile
from collections import Counter
from types import SimpleNamespace
from xml.sax.saxutils import quoteattr

import pytest
from conftest import each
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lib.benchmarks import chemprot, ddi, tables
from lib.benchmarks.instances import Mention, Relation
from lib.errors import StudyError
from lib.made_up import smoke_relations
from lib.reading import read_members

SPLITS = ("train", "dev", "test")
CHEMPROT = {
    "train": "re/chemprot/chemprot_training/chemprot_training_{}.tsv",
    "dev": "re/chemprot/chemprot_development/chemprot_development_{}.tsv",
    "test": "re/chemprot/chemprot_test_gs/chemprot_test_{}_gs.tsv",
}
LIM = "re/chemprot-recursive/chemprot-data_SPINN.zip"
ZIP = "re/ddi/DDICorpus-2013.zip"
FOLDS = "re/gad/gad-biobert-10fold.tar.gz"
# A made-up file is written anew for each example, so one folder serves them all.
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def punkt():
    try:
        return chemprot.load_punkt()
    except StudyError as reason:
        pytest.skip(str(reason))


def write(path, text: str | bytes):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def write_zip(path, members: dict[str, str | bytes]):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def write_tar(path, members: dict[str, str], link: str = ""):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
        if link:
            member = tarfile.TarInfo("GAD/link")
            member.type, member.linkname = tarfile.SYMTYPE, link
            archive.addfile(member)
    return write(path, packed.getvalue())


def fails(message: str, read, *inputs) -> None:
    """The call gives a StudyError with this message and without a word of the data, in its causes neither."""
    with pytest.raises(StudyError, match=message) as error:
        read(*inputs)
    assert "secret" not in str(error.value) and error.value.__cause__ is None
    assert error.value.__suppress_context__ or error.value.__context__ is None


def in_brief(found: list[Relation]) -> list[tuple[str, str, str]]:
    return [(relation.id, relation.dummify().text, relation.label) for relation in found]


def git_blob(found: list[Relation]) -> str:
    """The name that git gives a table of these instances in BLURB's form."""
    table = "".join("\t".join(row) + "\n" for row in in_brief(found)).encode()
    return hashlib.sha1(b"blob %d\0" % len(table) + table).hexdigest()


# ChemProt

ABSTRACTS = "7\tIron and ferritin.\tZinc binds HBA. Opium HBA x\n"
#               0123456789012345678 9012345678901234567890123456
ENTITIES = (
    "7\tT1\tCHEMICAL\t0\t4\tIron\n7\tT2\tGENE-Y\t9\t17\tferritin\n7\tT4\tGENE-N\t30\t33\tHBA\n"
    "7\tT3\tCHEMICAL\t19\t23\tZinc\n7\tT6\tGENE-Y\t41\t44\tHBA\n7\tT5\tCHEMICAL\t35\t40\tOpium\n"
)
GROUPS = (
    "7\tCPR:3\tY \tACTIVATOR\tArg1:T3\tArg2:T4\n7\tCPR:4\tY \tINHIBITOR\tArg1:T3\tArg2:T4\n"
    "7\tCPR:2\tN \tREGULATOR\tArg1:T5\tArg2:T6\n7\tCPR:9\tY \tSUBSTRATE\tArg1:T1\tArg2:T6\n"
)
NO_GROUPS = "7\tCPR:10\tN \tNOT\tArg1:T1\tArg2:T2\n"


def sentences(text: str) -> list[str]:
    """A splitter for made-up text: after every full stop and blank."""
    return text.replace(". ", ".|").split("|")


def write_chemprot(folder, abstracts: str = ABSTRACTS, entities: str = ENTITIES, groups: str = GROUPS):
    texts = {"abstracts": abstracts, "entities": entities, "relations": groups}
    return [write(folder / f"{what}.tsv", text) for what, text in texts.items()]


def test_chemprot_pairs_are_of_one_sentence_in_text_order(tmp_path):
    found = chemprot.read_chemprot(*write_chemprot(tmp_path), sentences, left_out := Counter())
    assert list(left_out.values()) == [0, 1]
    assert in_brief(found) == [
        ("7.T1.T2", "@CHEMICAL$ and @GENE$.", "false"),
        ("7.T3.T4", "@CHEMICAL$ binds @GENE$.", "CPR:4"),  # the last of its groups
        ("7.T5.T6", "@CHEMICAL$ @GENE$ x", "false"),  # a group that is not evaluated; across sentences there is no pair
    ]
    ends = Mention("T3", "CHEMICAL", 0, 4), Mention("T4", "GENE", 11, 14)
    assert found[1] == Relation("7.T3.T4", "Zinc binds HBA.", *ends, "CPR:4", document="7")


def test_a_group_that_is_not_evaluated_hides_one_before_it(tmp_path):
    groups = "7\tCPR:3\tY \tACTIVATOR\tArg1:T1\tArg2:T2\n" + NO_GROUPS
    found = chemprot.read_chemprot(*write_chemprot(tmp_path, groups=groups), sentences)
    assert found[0].label == "false"
    found = chemprot.read_chemprot_blue(*write_chemprot(tmp_path, groups=groups), sentences)
    assert found[0].label == "CPR:3"


def test_blues_form_has_a_row_for_each_group_and_longer_sentences(tmp_path):
    found = chemprot.read_chemprot_blue(*write_chemprot(tmp_path), sentences)
    assert in_brief(found) == [
        ("7.T1.T2", "@CHEMICAL$ and @GENE$.", "false"),
        ("7.T3.T4", "@CHEMICAL$ binds @GENE$.", "CPR:3"),
        ("7.T3.T4", "@CHEMICAL$ binds @GENE$.", "CPR:4"),
        ("7.T5.T6", "@CHEMICAL$ @GENE$ x", "false"),
    ]
    texts = {"b": "We gave i.v. Zinc. it binds. HBA", "t": "An open title"}
    spans = chemprot.cut_and_merge("7", f"{texts['t']}\t{texts['b']}", sentences)
    joined = f"{texts['t']} {texts['b']}"
    assert [joined[start:end] for start, end in spans] == ["An open title We gave i.v. Zinc. it binds.", "HBA"]


def test_blues_ids_name_the_chemical_first(tmp_path):
    entities = "7\tT8\tGENE-Y\t2\t3\ta\n7\tT1\tCHEMICAL\t4\t5\tb\n"
    files = write_chemprot(tmp_path, "7\tx\ta b\n", entities, "7\tCPR:3\tY \tACTIVATOR\tArg1:T1\tArg2:T8\n")
    (blurb,), (blue,) = chemprot.read_chemprot(*files, sentences), chemprot.read_chemprot_blue(*files, sentences)
    assert (blurb.id, blue.id) == ("7.T8.T1", "7.T1.T8")
    assert blurb.first.id == blue.first.id == "T8" and (blurb.text, blue.text) == ("a b", "x\ta b")
    assert blue.dummify().text == "x @GENE$ @CHEMICAL$" and blurb.label == blue.label == "CPR:3"


def test_chemprot_pairs_without_a_cut_are_chemical_by_chemical(tmp_path):
    entities = "7\tT8\tGENE-Y\t4\t5\tb\n7\tT9\tGENE-Y\t8\t9\td\n7\tT1\tCHEMICAL\t2\t3\ta\n7\tT2\tCHEMICAL\t6\t7\tc\n"
    files = write_chemprot(tmp_path, "7\tx\ta b c d\n", entities, "7\tCPR:3\tY \tX\tArg1:T2\tArg2:T8\n")
    pairs = chemprot.read_chemprot(*files, sentences)
    assert [(pair.id, pair.label) for pair in pairs] == [
        ("7.T1.T8", "false"), ("7.T1.T9", "false"), ("7.T8.T2", "CPR:3"), ("7.T2.T9", "false"),
    ]  # fmt: skip
    assert pairs[2].dummify().text == "a @GENE$ @CHEMICAL$ d"


def test_chemprot_overlaps_become_one_dummy(tmp_path):
    entities = "7\tT1\tCHEMICAL\t2\t6\tzinc\n7\tT2\tGENE-Y\t2\t13\tzinc finger\n7\tT3\tGENE-Y\t7\t13\tfinger\n"
    found = chemprot.read_chemprot(*write_chemprot(tmp_path, "7\tx\tzinc finger 3\n", entities, NO_GROUPS), sentences)
    assert [row[:2] for row in in_brief(found)] == [
        ("7.T2.T1", "@CHEM-GENE$ 3"),  # both begin at one place: the gene first
        ("7.T1.T3", "@CHEMICAL$ @GENE$ 3"),
    ]


def test_chemprot_mentions_across_a_cut_are_in_no_pair(tmp_path):
    entities = "7\tT1\tCHEMICAL\t5\t9\ta. b\n7\tT2\tGENE-Y\t10\t11\tc\n"
    files = write_chemprot(tmp_path, "7\tx\tan a. b c\n", entities, NO_GROUPS)
    assert chemprot.read_chemprot(*files, sentences, left_out := Counter()) == []
    assert left_out == {"mentions across the end of a sentence": 1, "related pairs that are not in one sentence": 0}
    assert len(chemprot.read_chemprot(*files, lambda text: [text])) == 1
    assert len(chemprot.read_chemprot_blue(*files, sentences)) == 1  # no capital, no cut


@each(
    ("part", "text", "message"),
    [
        ("abstracts", "7\tsecret\n", r"abstracts\.tsv:1: expected 3 columns, found 2"),
        ("abstracts", "", "abstracts.tsv: empty file"),
        ("abstracts", ABSTRACTS + "7\tsecret\tsecret\n", "abstracts.tsv:2: no PMID of its own"),
        ("abstracts", "secret\tsecret\tsecret\n", "abstracts.tsv:1: no PMID of its own"),
        ("abstracts", b"7\t\xff\tsecret\n", "abstracts.tsv:1: not UTF-8"),
        ("abstracts", gzip.compress(b"7\tsecret\tsecret\n", mtime=0)[:-9], "abstracts.tsv: cut off or damaged"),
        ("entities", "7\tT1\tCHEMICAL\t0\t4\n", r"entities\.tsv:1: expected 6 columns, found 5"),
        ("entities", ENTITIES + "7\tT7\tsecret\t0\t4\tIron\n", r"entities\.tsv:7: expected CHEMICAL, GENE-Y, GENE-N"),
        ("entities", "7\tT1\tCHEMICAL\t-1\t4\tIron\n", ":1: expected .* two offsets"),
        ("entities", "7\tT1\tCHEMICAL\t1\t5\tsecret\n", ":1: the entity is not in its document at 1 to 5"),
        ("entities", "7\tT1\tCHEMICAL\t900\t906\tsecret\n", ":1: the entity is not in its document"),
        ("entities", "7\tT1\tCHEMICAL\t900\t900\t\n", ":1: the entity is not in its document"),
        ("entities", "8\tT1\tCHEMICAL\t0\t6\tsecret\n", ":1: the entity is not in its document"),
        ("entities", ENTITIES + "7\tT1\tCHEMICAL\t0\t4\tIron\n", ":7: no entity id of its own"),
        ("entities", "7\tsecret\tCHEMICAL\t0\t4\tIron\n", ":1: no entity id of its own"),
        ("relations", "7\tsecret\tY \tX\tArg1:T1\tArg2:T2\n", "relations.tsv:1: expected the label CPR:0"),
        ("relations", "7\tCPR:3\tArg1:T1\tArg2:T2\n", ":1: expected 6 columns, found 4"),
        ("relations", "7\tCPR:3\tY \tX\tArg1:T2\tArg2:T1\n", ":1: expected Arg1 of a chemical and Arg2 of a gene"),
        ("relations", "7\tCPR:3\tY \tX\tArg1:T1\tArg2:T99\n", ":1: expected Arg1"),
        ("relations", "8\tCPR:3\tY \tX\tsecret\tArg2:T2\n", ":1: expected Arg1"),
    ],
)
def test_bad_chemprot_files(tmp_path, part, text, message):
    files = write_chemprot(tmp_path)
    write(tmp_path / f"{part}.tsv", text)
    for read in (chemprot.read_chemprot, chemprot.read_chemprot_blue):
        fails(message, read, *files, sentences)


def test_chemprot_wants_a_splitter_that_only_cuts(tmp_path):
    files = write_chemprot(tmp_path)
    for read in (chemprot.read_chemprot, chemprot.read_chemprot_blue):
        fails("document 7: the splitter changed a sentence", read, *files, lambda text: [text.upper()])


def test_missing_punkt_says_how_to_get_it(tmp_path, monkeypatch):
    def find(language):
        raise LookupError

    monkeypatch.setitem(sys.modules, "nltk.tokenize.punkt", SimpleNamespace(PunktTokenizer=find))
    chemprot.load_punkt.cache_clear()
    fails("ChemProt needs NLTK's punkt: python -m nltk", chemprot.read_chemprot, *write_chemprot(tmp_path))


def test_punkt_splits_made_up_text(tmp_path, punkt):
    pairs = chemprot.read_chemprot(*write_chemprot(tmp_path))
    assert [pair.id for pair in pairs] == ["7.T1.T2", "7.T3.T4", "7.T5.T6"]


def test_chemprot_natural_text_needs_no_splitter(tmp_path):
    path = write(tmp_path / "abstracts.tsv", ABSTRACTS + "8\tTitle only\t \n")
    assert chemprot.read_chemprot_abstracts(path) == [
        "Iron and ferritin.", "Zinc binds HBA. Opium HBA x", "Title only",
    ]  # fmt: skip


# Sets made of ChemProt


def lim(label="2", words="bc6entg, binds, bc6entc, .", ids="7\tT2\tT1") -> str:
    return f"{label}\t( {words.replace(',', '')} )\t{words}\t{ids}\n"


def test_lim(tmp_path):
    text = lim() + lim("0", "x, ,, bc6entg", "7\tT1\tT3")
    path = write_zip(tmp_path / "a.zip", {"dev": text, "other": ""})
    first, second = tables.read_chemprot_lim(path, "dev")
    ends = Mention("T2", "GENE", 0, 7), Mention("T1", "CHEMICAL", 14, 21)
    assert first == Relation("7.T2.T1", "bc6entg binds bc6entc .", *ends, "CPR:4", masked=True, document="7")
    # One dummy is missing: both mentions stand at the other.
    assert (second.text, second.label) == ("x , bc6entg", "false")
    assert (second.first, second.second) == (Mention("T1", "CHEMICAL", 4, 11), Mention("T3", "GENE", 4, 11))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "dev: empty file"),
        ("secret\tsecret\n", "dev:1: expected 6 columns, found 2"),
        (lim() + lim("6"), "dev:2: expected the label 0, 1, 2, 3, 4, 5"),
        (lim() + lim(), "dev:2: an id that is empty or came before"),
        (lim(ids="7\tT1\t"), "dev:1: an id that is empty or came before"),
        (lim(words="secret"), "dev:1: expected bc6entc and bc6entg, found 0 dummies"),
        (lim(words="bc6entc, bc6entc, secret"), "dev:1: expected bc6entc and bc6entg, found 2 dummies"),
        (lim().encode() + b"\xff", "dev:2: not UTF-8"),
    ],
)
def test_bad_lim_members(tmp_path, text, message):
    fails(message, tables.read_chemprot_lim, write_zip(tmp_path / "a.zip", {"dev": text}), "dev")


def test_bioelectra(tmp_path):
    text = 'sentence\tlabel\r\nBC6OTHER , BC6ENTC and BC6ENTG\tFalse\r\n"The ""old"" BC6ENTG"\tCPR:9\r\n'
    first, second = tables.read_chemprot_bioelectra(write(tmp_path / "a.tsv.gz", gzip.compress(text.encode())))
    ends = Mention("", "CHEMICAL", 11, 18), Mention("", "GENE", 23, 30)
    assert first == Relation("1", "BC6OTHER , BC6ENTC and BC6ENTG", *ends, "false", masked=True)
    assert (second.id, second.text, second.label) == ("2", 'The "old" BC6ENTG', "CPR:9")
    assert second.first[2:] == second.second[2:] == (10, 17)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.tsv: empty file"),
        ("sentence\tlabel\n", "a.tsv: no rows in the file"),
        ("secret\tsecret\n", ":1: expected the header sentence, label"),
        ("sentence\tlabel\nsecret\n", ":2: expected 2 columns, found 1"),
        ("sentence\tlabel\nBC6ENTC BC6ENTG\tsecret\n", ":2: expected the label False, CPR:3"),
        ("sentence\tlabel\nsecret\tFalse\n", ":2: expected BC6ENTC and BC6ENTG, found 0 dummies"),
        ('sentence\tlabel\nBC6ENTC "BC6ENTG secret\tFalse\n', ":2: a quotation mark"),
    ],
)
def test_bad_bioelectra_files(tmp_path, text, message):
    fails(message, tables.read_chemprot_bioelectra, write(tmp_path / "a.tsv", text))


def scibert(**changes) -> str:
    return json.dumps({"text": "It << a b >>-like [[ c ]] >>.", "label": "AGONIST", "metadata": []} | changes) + "\n"


def test_scibert(tmp_path):
    (found,) = chemprot.read_chemprot_scibert(write(tmp_path / "a.txt", scibert()))
    assert found == Relation(
        "1", "It a b-like c >>.", Mention("", "ENTITY", 3, 6), Mention("", "ENTITY", 12, 13), "AGONIST"
    )
    assert found.dummify().text == "It @ENTITY$-like @ENTITY$ >>."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.txt: empty file"),
        (scibert() + "secret", "a.txt:2: not JSON"),
        ('["secret"]\n', "a.txt:1: not a JSON object"),
        (scibert(text="[[ secret ]] << a >>"), "a.txt:1: expected a text with << >> and then"),
        (scibert(text=["secret"]), "a.txt:1: expected a text"),
        (scibert(label="secret"), "a.txt:1: expected the label ACTIVATOR"),
        (scibert(label=["secret"]), "a.txt:1: expected the label"),
    ],
)
def test_bad_scibert_files(tmp_path, text, message):
    fails(message, chemprot.read_chemprot_scibert, write(tmp_path / "a.txt", text))


# DDI


def write_ddi(folder, body: str, head: str = ""):
    """A zip of one training file, and a list that names it."""
    members = {"DDICorpus/Train/DrugBank/a b.xml": f"{head}<document id='d'>{body}</document>"}
    return write_zip(folder / "ddi.zip", members), write(folder / "files.tsv", "train_dataset/DrugBank/a b.xml\n")


def sentence(text: str, drugs: dict[str, str], *pairs: str) -> str:
    """A sentence with entities e0, e1 ... by offsets, and pairs such as `e0 e1 ddi="false"`."""
    entities = "".join(
        f'<entity id="e{number}" charOffset="{offsets}" text={quoteattr(words)}/>'
        for number, (offsets, words) in enumerate(drugs.items())
    )
    ends = [(pair[:2], pair[3:5], pair[6:]) for pair in pairs]
    inner = "".join(f'<pair id="p{n}" e1="{one}" e2="{other}" {rest}/>' for n, (one, other, rest) in enumerate(ends))
    return f'<sentence id="s" text={quoteattr(text)}>{entities}{inner}</sentence>'


FALSE, INT = 'ddi="false"', 'ddi="true" type="int"'
DRUGS = {"0-3": "Iron", "6-9": "zinc", "15-18;26-29": "oral gold", "23-29": "IV gold"}


def test_ddi_pairs(tmp_path):
    text = "Iron, zinc and oral or\nIV gold"
    body = sentence(text, DRUGS, f"e1 e0 {INT}", f"e0 e2 {FALSE}", f"e3 e2 {FALSE}", 'e0 e3 ddi="true"')
    found = ddi.read_ddi(*write_ddi(tmp_path, body + sentence(" ", {})))
    assert in_brief(found) == [
        ("p0", "@DRUG$, @DRUG$ and oral or IV gold", "DDI-int"),  # in text order, whichever is named first
        ("p1", "@DRUG$, zinc and @DRUG$", "DDI-false"),  # a mention in parts reaches over what is between them
        ("p2", "Iron, zinc and @DRUG-DRUG$", "DDI-false"),
        ("p3", "@DRUG$, zinc and oral or @DRUG$", "DDI-false"),  # true, but of no type
    ]
    ends = Mention("e0", "DRUG", 0, 4), Mention("e1", "DRUG", 6, 10)
    assert found[0] == Relation("p0", text, *ends, "DDI-int", document="d")
    assert ddi.read_ddi_sentences(*write_ddi(tmp_path, body + sentence(" ", {}))) == [text]


TWO = {"0-2": "sec", "3-5": "ret"}


@each(
    ("body", "message"),
    [
        (sentence("secret", {"2-6": "cret"}), "a b.xml: sentence s, entity 1: does not stand at its offsets"),
        (sentence("secret", {"4-2": "c"}), "entity 1: does not stand at its offsets"),
        (sentence("secret", {"0-1": "cr"}), "entity 1: does not stand at its offsets"),
        (sentence("secret", {"0-1;4-9": "se et"}), "entity 1: does not stand at its offsets"),
        (sentence("secret", {"": "secret"}), "entity 1: expected a charOffset such as"),
        (sentence("secret", {"0-1;": "se"}), "entity 1: expected a charOffset such as"),
        (sentence("secret", TWO).replace("e1", "e0"), "entity 2: no id of its own"),
        (sentence("secret", TWO, f"e0 e7 {FALSE}"), "a b.xml: pair p0 names an unknown entity"),
        (sentence("secret", TWO, f"e0 e0 {FALSE}"), "pair p0 names an unknown entity"),
        (sentence("secret", TWO, 'e0 e1 ddi="secret"'), "pair p0: expected ddi true or false"),
        (sentence("secret", TWO, 'e0 e1 ddi="true" type="secret"'), "pair p0: expected ddi .* mechanism, effect"),
        (2 * sentence("secret", TWO, f"e0 e1 {FALSE}"), "pair p0 has no id of its own"),
        (sentence("secret", TWO), "files.tsv: no pair in its files"),
        ("secret", "a b.xml: not a document with sentences"),
        ("<sentence text='secret'>", "a b.xml:1: not well-formed XML"),
        ("<sentence text='&secret;'/>", "a b.xml:1: not well-formed XML"),
    ],
)
def test_bad_ddi_files(tmp_path, body, message):
    fails(message, ddi.read_ddi, *write_ddi(tmp_path, body))


@pytest.mark.parametrize("entity", ['SYSTEM "file:///etc/hostname"', '"' + 9 * "ha" + '"'])
def test_ddi_expands_no_entities(tmp_path, entity):
    files = write_ddi(tmp_path, "<sentence text='a'>&x;</sentence>", f"<!DOCTYPE document [<!ENTITY x {entity}>]>")
    for read in (ddi.read_ddi, ddi.read_ddi_sentences):
        fails("entities of its own", read, *files)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("train_dataset/DrugBank/a b.xml,test_dataset/MedLine/9.xml", r"MedLine/9\.xml: no such member"),
        ("", "files.tsv: empty file"),
        ("train_dataset/DrugBank/a b.xml\nsecret\n", "files.tsv:2: expected names such as train_dataset/DrugBank"),
        ("train_dataset/DrugBank/../x.xml", "files.tsv:1: expected names"),
        ("/train_dataset/DrugBank/x.xml", "files.tsv:1: expected names"),
    ],
)
def test_bad_split_lists(tmp_path, names, message):
    corpus, split_list = write_ddi(tmp_path, sentence("secret", TWO, f"e0 e1 {FALSE}"))
    fails(message, ddi.read_ddi, corpus, write(split_list, names))


def test_ddi_table(tmp_path):
    text = "D.d1.s0.p0\tA @DRUG$ or @DRUG$ \tDDI-int\nD.d1.s0.p1\tA @DRUG-DRUG$\tDDI-false\n"
    first, second = tables.read_ddi_table(write(tmp_path / "a.tsv", text))
    ends = Mention("", "DRUG", 2, 8), Mention("", "DRUG", 12, 18)
    assert first == Relation("D.d1.s0.p0", "A @DRUG$ or @DRUG$ ", *ends, "DDI-int", masked=True, document="D.d1")
    assert second.first == second.second == Mention("", "DRUG", 2, 13) and second.label == "DDI-false"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.tsv: empty file"),
        ("p\tsecret\n", ":1: expected 3 columns, found 2"),
        ("p\t@DRUG$ @DRUG$\tsecret\n", ":1: expected the label DDI-false"),
        ("p\t@DRUG$ secret\tDDI-int\n", ":1: expected @DRUG. and @DRUG., found 1 dummies"),
        ("p\t@DRUG$ @DRUG-DRUG$\tDDI-int\n", "found 2 dummies"),
        (2 * "p\t@DRUG-DRUG$\tDDI-int\n", ":2: an id that is empty or came before"),
        ("\t@DRUG-DRUG$\tDDI-int\n", ":1: an id that is empty or came before"),
    ],
)
def test_bad_ddi_tables(tmp_path, text, message):
    fails(message, tables.read_ddi_table, write(tmp_path / "a.tsv", text))


# GAD and EU-ADR

PLAIN = "In @DISEASE$ the @GENE$ is\t1\nNo @GENE$ in @DISEASE$\t0\n"


def test_gad_with_and_without_header(tmp_path):
    first, second = tables.read_gad(write(tmp_path / "a.tsv", PLAIN))
    ends = Mention("", "DISEASE", 3, 12), Mention("", "GENE", 17, 23)
    assert first == Relation("0", "In @DISEASE$ the @GENE$ is", *ends, "1", masked=True)
    assert (second.id, second.first.kind, second.label) == ("1", "GENE", "0")
    rows = [f"{number + 5}\t{row}\n" for number, row in enumerate(PLAIN.splitlines())]
    headed = tables.read_gad(write(tmp_path / "a.tsv", "".join(["index\tsentence\tlabel\n", *rows])))
    assert [relation.id for relation in headed] == ["5", "6"]
    assert [in_brief([relation])[0][1:] for relation in headed] == [row[1:] for row in in_brief([first, second])]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": empty file"),
        ("index\tsentence\tlabel\n", ": no rows in the file"),
        ("0\tsecret\t1\n", ":1: expected 2 columns, found 3"),
        ("index\tsentence\tlabel\n@GENE$ @DISEASE$\t1\n", ":2: expected 3 columns, found 2"),
        ("@GENE$ @DISEASE$\tsecret\n", ":1: expected the label 0, 1"),
        (PLAIN + "@GENE$ secret\t1\n", ":3: expected @GENE. and @DISEASE., found 1 dummies"),
        ("@GENE$ @GENE$ @DISEASE$\t1\n", ":1: expected .* found 3 dummies"),
        ("index\tsentence\tlabel\n" + 2 * "3\t@GENE$ @DISEASE$\t1\n", ":3: an id that is empty or came before"),
        (b"@GENE$ \xff\t1\n", ":1: not UTF-8"),
    ],
)
def test_bad_gad_files(tmp_path, text, message):
    fails(message, tables.read_gad, write(tmp_path / "a.tsv", text))
    if isinstance(text, str):
        archive = write_tar(tmp_path / "a.tar.gz", {"GAD/1/test.tsv": text})
        fails(message, tables.read_gad, archive, "GAD/1/test.tsv")


def test_gad_archive(tmp_path):
    archive = write_tar(tmp_path / "a.tar.gz", {"GAD/1/dev.tsv": "", "GAD/1/train.tsv": PLAIN})
    found = tables.read_gad(archive, "GAD/1/train.tsv")
    assert found == tables.read_gad(write(tmp_path / "a.tsv", PLAIN)) and len(found) == 2
    fails("GAD/1/dev.tsv: empty file", tables.read_gad, archive, "GAD/1/dev.tsv")
    fails("GAD/2/test.tsv: no such member", tables.read_gad, archive, "GAD/2/test.tsv")


# Archives


@pytest.mark.parametrize("name", ["../x", "/x", "GAD/../../x"])
def test_archives_with_paths_that_lead_outside(tmp_path, name):
    for archive in (
        write_tar(tmp_path / "a.tar.gz", {"a": "", name: ""}),
        write_zip(tmp_path / "a", {"a": "", name: ""}),
    ):
        fails("paths that lead outside: refused", read_members, archive, ["a"])


def test_archives_with_links_and_names_twice(tmp_path):
    fails("has links", read_members, write_tar(tmp_path / "a", {"a": ""}, link="/etc/hostname"), ["a"])
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    fails("has links", read_members, write_zip(tmp_path / "a", {"a": "", link: "a"}), ["a"])
    twice = {"a": "", zipfile.ZipInfo("x"): "1", zipfile.ZipInfo("x"): "2"}
    with pytest.warns(UserWarning, match="Duplicate name"):
        archive = write_zip(tmp_path / "a", twice)
    fails("names twice", read_members, archive, ["a"])


@pytest.mark.parametrize("length", [0, 2, 30, 100])
def test_archives_that_were_cut_off(tmp_path, length):
    for archive in (write_tar(tmp_path / "a", {"a": PLAIN}), write_zip(tmp_path / "b", {"a": PLAIN})):
        write(archive, archive.read_bytes()[:length])
        fails("cut off(,| or) damaged", read_members, archive, ["a"])


# Any instances, any bytes

WORDS = st.text("abc é\u0663", min_size=1, max_size=8).map(lambda text: f"x{text}x")


@st.composite
def corpora(draw) -> tuple[str, str, str, list[tuple[str, str, str, str]]]:
    """Files of ChemProt with a pair in each sentence, and what they hold: id, text, masked text, label."""
    abstracts, entities, groups, expected = [], [], [], []
    for pmid in map(str, range(draw(st.integers(1, 3)))):
        parts, start = [], 0
        for place in range(draw(st.integers(2, 4))):
            chemical, gene, middle = draw(WORDS), draw(WORDS), draw(WORDS)
            label, turned = draw(st.sampled_from(tables.CHEMPROT_LABELS)), draw(st.booleans())
            first, second = (gene, chemical) if turned else (chemical, gene)
            parts.append(f"{first} {middle} {second}.")
            ids = f"T{2 * place}", f"T{2 * place + 1}"
            kinds = ("GENE-Y", "CHEMICAL") if turned else ("CHEMICAL", "GENE-N")
            at = start, start + len(first) + len(middle) + 2
            for id, kind, word, begin in zip(ids, kinds, (first, second), at, strict=True):
                entities.append(f"{pmid}\t{id}\t{kind}\t{begin}\t{begin + len(word)}\t{word}\n")
            one, other = reversed(ids) if turned else ids
            group = "CPR:7" if label == "false" else label
            groups.append(f"{pmid}\t{group}\tY \tX\tArg1:{one}\tArg2:{other}\n")
            dummies = ("@GENE$", "@CHEMICAL$") if turned else ("@CHEMICAL$", "@GENE$")
            expected.append((".".join((pmid, *ids)), parts[-1], f"{dummies[0]} {middle} {dummies[1]}.", label))
            start += len(parts[-1]) + 1
        abstracts.append(f"{pmid}\t{parts[0]}\t{' '.join(parts[1:])}\n")
    return "".join(abstracts), "".join(entities), "".join(groups), expected


@QUICK
@given(corpora())
def test_any_chemprot_comes_back(tmp_path, corpus):
    *texts, expected = corpus
    found = chemprot.read_chemprot(*write_chemprot(tmp_path, *texts), sentences)
    assert [(one.id, one.text, one.dummify().text, one.label) for one in found] == expected
    natural = [text for row in texts[0].splitlines() for text in row.split("\t")[1:]]
    assert chemprot.read_chemprot_abstracts(tmp_path / "abstracts.tsv") == natural
    blue = chemprot.read_chemprot_blue(tmp_path / "abstracts.tsv", *write_chemprot(tmp_path, *texts)[1:], sentences)
    assert {(one.document, one.label) for one in found} <= {(one.document, one.label) for one in blue}


def masked(dummies: tuple[str, str], labels: tuple[str, ...]):
    """Rows of a masked set: text, where the two dummies begin, label."""
    both = st.permutations(dummies)
    return st.lists(
        st.builds(
            lambda pair, before, middle, after, label: (
                f"{before} {pair[0]} {middle} {pair[1]} {after}",
                (len(before) + 1, len(before) + len(pair[0]) + len(middle) + 3),
                label,
            ),
            both, WORDS, WORDS, WORDS, st.sampled_from(labels),
        ),
        min_size=1,
        max_size=5,
    )  # fmt: skip


def in_rows(found: list[Relation]) -> list[tuple[str, tuple[int, int], str]]:
    return [(relation.text, (relation.first.start, relation.second.start), relation.label) for relation in found]


@QUICK
@given(masked(("@GENE$", "@DISEASE$"), ("0", "1")), st.booleans())
def test_any_gad_comes_back(tmp_path, rows, header):
    lines = [f"{text}\t{label}\n" for text, _, label in rows]
    table = "".join(
        ["index\tsentence\tlabel\n", *(f"{n}\t{line}" for n, line in enumerate(lines))] if header else lines
    )
    found = tables.read_gad(write(tmp_path / "a.tsv", table))
    assert in_rows(found) == rows and [relation.id for relation in found] == [str(n) for n in range(len(rows))]
    assert tables.read_gad(write_tar(tmp_path / "a.tar.gz", {"x": table}), "x") == found


@QUICK
@given(masked(("@DRUG$", "@DRUG$"), tables.DDI_LABELS))
def test_any_ddi_table_comes_back(tmp_path, rows):
    table = "".join(f"d.s.p{number}\t{text}\t{label}\n" for number, (text, _, label) in enumerate(rows))
    assert in_rows(tables.read_ddi_table(write(tmp_path / "a.tsv", table))) == rows


@QUICK
@given(masked(("BC6ENTC", "BC6ENTG"), tables.CHEMPROT_LABELS), st.booleans())
def test_any_bioelectra_comes_back(tmp_path, rows, quoted):
    rows = [(f'{text} "', ends, label) for text, ends, label in rows] if quoted else rows
    texts = ['"' + text.replace('"', '""') + '"' if quoted else text for text, _, _ in rows]
    labels = ["False" if label == "false" else label for _, _, label in rows]
    table = "".join(f"{text}\t{label}\r\n" for text, label in zip(texts, labels, strict=True))
    found = tables.read_chemprot_bioelectra(write(tmp_path / "a.tsv", "sentence\tlabel\r\n" + table))
    assert in_rows(found) == rows


@QUICK
@given(masked(("bc6entc", "bc6entg"), tables.CHEMPROT_LABELS))
def test_any_lim_comes_back(tmp_path, rows):
    rows = [(" ".join(text.split()), None, label) for text, _, label in rows]
    lines = [
        lim(str(tables.CHEMPROT_LABELS.index(label)), ", ".join(text.split()), f"7\tT{number}\tT99")
        for number, (text, _, label) in enumerate(rows)
    ]
    found = tables.read_chemprot_lim(write_zip(tmp_path / "a.zip", {"m": "".join(lines)}), "m")
    assert [(one.text, None, one.label) for one in found] == rows
    assert all(one.text[one.first.start : one.first.end].startswith("bc6ent") for one in found)
    assert [one.id for one in found] == [f"7.T{number}.T99" for number in range(len(rows))]


@QUICK
@given(st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS, WORDS, st.sampled_from(chemprot.RELATION_TYPES)), min_size=1))
def test_any_scibert_comes_back(tmp_path, rows):
    lines = [scibert(text=f"{a}<< {b} >>{c}[[ {d} ]]{e}", label=label) for a, b, c, d, e, label in rows]
    found = chemprot.read_chemprot_scibert(write(tmp_path / "a.txt", "".join(lines)))
    assert [(one.text, one.label) for one in found] == [("".join(row[:5]), row[5]) for row in rows]
    cut = [(one.text[one.first.start : one.first.end], one.text[one.second.start : one.second.end]) for one in found]
    assert cut == [(row[1], row[3]) for row in rows]


@QUICK
@given(st.lists(st.tuples(WORDS, WORDS, WORDS, st.sampled_from(tables.DDI_LABELS)), min_size=1, max_size=5))
def test_any_ddi_corpus_comes_back(tmp_path, rows):
    body = ""
    for number, (one, middle, other, label) in enumerate(rows):
        drugs = {f"0-{len(one) - 1}": one, f"{len(one + middle)}-{len(one + middle + other) - 1}": other}
        kind = label.removeprefix("DDI-")
        pair = f"e0 e1 {FALSE if kind == 'false' else INT.replace('int', kind)}"
        body += sentence(one + middle + other, drugs, pair).replace('"p0"', f'"p{number}"')
    found = ddi.read_ddi(*write_ddi(tmp_path, body))
    expected = [(f"p{number}", f"@DRUG${middle}@DRUG$", label) for number, (_, middle, _, label) in enumerate(rows)]
    assert in_brief(found) == expected
    assert [one.text for one in found] == ["".join(row[:3]) for row in rows]


READERS = {
    "chemprot": (lambda *files: chemprot.read_chemprot(*files, sentences), 3),
    "chemprot-blue": (lambda *files: chemprot.read_chemprot_blue(*files, sentences), 3),
    "chemprot-abstracts": (chemprot.read_chemprot_abstracts, 1),
    "bioelectra": (tables.read_chemprot_bioelectra, 1),
    "scibert": (chemprot.read_chemprot_scibert, 1),
    "lim": (lambda path: tables.read_chemprot_lim(path, "m"), 1),
    "gad": (tables.read_gad, 1),
    "gad-archive": (lambda path: tables.read_gad(path, "m"), 1),
    "ddi": (ddi.read_ddi, 2),
    "ddi-sentences": (ddi.read_ddi_sentences, 2),
    "ddi-table": (tables.read_ddi_table, 1),
}


def whole_files(folder, key: str) -> list:
    """Files of each format, hand-made and well formed."""
    table = write(folder / "a", {
        "bioelectra": "sentence\tlabel\r\nBC6ENTC BC6ENTG\tFalse\r\n", "scibert": scibert(), "gad": PLAIN,
        "ddi-table": "D.d1.s0.p0\tA @DRUG$ or @DRUG$\tDDI-int\n", "chemprot-abstracts": ABSTRACTS,
    }.get(key, ""))  # fmt: skip
    if key in ("chemprot", "chemprot-blue"):
        return write_chemprot(folder)
    if key.startswith("ddi") and key != "ddi-table":
        return list(write_ddi(folder, sentence("Iron, zinc", {"0-3": "Iron", "6-9": "zinc"}, f"e0 e1 {INT}")))
    if key == "lim":
        return [write_zip(folder / "a.zip", {"m": lim()})]
    return [write_tar(folder / "a.tar.gz", {"m": PLAIN})] if key == "gad-archive" else [table]


def instances_or_error(read, files) -> bool:
    """Whether instances came; a StudyError is the only other end."""
    try:
        found = read(*files)
    except StudyError as error:
        assert str(error)
        return False
    return isinstance(found, list) and all(isinstance(one, Relation | str) for one in found)


@pytest.mark.parametrize("key", READERS)
@QUICK
@given(data=st.data())
def test_damaged_files_give_instances_or_an_error(tmp_path, key, data):
    read, count = READERS[key]
    files = whole_files(tmp_path, key)
    assert len(files) == count and instances_or_error(read, files)
    path = data.draw(st.sampled_from(files))
    content = path.read_bytes()
    place, change = data.draw(st.integers(0, len(content) - 1)), data.draw(st.binary(max_size=4))
    write(path, content[:place] + change + content[place + len(change) :])
    assert instances_or_error(read, files) in (True, False)
    write(path, content[:place])
    if path.suffix in (".zip", ".gz"):
        assert not instances_or_error(read, files)  # a packed file that was cut off is never taken for whole
    assert instances_or_error(read, files) in (True, False)
    write(path, data.draw(st.binary(max_size=60)))
    assert not instances_or_error(read, files)


# Made-up data

NAMES = {
    "drug": [f"drug{letter}ol" for letter in "abcdefgh"], "disease": [f"bad{letter}itis" for letter in "abcdefgh"],
    "device": [f"{letter}avo" for letter in "bcdfghkl"], "place": ["Town"],
}  # fmt: skip


@pytest.fixture(scope="module")
def smoke(tmp_path_factory):
    folder = tmp_path_factory.mktemp("smoke")
    smoke_relations.write(folder, random.Random(1), NAMES)
    return folder


def read_smoke(folder, key: str, split: str) -> list[Relation]:
    gz = folder / f"re/chemprot-bioelectra/{split}.tsv.gz"
    corpus = [folder / CHEMPROT[split].format(what) for what in ("abstracts", "entities", "relations")]
    return {
        "chemprot": lambda: chemprot.read_chemprot(*corpus, sentences),
        "chemprot-blue": lambda: chemprot.read_chemprot_blue(*corpus, sentences),
        "lim": lambda: tables.read_chemprot_lim(folder / LIM, tables.LIM_MEMBERS[split]),
        "bioelectra": lambda: tables.read_chemprot_bioelectra(gz),
        "scibert": lambda: chemprot.read_chemprot_scibert(folder / f"re/chemprot-scibert/{split}.txt"),
        "ddi": lambda: ddi.read_ddi(folder / ZIP, folder / f"re/ddi/splits/{split}_files.tsv"),
        "gad": lambda: tables.read_gad(folder / f"re/gad/blurb/{split}.tsv"),
        "gad-bioelectra": lambda: tables.read_gad(folder / f"re/gad/bioelectra/{split}.tsv"),
    }[key]()


CORPUS = Counter(tables.CHEMPROT_LABELS)
SMOKE = {
    "chemprot": (48, 40, 40, CORPUS), "chemprot-blue": (48, 40, 40, CORPUS), "lim": (48, 40, 40, CORPUS),
    "bioelectra": (47, 39, 39, CORPUS), "scibert": (39, 32, 32, Counter(smoke_relations.RELATION_NAMES.values())),
    "ddi": (48, 40, 40, Counter(tables.DDI_LABELS)), "gad": (64, 8, 8, Counter("01")),
    "gad-bioelectra": (72, 8, 8, Counter("01")),
}  # fmt: skip


@pytest.mark.parametrize("key", SMOKE)
def test_made_up_sets(smoke, key):
    *counts, labels = SMOKE[key]
    found = {split: read_smoke(smoke, key, split) for split in SPLITS}
    assert [len(found[split]) for split in SPLITS] == counts
    assert all({one.label for one in rows} == set(labels) for rows in found.values())
    texts = [one.text for split in SPLITS if (key, split) != ("gad-bioelectra", "dev") for one in found[split]]
    assert len(set(texts)) == len(texts)


def test_made_up_forms_of_one_corpus_agree(smoke):
    dev = read_smoke(smoke, "chemprot", "dev")
    with gzip.open(smoke / "re/chemprot-blurb/dev.tsv.gz", "rt") as file:
        assert [tuple(line.rstrip("\n").split("\t")) for line in file] == in_brief(dev)
    assert [(one.id, one.label) for one in read_smoke(smoke, "lim", "dev")] == [(one.id, one.label) for one in dev]
    whole = tables.read_chemprot_lim(smoke / LIM, "train_whole_SNLIformat")
    assert whole == read_smoke(smoke, "lim", "train") + read_smoke(smoke, "lim", "dev")
    for split in ("dev", "test"):
        table = tables.read_ddi_table(smoke / f"re/ddi/blurb/{split}.tsv")
        assert in_brief(table) == in_brief(read_smoke(smoke, "ddi", split))


def test_made_up_folds(smoke):
    tests = [tables.read_gad(smoke / FOLDS, f"GAD/{fold}/test.tsv") for fold in range(1, 11)]
    euadr = [tables.read_gad(smoke / f"re/euadr/{fold}/test.tsv") for fold in range(1, 11)]
    for folds in (tests, euadr):
        assert len({one.text for rows in folds for one in rows}) == sum(map(len, folds)) == 80
        assert all({one.label for one in rows} == {"0", "1"} for rows in folds)
    for fold in range(10):
        trains = (
            tables.read_gad(smoke / FOLDS, f"GAD/{fold + 1}/train.tsv"),
            tables.read_gad(smoke / f"re/euadr/{fold + 1}/train.tsv"),
        )
        for train, test in zip(trains, (tests[fold], euadr[fold]), strict=True):
            assert len(train) == 72 and not {one.text for one in train} & {one.text for one in test}


def test_made_up_files_are_the_same_each_time(smoke, tmp_path):
    smoke_relations.write(tmp_path, random.Random(1), NAMES)
    paths = sorted(path.relative_to(smoke) for path in smoke.rglob("*") if path.is_file())
    assert len(paths) == 50 and paths == sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    assert all((smoke / path).read_bytes() == (tmp_path / path).read_bytes() for path in paths)


def test_punkt_cuts_made_up_text_as_the_splitter_of_the_tests(smoke, punkt):
    files = [smoke / CHEMPROT["dev"].format(what) for what in ("abstracts", "entities", "relations")]
    assert chemprot.read_chemprot(*files) == chemprot.read_chemprot(*files, sentences)


# Real data: counts and comparisons only, so that no text is printed


def need(folder, *names: str) -> list:
    """Paths below the folder of real data; the test skips when one is not there."""
    found = [folder / name for name in names]
    if missing := [path.name for path in found if not path.is_file()]:
        pytest.skip(f"no {missing[0]} in the data folder")
    return found


def count(found: list[Relation]) -> dict[str, int]:
    return dict(Counter(relation.label for relation in found))


@pytest.mark.parametrize(
    ("split", "blob", "labels", "blue"),
    [
        # Labels in the order of CHEMPROT_LABELS. The names in git are those of BLURB's files in KeBioLM's repository.
        ("train", "d96c15e279cb97e7215d52bae53f02586c6e3020", (13923, 756, 2227, 173, 229, 727), (18733, 4157)),
        ("dev", "4410e5ed378942526fdd5e7f61fe331be4eba18e", (8860, 546, 1091, 115, 199, 457), (11734, 2416)),
        ("test", "27b03d66258f0373e6600e0de42cfcf6d00a06c5", (12315, 663, 1655, 178, 292, 642), (16269, 3457)),
    ],
)
def test_real_chemprot_is_blurbs_byte_for_byte(real_data, punkt, split, blob, labels, blue):
    files = need(real_data, *(CHEMPROT[split].format(what) for what in ("abstracts", "entities", "relations")))
    found = chemprot.read_chemprot(*files)
    assert len(found) == {"train": 18035, "dev": 11268, "test": 15745}[split]
    assert count(found) == dict(zip(tables.CHEMPROT_LABELS, labels, strict=True))
    assert git_blob(found) == blob
    if split == "dev":  # the one file of BLURB's that is at hand
        (table,) = need(real_data, "re/chemprot-blurb/dev.tsv.gz")
        with gzip.open(table, "rt", encoding="utf-8", newline="\n") as file:
            agree = sum(
                tuple(line.rstrip("\n").split("\t")) == row for line, row in zip(file, in_brief(found), strict=True)
            )
        assert agree == 11268
    rows = chemprot.read_chemprot_blue(*files)
    assert (len(rows), sum(row.label != "false" for row in rows)) == blue
    natural = chemprot.read_chemprot_abstracts(files[0])
    assert len(natural) == 2 * {"train": 1020, "dev": 612, "test": 800}[split]


@pytest.mark.parametrize(
    ("split", "lim_labels", "lost", "scibert_rows"),
    [
        ("train", (12389, 761, 2251, 173, 235, 713), 24, (4169, 13)),
        ("dev", (7950, 548, 1093, 115, 199, 457), 6, (2427, 12)),
        ("test", (10956, 664, 1658, 183, 292, 644), 15, (3469, 12)),
    ],
)
def test_real_sets_made_of_chemprot(real_data, split, lim_labels, lost, scibert_rows):
    """Bio-ELECTRA's rows are Lim and Kang's without the first; BioBERT prints 14,443 for the test set."""
    archive, table, lines = need(
        real_data, LIM, f"re/chemprot-bioelectra/{split}.tsv.gz", f"re/chemprot-scibert/{split}.txt"
    )
    found = tables.read_chemprot_lim(archive, tables.LIM_MEMBERS[split])
    assert count(found) == dict(zip(tables.CHEMPROT_LABELS, lim_labels, strict=True))
    assert sum(one.first[2:] == one.second[2:] for one in found) == lost
    rows = tables.read_chemprot_bioelectra(table)
    same_labels = [one.label for one in rows] == [one.label for one in found[1:]]
    assert same_labels and len(rows) == {"train": 16521, "dev": 10361, "test": 14396}[split]
    related = chemprot.read_chemprot_scibert(lines)
    assert (len(related), len(count(related))) == scibert_rows


def test_real_lim_training_and_development_together(real_data):
    (archive,) = need(real_data, LIM)
    found = tables.read_chemprot_lim(archive, "train_whole_SNLIformat")
    labels = (20339, 1309, 3344, 288, 434, 1170)  # sums of the two splits
    assert count(found) == dict(zip(tables.CHEMPROT_LABELS, labels, strict=True))


@pytest.mark.parametrize(
    ("split", "labels", "natural"),
    [
        ("train", (21745, 1163, 1486, 725, 177), 6074),
        ("dev", (2027, 156, 201, 101, 11), 831),
        ("test", (4737, 302, 360, 221, 96), 1299),
    ],
)
def test_real_ddi(real_data, split, labels, natural):
    """The corpus makes BLURB's test file byte for byte, and the ids and labels of its development file.

    There the texts of two documents differ by a character: BLURB's corpus was another release.
    """
    files = need(real_data, ZIP, f"re/ddi/splits/{split}_files.tsv")
    found = ddi.read_ddi(*files)
    assert count(found) == dict(zip(tables.DDI_LABELS, labels, strict=True))
    assert len(ddi.read_ddi_sentences(*files)) == natural
    if split == "train":
        assert {one.id: one.label for one in found}["DDI-DrugBank.d236.s29.p0"] == "DDI-false"
        return
    (path,) = need(real_data, f"re/ddi/blurb/{split}.tsv")
    table = tables.read_ddi_table(path)
    same_labels = [(one.id, one.document, one.label) for one in found] == [(o.id, o.document, o.label) for o in table]
    same_texts = sum(one.text == other.dummify().text for one, other in zip(table, found, strict=True))
    assert same_labels and same_texts == {"dev": 2475, "test": 5716}[split]
    overlaps = [sum(one.first.end > one.second.start for one in rows) for rows in (table, found)]
    assert overlaps[0] == overlaps[1] == {"dev": 3, "test": 7}[split]


def test_real_gad(real_data):
    names = [f"re/gad/{form}/{split}.tsv" for form in ("blurb", "bioelectra") for split in SPLITS]
    counts = [len(tables.read_gad(path)) for path in need(real_data, *names)]
    assert counts == [4261, 535, 534, 4796, 534, 534]


def test_real_gad_folds(real_data):
    """5,330 rows, of which 5,122 are distinct; BioBERT prints 5,339."""
    (archive,) = need(real_data, FOLDS)
    tests = [tables.read_gad(archive, f"GAD/{fold}/test.tsv") for fold in range(1, 11)]
    trains = [tables.read_gad(archive, f"GAD/{fold}/train.tsv") for fold in (1, 10)]
    assert [len(rows) for rows in tests] == [534, *8 * [533], 532] and [len(rows) for rows in trains] == [4796, 4798]
    assert len({(one.text, one.label) for rows in tests for one in rows}) == 5122


def test_real_euadr_folds(real_data):
    splits = [
        [
            len(tables.read_gad(path))
            for path in need(real_data, *(f"re/euadr/{fold}/{split}.tsv" for fold in range(1, 11)))
        ]
        for split in ("train", "test")
    ]
    assert splits == [[318, 318, 319, *7 * [320]], [37, 37, 36, *7 * [35]]]
