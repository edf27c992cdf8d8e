"""The texts of BLURB's sets: every reader and its quirks, what is said of bad files, the real files' counts."""

import gzip
import json
import sys
import zipfile
from collections import Counter
from types import SimpleNamespace

import pytest

from lib import datasets, instances, paths, relations
from lib.errors import StudyError

SPLITS = datasets.SPLITS
CHEMPROT = "re/chemprot/chemprot_training/chemprot_training_{}.tsv"
ZIP = "re/ddi/DDICorpus-2013.zip"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty data folder that the laptop scale reads."""
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def punkt():
    try:
        relations.load_punkt()
    except StudyError as reason:
        pytest.skip(str(reason))


def write(folder, name: str, text: str | bytes):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def write_chemprot(folder, abstracts: str, entities: str):
    write(folder, CHEMPROT.format("abstracts"), abstracts)
    write(folder, CHEMPROT.format("entities"), entities)
    return folder / "re/chemprot"


def write_ddi(folder, body: str, head: str = ""):
    """A zip of one training file, and a list that names it."""
    path = folder / ZIP
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as files:
        files.writestr("DDICorpus/Train/DrugBank/a b.xml", f"{head}<document>{body}</document>")
    return path, write(folder, "re/ddi/splits/train_files.tsv", "train_dataset/DrugBank/a b.xml\n")


def sentences(text: str) -> list[str]:
    """A splitter for made-up text: after every full stop and blank."""
    return text.replace(". ", ".|").split("|")


# Tagged files


def test_empty_blocks_count(tmp_path):
    path = write(tmp_path, "dev.tsv", "-DOCSTART-\tO\n\nAn\tO\nulcer\tB\n\n\nIt\tO\n-DOCSTART-\tO\n\nNo\tO")
    assert instances.read_blocks(path) == ["", "", "An ulcer", "", "It", "", "No"]


def test_pico_sentences_end_after_full_stops_only(tmp_path):
    text = "-DOCSTART- (1)\n\nTwo NN O O\n\nparts NN O I-PAR\n. . O O\nOpen NN O O\n\n"
    text += "-DOCSTART- (2)\n\nEnd NN O O\n. . O O\n"
    path = write(tmp_path, "dev.txt.gz", gzip.compress(text.encode()))
    assert instances.PICO(path) == ["", "", "Two parts .", "Open", "", "End ."]


@pytest.mark.parametrize("line", ["word", "\tO", " O"])
def test_malformed_tagged_lines(tmp_path, line):
    path = write(tmp_path, "dev.tsv", f"a\tO\n{line}\n")
    with pytest.raises(StudyError, match=r"dev\.tsv:2: expected a word and its tag"):
        instances.read_blocks(path)


# Tables and JSON lines


def test_tables(tmp_path):
    path = write(tmp_path, "dev.tsv", 'pair_id\tsent1\tsent2\tscore\n1\tA "quoted\tB\t2.5\r\n')
    assert instances.BIOSSES(path) == ['A "quoted B']
    path = write(tmp_path, "x.jsonl", json.dumps({"sentence1": "Is it?", "sentence2": "It is.", "label": "yes"}) + "\n")
    assert instances.PUBMEDQA(path) == ["Is it? It is."]


@pytest.mark.parametrize(
    ("reader", "text", "message"),
    [
        (instances.GAD, "index\ttext\tlabel\n", ":1: expected the header index, sentence, label"),
        (instances.GAD, "", ":1: expected the header"),
        (instances.GAD, "index\tsentence\tlabel\n0\tsecret\n", ":2: expected 3 columns, found 2"),
        (instances.BIOASQ, "id\tQ?\tsecret\tyes\n\n", ":2: expected 4 columns, found 1"),
        (instances.BIOASQ, b"id\t\xff\tsecret\tyes\n", ":1: not UTF-8"),
        (instances.PUBMEDQA, '{"sentence1": "secret"}\n', ":1: expected JSON with sentence1 sentence2"),
        (instances.PUBMEDQA, '{"sentence1": "secret", "sentence2": 1}\n', ":1: expected JSON"),
        (instances.PUBMEDQA, "secret\n", ":1: expected JSON"),
    ],
)
def test_malformed_tables_name_the_line_but_no_text(tmp_path, reader, text, message):
    with pytest.raises(StudyError, match=message) as error:
        reader(write(tmp_path, "dev.tsv", text))
    assert "secret" not in str(error.value)


# ChemProt

ABSTRACTS = "7\tIron and ferritin.\tZinc binds HBA. Opium HBA x\n"
#               0123456789012345678 9012345678901234567890123456
ENTITIES = (
    "7\tT1\tCHEMICAL\t0\t4\tIron\n7\tT2\tGENE-Y\t9\t17\tferritin\n7\tT4\tGENE-N\t30\t33\tHBA\n"
    "7\tT3\tCHEMICAL\t19\t23\tZinc\n7\tT6\tGENE-Y\t41\t44\tHBA\n7\tT5\tCHEMICAL\t35\t40\tOpium\n"
)


def test_chemprot_pairs_are_of_one_sentence_in_text_order(tmp_path):
    folder = write_chemprot(tmp_path, ABSTRACTS, ENTITIES)
    assert relations.read_chemprot(folder, "train", sentences) == [
        ("7.T1.T2", "@CHEMICAL$ and @GENE$."),
        ("7.T3.T4", "@CHEMICAL$ binds @GENE$."),
        ("7.T5.T6", "@CHEMICAL$ @GENE$ x"),
    ]


def test_chemprot_pairs_without_a_cut_are_chemical_by_chemical(tmp_path):
    entities = "7\tT8\tGENE-Y\t4\t5\tb\n7\tT9\tGENE-Y\t8\t9\td\n7\tT1\tCHEMICAL\t2\t3\ta\n7\tT2\tCHEMICAL\t6\t7\tc\n"
    pairs = relations.read_chemprot(write_chemprot(tmp_path, "7\tx\ta b c d\n", entities), "train", sentences)
    assert [pair.id for pair in pairs] == ["7.T1.T8", "7.T1.T9", "7.T8.T2", "7.T2.T9"]
    assert pairs[2].text == "a @GENE$ @CHEMICAL$ d"


def test_chemprot_overlaps_become_one_dummy(tmp_path):
    entities = "7\tT1\tCHEMICAL\t2\t6\tzinc\n7\tT2\tGENE-Y\t2\t13\tzinc finger\n7\tT3\tGENE-Y\t7\t13\tfinger\n"
    folder = write_chemprot(tmp_path, "7\tx\tzinc finger 3\n", entities)
    assert relations.read_chemprot(folder, "train", sentences) == [
        ("7.T2.T1", "@CHEM-GENE$ 3"),  # both begin at one place: the gene first
        ("7.T1.T3", "@CHEMICAL$ @GENE$ 3"),
    ]


def test_chemprot_mentions_across_a_cut_are_left_out(tmp_path):
    folder = write_chemprot(tmp_path, "7\tx\tan a. b c\n", "7\tT1\tCHEMICAL\t5\t9\ta. b\n7\tT2\tGENE-Y\t10\t11\tc\n")
    assert relations.read_chemprot(folder, "train", sentences) == []
    assert len(relations.read_chemprot(folder, "train", lambda text: [text])) == 1


@pytest.mark.parametrize(
    ("abstracts", "entities", "message"),
    [
        ("7\tsecret\n", "", r"abstracts\.tsv:1: expected 3 columns, found 2"),
        (ABSTRACTS, "7\tT1\tCHEMICAL\t0\t4\n", r"entities\.tsv:1: expected 6 columns, found 5"),
        (ABSTRACTS, ENTITIES + "7\tT7\tDRUG\t0\t4\tIron\n", r"entities\.tsv:7: expected CHEMICAL, GENE-Y or GENE-N"),
        (ABSTRACTS, "7\tT1\tCHEMICAL\t-1\t4\tIron\n", ":1: expected .* two offsets"),
        (ABSTRACTS, "7\tT1\tCHEMICAL\t1\t5\tsecret\n", ":1: document 7 has no entity T1 at 1 to 5"),
        (ABSTRACTS, "7\tT1\tCHEMICAL\t900\t906\tsecret\n", ":1: document 7 has no entity T1"),
        (ABSTRACTS, "7\tT1\tCHEMICAL\t900\t900\t\n", ":1: document 7 has no entity T1"),
        (ABSTRACTS, "8\tT1\tCHEMICAL\t0\t6\tsecret\n", ":1: document 8 has no entity T1"),
    ],
)
def test_bad_chemprot_files(tmp_path, abstracts, entities, message):
    with pytest.raises(StudyError, match=message) as error:
        relations.read_chemprot(write_chemprot(tmp_path, abstracts, entities), "train", sentences)
    assert "secret" not in str(error.value)


def test_chemprot_wants_a_splitter_that_only_cuts(tmp_path):
    folder = write_chemprot(tmp_path, ABSTRACTS, ENTITIES)
    with pytest.raises(StudyError, match="document 7: the splitter changed a sentence"):
        relations.read_chemprot(folder, "train", lambda text: [text.upper()])
    with pytest.raises(StudyError, match="unknown split 'training'"):
        relations.read_chemprot(folder, "training", sentences)


def test_missing_punkt_says_how_to_get_it(folder, monkeypatch):
    def find(language):
        raise LookupError

    monkeypatch.setitem(sys.modules, "nltk.tokenize.punkt", SimpleNamespace(PunktTokenizer=find))
    relations.load_punkt.cache_clear()
    for split in SPLITS:
        for what in ("abstracts", "entities"):
            write(folder, f"re/chemprot/{relations.CHEMPROT[split].format(what)}", "")
    reason = "ChemProt needs NLTK's punkt: python -m nltk.downloader punkt_tab"
    assert instances.why_not("chemprot", "laptop") == reason
    assert instances.splits("chemprot", "laptop") == []
    with pytest.raises(StudyError, match=reason):
        instances.texts("chemprot", "train", "laptop")


def test_punkt_splits_made_up_text(tmp_path, punkt):
    pairs = relations.read_chemprot(write_chemprot(tmp_path, ABSTRACTS, ENTITIES), "train")
    assert [pair.id for pair in pairs] == ["7.T1.T2", "7.T3.T4", "7.T5.T6"]


# DDI

ENTITY = '<entity id="e{}" charOffset="{}"/>'


def sentence(text: str, offsets: list[str], *ends: str) -> str:
    entities = "".join(ENTITY.format(i, where) for i, where in enumerate(offsets))
    pairs = "".join(f'<pair id="p{i}" e1="{pair[:2]}" e2="{pair[2:]}"/>' for i, pair in enumerate(ends))
    return f'<sentence id="s" text="{text}">{entities}{pairs}</sentence>'


def test_ddi_pairs(tmp_path):
    body = sentence(
        "Iron, zinc and oral or&#xa;IV gold", ["0-3", "6-9", "15-18;26-29", "23-29"], "e1e0", "e0e2", "e3e2"
    )
    assert relations.read_ddi(*write_ddi(tmp_path, body)) == [
        ("p0", "@DRUG$, @DRUG$ and oral or IV gold"),  # in text order, whichever is named first
        ("p1", "@DRUG$, zinc and @DRUG$"),  # a mention in pieces reaches over what is between them
        ("p2", "Iron, zinc and @DRUG-DRUG$"),
    ]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (sentence("secret", ["2-6"]), "a b.xml: entity e0 lies outside its sentence"),
        (sentence("secret", ["4-2"]), "entity e0 lies outside"),
        (sentence("secret", [""]), "entity e0 lies outside"),
        (sentence("secret", ["0-1", "2-3"], "e0e7"), "a b.xml: pair p0 names an unknown entity"),
        ("<sentence text='secret'>", "a b.xml: Opening and ending tag mismatch.*line 1"),
    ],
)
def test_bad_ddi_files(tmp_path, body, message):
    with pytest.raises(StudyError, match=message) as error:
        relations.read_ddi(*write_ddi(tmp_path, body))
    assert "secret" not in str(error.value)


def test_ddi_expands_no_entities(tmp_path):
    head = '<!DOCTYPE document [<!ENTITY a SYSTEM "file:///etc/hostname">]>'
    with pytest.raises(StudyError, match="declares entities of its own"):
        relations.read_ddi(*write_ddi(tmp_path, "&a;", head))


def test_ddi_files_that_are_not_there(tmp_path):
    corpus, split_list = write_ddi(tmp_path, "")
    split_list.write_text("train_dataset/DrugBank/a b.xml,test_dataset/MedLine/9.xml")
    with pytest.raises(StudyError, match=r"test_dataset/MedLine/9\.xml: There is no item named"):
        relations.read_ddi(corpus, split_list)
    corpus.write_bytes(b"PK")
    with pytest.raises(StudyError, match=r"DDICorpus-2013\.zip: File is not a zip file"):
        relations.read_ddi(corpus, split_list)
    with pytest.raises(StudyError, match="no file"):
        relations.read_ddi(corpus.with_name("other.zip"), split_list)


# The registry


def test_unknown_names():
    with pytest.raises(StudyError, match="unknown set of instances 'jnlbpa': did you mean jnlpba"):
        instances.texts("jnlbpa", "test", "laptop")
    with pytest.raises(StudyError, match="unknown split 'devel': did you mean dev"):
        instances.texts("jnlpba", "devel", "laptop")


def test_what_is_missing(folder):
    assert instances.why_not("gad", "laptop") == (
        "no file $STUDY_DATA/re/gad/blurb/train.tsv; set STUDY_DATA to a folder that holds it"
    )
    write(folder, "ner/ebm-nlp/dev.txt.gz", gzip.compress(b"a NN O O\n"))
    write(folder, "ner/ebm-nlp/test.txt", "")
    assert instances.splits("ebm-pico", "laptop") == ["dev", "test"]
    assert instances.why_not("ebm-pico", "laptop").startswith("train split not at hand: no file ")
    assert instances.texts("ebm-pico", "dev", "laptop") == ["a"]
    with pytest.raises(StudyError, match="no file .*train.txt"):
        instances.texts("ebm-pico", "train", "laptop")
    with pytest.raises(StudyError, match="ner/ebm-nlp/test.txt: no text in the file"):
        instances.texts("ebm-pico", "test", "laptop")
    write(folder, "ner/ebm-nlp/train.txt", "a NN O O\n")
    assert instances.why_not("ebm-pico", "laptop") == ""


def test_rows_of_the_published_table():
    rows = {row.row for row in instances.SETS.values()}
    assert len(rows) == len(instances.SETS) == 13
    assert all(tuple(row.sources) and set(row.sources) == set(SPLITS) for row in instances.SETS.values())


# Test texts


def test_test_texts_are_natural_units(folder):
    assert instances.test_texts("laptop") == {} and instances.test_files("laptop") == []
    write(folder, "ner/jnlpba/test.tsv", "-DOCSTART-\tO\n\nAn\tO\nulcer\tO\n\n")
    write(folder, "re/chemprot/chemprot_test_gs/chemprot_test_abstracts_gs.tsv", "7\tA title.\tAn abstract.\n")
    write(folder, "re/gad/blurb/test.tsv", "index\tsentence\tlabel\n0\t@GENE$ and the risk of @DISEASE$ here.\t1\n")
    write(folder, "sts/biosses/blurb/test.tsv", "pair_id\tsent1\tsent2\tscore\n1\tOne.\tTwo.\t2\n")
    write(folder, "re/ddi/blurb/test.tsv", "id\t@DRUG$ or @DRUG-DRUG$ is it\tDDI-false\n")
    write(folder, "qa/bioasq-7b-yesno-blurb/test.tsv", "id\tQ?\tSnippets.\tyes\n")
    write(folder, "qa/pubmedqa/blurb/test.jsonl", '{"sentence1": "Q?", "sentence2": "Contexts."}\n')
    expected = {
        "jnlpba": ["An ulcer"],
        "chemprot": ["A title.", "An abstract."],
        "gad": ["and the risk of", "here."],
        "biosses": ["One.", "Two."],
        "ddi": ["or", "is it"],
        "bioasq": ["Snippets."],
        "pubmedqa": ["Contexts."],
    }
    assert instances.test_texts("laptop") == expected
    assert len(instances.test_files("laptop")) == len(expected)


def test_the_corpus_is_preferred_to_text_with_dummies(folder):
    write(folder, "re/ddi/blurb/test.tsv", "id\t@DRUG$ is it\tDDI-false\n")
    corpus, split_list = write_ddi(folder, sentence("Iron is it", ["0-3"]) + sentence("No drug", []))
    split_list.rename(split_list.with_name("test_files.tsv"))
    assert instances.test_texts("laptop") == {"ddi": ["Iron is it", "No drug"]}
    assert instances.test_files("laptop") == [corpus, split_list.with_name("test_files.tsv")]


def test_smoke_data_hold_tagged_sets_only(smoke_data):
    found = instances.test_texts("smoke")
    assert found and set(found) <= set(datasets.DATASETS)
    for key, texts in found.items():
        assert texts == [" ".join(sentence.words) for sentence in datasets.load(key, "test", "smoke")]
    assert all(path.is_relative_to(paths.data("smoke")) for path in instances.test_files("smoke"))


# Real data: counts and comparisons only, so that no text is printed


@pytest.mark.parametrize(
    ("key", "counts"),
    [
        ("bc5cdr-chem", (4560, 4581, 4797)),
        ("bc5cdr-disease", (4560, 4581, 4797)),
        ("ncbi-disease", (5424, 923, 940)),
        ("bc2gm", (12574, 2519, 5038)),
        # 16,807, 1,739 and 3,856 sentences, and two empty blocks for each of 1,800, 200 and 404 document marks.
        ("jnlpba", (20407, 2139, 4664)),
        ("ddi", (25296, 2496, 5716)),
        ("gad", (4261, 535, 534)),
        ("biosses", (64, 16, 20)),
        ("hoc", (12119, 1798, 3547)),
        ("pubmedqa", (450, 50, 500)),
        ("bioasq", (670, 75, 140)),
    ],
)
def test_real_counts(real_data, key, counts):
    """BLURB's numbers of instances, and blocks counted when the files were collected."""
    if reason := instances.why_not(key, "laptop"):
        pytest.skip(reason)
    assert tuple(len(instances.texts(key, split, "laptop")) for split in SPLITS) == counts


def test_real_pico_documents(real_data):
    """Every document mark and the blank line after it end a block."""
    if not {"dev", "test"} <= set(instances.splits("ebm-pico", "laptop")):
        pytest.skip("no EBM-NLP in the data folder")
    found = {split: instances.texts("ebm-pico", split, "laptop") for split in ("dev", "test")}
    words = {split: sum(len(text.split()) for text in texts) for split, texts in found.items()}
    assert words == {"dev": 262127, "test": 51750}
    assert {split: len(texts) for split, texts in found.items()} == {"dev": 12288, "test": 2455}


def test_real_ddi_pairs_are_blurbs(real_data):
    """The corpus makes BLURB's test file, and the ids of its development file.

    There the texts of two documents differ by a character: BLURB's corpus was another release.
    """
    if not (real_data / ZIP).is_file():
        pytest.skip("no DDI corpus in the data folder")
    for split, same in (("dev", 2475), ("test", 5716)):
        pairs = relations.read_ddi(real_data / ZIP, real_data / f"re/ddi/splits/{split}_files.tsv")
        rows = relations.read_columns(real_data / f"re/ddi/blurb/{split}.tsv", 3)
        blurb = Counter(tuple(cells[:2]) for _, cells in rows)
        ids_agree = Counter(id for id, _ in blurb.elements()) == Counter(pair.id for pair in pairs)
        texts_agree = (Counter(map(tuple, pairs)) & blurb).total()
        assert ids_agree and texts_agree == same


def test_real_chemprot_pairs_are_blurbs(real_data, punkt):
    """BLURB's counts, and its development file, the one that is public, pair for pair."""
    folder = real_data / "re/chemprot"
    if not folder.is_dir():
        pytest.skip("no ChemProt in the data folder")
    pairs = {split: relations.read_chemprot(folder, split) for split in SPLITS}
    assert {split: len(found) for split, found in pairs.items()} == {"train": 18035, "dev": 11268, "test": 15745}
    blurb = [tuple(cells[:2]) for _, cells in relations.read_columns(real_data / "re/chemprot-blurb/dev.tsv", 3)]
    same = Counter(blurb) == Counter(map(tuple, pairs["dev"]))
    assert same


def test_real_test_texts(real_data):
    found = instances.test_texts("laptop")
    if not {"ddi", "hoc", "jnlpba"} <= set(found):
        pytest.skip("not every set is in the data folder")
    counts = {key: len(texts) for key, texts in found.items()}
    expected = {"jnlpba": 3856, "ebm-pico": 2064, "chemprot": 1600, "biosses": 40, "hoc": 3547, "bioasq": 140}
    assert {key: counts[key] for key in expected} == expected
    dummies = sum(len(instances.CUT.findall(text)) for texts in found.values() for text in texts)
    assert dummies == 0
