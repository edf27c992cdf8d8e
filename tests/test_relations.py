"""Relation datasets: pairs and labels of ChemProt, DDI and GAD; made-up files; real files against BLURB's.

test_formats.py tests that every form is read as written, and the errors for bad files.
"""

import gzip
import hashlib
from collections import Counter

import pytest
from conftest import each
from golden import CHEMPROT, GAD, GAD_EXAMPLES, read_chemprot, split_sentences, write, write_files

from lib.benchmarks import chemprot, ddi, registry, tabular
from lib.benchmarks.instances import Relation
from lib.study import paths

SPLITS = ("train", "dev", "test")
FILES = {
    "train": "re/chemprot/chemprot_training/chemprot_training_{}.tsv",
    "dev": "re/chemprot/chemprot_development/chemprot_development_{}.tsv",
    "test": "re/chemprot/chemprot_test_gs/chemprot_test_{}_gs.tsv",
}
LIM = "re/chemprot-recursive/chemprot-data_SPINN.zip"
ZIP = "re/ddi/DDICorpus-2013.zip"
NO_GROUPS = "7\tCPR:10\tN \tNOT\tArg1:T1\tArg2:T2\n"


@pytest.fixture
def punkt():
    return chemprot.load_punkt() or pytest.skip(f"NLTK's punkt is not at hand. {chemprot.FETCH_PUNKT}")


def in_brief(found: list[Relation]) -> list[tuple[str, str, str]]:
    return [(relation.id, relation.dummify().text, relation.label) for relation in found]


def list_files(folder, split: str) -> list:
    """List the three files of a split of ChemProt below a data folder."""
    return [folder / FILES[split].format(kind) for kind in ("abstracts", "entities", "relations")]


def git_blob(found: list[Relation]) -> str:
    """Return git's hash of a table of these instances in BLURB's form."""
    table = "".join("\t".join(row) + "\n" for row in in_brief(found)).encode()
    return hashlib.sha1(b"blob %d\0" % len(table) + table).hexdigest()


# ChemProt


def blurb(folder, abstracts=CHEMPROT["abstracts.tsv"], entities=CHEMPROT["entities.tsv"], groups=NO_GROUPS, **options):
    """Write such files and read their pairs in BLURB's form."""
    write_files(folder, {"abstracts.tsv": abstracts, "entities.tsv": entities, "relations.tsv": groups})
    return read_chemprot(folder, **options)


def blue(folder) -> list[Relation]:
    """Read the pairs of the same files in BLUE's form."""
    return read_chemprot(folder, chemprot.read_chemprot_blue)


def test_chemprot_counts_what_is_in_no_pair(tmp_path):
    groups = CHEMPROT["relations.tsv"] + "7\tCPR:9\tY \tSUBSTRATE\tArg1:T5\tArg2:T4\n"
    blurb(tmp_path, groups=groups, left_out=(left_out := Counter()))
    assert left_out == {"mentions across the end of a sentence": 0, "related pairs that are not in one sentence": 2}
    entities = "7\tT1\tCHEMICAL\t5\t9\ta. b\n7\tT2\tGENE-Y\t10\t11\tc\n"
    assert blurb(tmp_path, "7\tx\tan a. b c\n", entities, left_out=(left_out := Counter())) == []
    assert left_out == {"mentions across the end of a sentence": 1, "related pairs that are not in one sentence": 0}
    assert len(blue(tmp_path)) == 1  # no capital follows, so BLUE does not cut


def test_blurb_takes_the_last_group_and_blue_every_evaluated_one(tmp_path):
    pairs = blurb(tmp_path, groups="7\tCPR:3\tY \tACTIVATOR\tArg1:T1\tArg2:T2\n" + NO_GROUPS)
    assert (pairs[0].label, blue(tmp_path)[0].label) == ("false", "CPR:3")


def test_blues_sentences_end_at_a_full_stop_before_a_capital():
    title, text = "An open title", "We gave i.v. Zinc. it binds. HBA"
    spans = chemprot.cut_and_merge("7", f"{title}\t{text}", split_sentences)
    sentences = [f"{title} {text}"[start:end] for start, end in spans]
    assert sentences == ["An open title We gave i.v. Zinc. it binds.", "HBA"]


def test_pairs_are_listed_by_chemical_and_mentions_in_text_order(tmp_path):
    entities = "7\tT8\tGENE-Y\t2\t3\ta\n7\tT1\tCHEMICAL\t4\t5\tb\n7\tT9\tGENE-Y\t6\t7\tc\n7\tT2\tCHEMICAL\t8\t9\td\n"
    pairs = blurb(tmp_path, "7\tx\ta b c d\n", entities, "7\tCPR:3\tY \tACTIVATOR\tArg1:T1\tArg2:T8\n")
    assert in_brief(pairs) == [
        ("7.T8.T1", "@GENE$ @CHEMICAL$ c d", "CPR:3"),
        ("7.T1.T9", "a @CHEMICAL$ @GENE$ d", "false"),
        ("7.T8.T2", "@GENE$ b c @CHEMICAL$", "false"),
        ("7.T9.T2", "a b @GENE$ @CHEMICAL$", "false"),
    ]
    # BLUE does not cut after the title, and its ids name the chemical first.
    assert in_brief(blue(tmp_path))[0] == ("7.T1.T8", "x @GENE$ @CHEMICAL$ c d", "CPR:3")


def test_chemprot_overlaps_become_one_dummy(tmp_path):
    entities = "7\tT1\tCHEMICAL\t2\t6\tzinc\n7\tT2\tGENE-Y\t2\t13\tzinc finger\n7\tT3\tGENE-Y\t7\t13\tfinger\n"
    assert in_brief(blurb(tmp_path, "7\tx\tzinc finger 3\n", entities)) == [
        ("7.T2.T1", "@CHEM-GENE$ 3", "false"),  # both start at the same character, so the gene comes first
        ("7.T1.T3", "@CHEMICAL$ @GENE$ 3", "false"),
    ]


@pytest.fixture
def no_punkt(monkeypatch):
    def find(language):
        raise LookupError

    monkeypatch.setattr("nltk.tokenize.punkt.PunktTokenizer", find)
    chemprot.load_punkt.cache_clear()
    yield
    chemprot.load_punkt.cache_clear()


def test_without_punkt_the_untrained_splitter_is_used_and_results_have_another_fingerprint(tmp_path, no_punkt):
    assert chemprot.load_punkt() is None
    assert [pair.id for pair in blurb(tmp_path, split_sentences=None)] == ["7.T1.T2", "7.T3.T4", "7.T5.T6"]
    blurbs, other = registry.lookup("chemprot"), registry.lookup("ddi")
    assert blurbs.edition == f"1, {chemprot.UNLEARNT}" and other.edition == other.version
    assert blurbs.differs == f"{chemprot.UNLEARNT} {chemprot.FETCH_PUNKT}" and other.differs == ""
    unlearnt = blurbs.fingerprint_reader()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chemprot, "load_punkt", lambda: split_sentences)
        assert blurbs.edition == 1 and blurbs.fingerprint_reader() != unlearnt


def test_gad_with_header(tmp_path):
    rows = [f"{number + 5}\t{row}\n" for number, row in enumerate(GAD.splitlines())]
    headed = tabular.read_gad(write(tmp_path / "a.tsv", "".join(["index\tsentence\tlabel\n", *rows])))
    assert [relation.id for relation in headed] == ["5", "6"]
    assert [row[1:] for row in in_brief(headed)] == [row[1:] for row in in_brief(GAD_EXAMPLES)]


# Made-up data


@each("read", [chemprot.read_chemprot, chemprot.read_chemprot_blue])
def test_made_up_chemprot(read):
    """The two sets that tests/witness/made-up-examples.json leaves out, because Punkt cuts them into sentences."""
    by_split = [read(*list_files(paths.MADE_UP, split), split_sentences) for split in SPLITS]
    assert [len(rows) for rows in by_split] == [48, 40, 40]
    assert all({row.label for row in rows} == set(tabular.CHEMPROT_LABELS) for rows in by_split)
    assert len({row.text for rows in by_split for row in rows}) == 128


def test_made_up_forms_of_one_corpus_agree():
    dev = chemprot.read_chemprot(*list_files(paths.MADE_UP, "dev"), split_sentences)
    with gzip.open(paths.MADE_UP / "re/chemprot-blurb/dev.tsv.gz", "rt") as file:
        assert [tuple(line.rstrip("\n").split("\t")) for line in file] == in_brief(dev)
    members = tabular.LIM_MEMBERS["train"], tabular.LIM_MEMBERS["dev"], "train_whole_SNLIformat"
    lim_train, lim_dev, lim_whole = (tabular.read_chemprot_lim(paths.MADE_UP / LIM, member) for member in members)
    assert [(row.id, row.label) for row in lim_dev] == [(row.id, row.label) for row in dev]
    assert lim_whole == lim_train + lim_dev
    for split in ("dev", "test"):
        table = tabular.read_ddi_table(paths.MADE_UP / f"re/ddi/blurb/{split}.tsv")
        pairs = ddi.read_ddi(paths.MADE_UP / ZIP, paths.MADE_UP / f"re/ddi/splits/{split}_files.tsv")
        assert in_brief(table) == in_brief(pairs)


# Real data: counts and comparisons only, so that no text is printed


@each(
    ("split", "blob", "blue"),
    [
        # git's hashes are those of BLURB's files in KeBioLM's repository; for BLUE, the pairs and the related ones.
        ("train", "d96c15e279cb97e7215d52bae53f02586c6e3020", (18733, 4157)),
        ("dev", "4410e5ed378942526fdd5e7f61fe331be4eba18e", (11734, 2416)),
        ("test", "27b03d66258f0373e6600e0de42cfcf6d00a06c5", (16269, 3457)),
    ],
)
def test_real_chemprot_is_blurbs_byte_for_byte(real_data, punkt, split, blob, blue):
    files = list_files(real_data, split)
    assert git_blob(chemprot.read_chemprot(*files)) == blob
    rows = chemprot.read_chemprot_blue(*files)
    assert (len(rows), sum(row.label != "false" for row in rows)) == blue


@each(("split", "pairs", "positives"), [("train", 18008, 4109), ("dev", 11279, 2408), ("test", 15779, 3429)])
def test_real_chemprot_without_punkt_has_the_stated_pairs(real_data, split, pairs, positives):
    rows = chemprot.read_chemprot(*list_files(real_data, split), chemprot.load_unlearnt())
    assert (len(rows), sum(row.label != "false" for row in rows)) == (pairs, positives)
    assert f"{pairs:,}" in chemprot.UNLEARNT


@each(("split", "equal_texts"), [("dev", 2475), ("test", 5716)])
def test_real_ddi_is_blurbs(real_data, split, equal_texts):
    """Every id and label is BLURB's, and every text but those of two documents, which BLURB took from another release.

    In these two, of the development set, the texts differ by a character.
    """
    pairs = ddi.read_ddi(real_data / ZIP, real_data / f"re/ddi/splits/{split}_files.tsv")
    table = tabular.read_ddi_table(real_data / f"re/ddi/blurb/{split}.tsv")
    same_labels = [(row.id, row.document, row.label) for row in pairs] == [(o.id, o.document, o.label) for o in table]
    assert same_labels
    assert sum(row.text == pair.dummify().text for row, pair in zip(table, pairs, strict=True)) == equal_texts
