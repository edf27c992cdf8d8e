"""Relation datasets: what the forms of ChemProt, DDI and GAD mean; made-up files; counts of the real files.

test_formats.py tests that every form is read as written, and the errors for bad files.
"""

import gzip
import hashlib
import zipfile
from collections import Counter

import pytest
from conftest import each
from golden import CHEMPROT, GAD, GAD_EXAMPLES, read_chemprot, split_sentences, write, write_files

from lib.benchmarks import chemprot, ddi, registry, tabular
from lib.benchmarks.instances import Relation
from lib.errors import StudyError
from lib.reading import read_members
from lib.study import paths

SPLITS = ("train", "dev", "test")
FILES = {
    "train": "re/chemprot/chemprot_training/chemprot_training_{}.tsv",
    "dev": "re/chemprot/chemprot_development/chemprot_development_{}.tsv",
    "test": "re/chemprot/chemprot_test_gs/chemprot_test_{}_gs.tsv",
}
LIM = "re/chemprot-recursive/chemprot-data_SPINN.zip"
ZIP = "re/ddi/DDICorpus-2013.zip"
FOLDS = "re/gad/gad-biobert-10fold.tar.gz"
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
    assert len(read_chemprot(tmp_path, split_sentences=lambda text: [text])) == 1
    assert len(blue(tmp_path)) == 1  # no capital follows, so BLUE does not cut


def test_a_group_that_is_not_evaluated_hides_one_before_it(tmp_path):
    pairs = blurb(tmp_path, groups="7\tCPR:3\tY \tACTIVATOR\tArg1:T1\tArg2:T2\n" + NO_GROUPS)
    assert (pairs[0].label, blue(tmp_path)[0].label) == ("false", "CPR:3")


def test_blues_sentences_end_at_a_full_stop_before_a_capital():
    title, text = "An open title", "We gave i.v. Zinc. it binds. HBA"
    spans = chemprot.cut_and_merge("7", f"{title}\t{text}", split_sentences)
    sentences = [f"{title} {text}"[start:end] for start, end in spans]
    assert sentences == ["An open title We gave i.v. Zinc. it binds.", "HBA"]


def test_blues_ids_name_the_chemical_first(tmp_path):
    entities = "7\tT8\tGENE-Y\t2\t3\ta\n7\tT1\tCHEMICAL\t4\t5\tb\n"
    (blurb_pair,) = blurb(tmp_path, "7\tx\ta b\n", entities, "7\tCPR:3\tY \tACTIVATOR\tArg1:T1\tArg2:T8\n")
    (blue_pair,) = blue(tmp_path)
    assert (blurb_pair.id, blue_pair.id) == ("7.T8.T1", "7.T1.T8")
    assert blurb_pair.first.id == blue_pair.first.id == "T8" and (blurb_pair.text, blue_pair.text) == ("a b", "x\ta b")
    assert blue_pair.dummify().text == "x @GENE$ @CHEMICAL$" and blurb_pair.label == blue_pair.label == "CPR:3"


def test_chemprot_pairs_without_a_cut_are_chemical_by_chemical(tmp_path):
    entities = "7\tT8\tGENE-Y\t4\t5\tb\n7\tT9\tGENE-Y\t8\t9\td\n7\tT1\tCHEMICAL\t2\t3\ta\n7\tT2\tCHEMICAL\t6\t7\tc\n"
    pairs = blurb(tmp_path, "7\tx\ta b c d\n", entities, "7\tCPR:3\tY \tX\tArg1:T2\tArg2:T8\n")
    assert [(pair.id, pair.label) for pair in pairs] == [
        ("7.T1.T8", "false"), ("7.T1.T9", "false"), ("7.T8.T2", "CPR:3"), ("7.T2.T9", "false"),
    ]  # fmt: skip
    assert pairs[2].dummify().text == "a @GENE$ @CHEMICAL$ d"


def test_chemprot_overlaps_become_one_dummy(tmp_path):
    entities = "7\tT1\tCHEMICAL\t2\t6\tzinc\n7\tT2\tGENE-Y\t2\t13\tzinc finger\n7\tT3\tGENE-Y\t7\t13\tfinger\n"
    assert in_brief(blurb(tmp_path, "7\tx\tzinc finger 3\n", entities)) == [
        ("7.T2.T1", "@CHEM-GENE$ 3", "false"),  # both start at the same character, so the gene comes first
        ("7.T1.T3", "@CHEMICAL$ @GENE$ 3", "false"),
    ]


def test_chemprot_wants_a_splitter_that_only_cuts(tmp_path):
    write_files(tmp_path, CHEMPROT)
    for reader in (chemprot.read_chemprot, chemprot.read_chemprot_blue):
        with pytest.raises(StudyError, match="document 7: the splitter changed a sentence"):
            read_chemprot(tmp_path, reader, split_sentences=lambda text: [text.upper()])


@pytest.fixture
def no_punkt(monkeypatch):
    def find(language):
        raise LookupError

    monkeypatch.setattr("nltk.tokenize.punkt.PunktTokenizer", find)
    chemprot.load_punkt.cache_clear()
    yield
    chemprot.load_punkt.cache_clear()


def test_where_punkt_is_missing_its_program_cuts_without_it_and_results_are_told_apart(tmp_path, no_punkt):
    assert chemprot.load_punkt() is None
    assert [pair.id for pair in blurb(tmp_path, split_sentences=None)] == ["7.T1.T2", "7.T3.T4", "7.T5.T6"]
    blurbs, other = registry.lookup("chemprot"), registry.lookup("ddi")
    assert blurbs.edition == f"1, {chemprot.UNLEARNT}" and other.edition == other.version
    assert blurbs.differs == f"{chemprot.UNLEARNT} {chemprot.FETCH_PUNKT}" and other.differs == ""
    unlearnt = blurbs.fingerprint_reader()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chemprot, "load_punkt", lambda: split_sentences)
        assert blurbs.edition == 1 and blurbs.fingerprint_reader() != unlearnt


def test_punkt_splits_made_up_text_as_the_splitter_of_the_tests(smoke, tmp_path, punkt):
    assert [pair.id for pair in blurb(tmp_path, split_sentences=None)] == ["7.T1.T2", "7.T3.T4", "7.T5.T6"]
    files = list_files(smoke, "dev")
    assert chemprot.read_chemprot(*files) == chemprot.read_chemprot(*files, split_sentences)


# The other sets


def test_gad_with_header(tmp_path):
    rows = [f"{number + 5}\t{row}\n" for number, row in enumerate(GAD.splitlines())]
    headed = tabular.read_gad(write(tmp_path / "a.tsv", "".join(["index\tsentence\tlabel\n", *rows])))
    assert [relation.id for relation in headed] == ["5", "6"]
    assert [row[1:] for row in in_brief(headed)] == [row[1:] for row in in_brief(GAD_EXAMPLES)]


def test_zips_with_links_or_names_twice_are_refused(tmp_path):
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    for members in ([("a", ""), (link, "a")], [("a", ""), ("a", "")]):
        with zipfile.ZipFile(tmp_path / "a", "w") as archive, pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *_, **__: None)  # about a name that comes twice
            for name, text in members:
                archive.writestr(name, text)
        with pytest.raises(StudyError, match="has links, names twice"):
            read_members(tmp_path / "a", ["a"])


# Made-up data


@pytest.fixture
def smoke():
    return paths.MADE_UP


@each("read", [chemprot.read_chemprot, chemprot.read_chemprot_blue])
def test_made_up_chemprot(smoke, read):
    """The two sets that tests/witness/made-up-examples.json leaves out, because Punkt cuts them into sentences."""
    by_split = [read(*list_files(smoke, split), split_sentences) for split in SPLITS]
    assert [len(rows) for rows in by_split] == [48, 40, 40]
    assert all({row.label for row in rows} == set(tabular.CHEMPROT_LABELS) for rows in by_split)
    assert len({row.text for rows in by_split for row in rows}) == 128


def test_made_up_forms_of_one_corpus_agree(smoke):
    dev = chemprot.read_chemprot(*list_files(smoke, "dev"), split_sentences)
    with gzip.open(smoke / "re/chemprot-blurb/dev.tsv.gz", "rt") as file:
        assert [tuple(line.rstrip("\n").split("\t")) for line in file] == in_brief(dev)
    members = tabular.LIM_MEMBERS["train"], tabular.LIM_MEMBERS["dev"], "train_whole_SNLIformat"
    lim_train, lim_dev, lim_whole = (tabular.read_chemprot_lim(smoke / LIM, member) for member in members)
    assert [(row.id, row.label) for row in lim_dev] == [(row.id, row.label) for row in dev]
    assert lim_whole == lim_train + lim_dev
    for split in ("dev", "test"):
        table = tabular.read_ddi_table(smoke / f"re/ddi/blurb/{split}.tsv")
        pairs = ddi.read_ddi(smoke / ZIP, smoke / f"re/ddi/splits/{split}_files.tsv")
        assert in_brief(table) == in_brief(pairs)


# Real data: counts and comparisons only, so that no text is printed


def count(found: list[Relation]) -> dict[str, int]:
    return dict(Counter(relation.label for relation in found))


@each(
    ("split", "blob", "labels", "blue"),
    [
        # Labels are in the order of CHEMPROT_LABELS; git's hashes are those of BLURB's files in KeBioLM's repository.
        ("train", "d96c15e279cb97e7215d52bae53f02586c6e3020", (13923, 756, 2227, 173, 229, 727), (18733, 4157)),
        ("dev", "4410e5ed378942526fdd5e7f61fe331be4eba18e", (8860, 546, 1091, 115, 199, 457), (11734, 2416)),
        ("test", "27b03d66258f0373e6600e0de42cfcf6d00a06c5", (12315, 663, 1655, 178, 292, 642), (16269, 3457)),
    ],
)
def test_real_chemprot_is_blurbs_byte_for_byte(real_data, punkt, split, blob, labels, blue):
    files = list_files(real_data, split)
    pairs = chemprot.read_chemprot(*files)
    assert len(pairs) == {"train": 18035, "dev": 11268, "test": 15745}[split]
    assert count(pairs) == dict(zip(tabular.CHEMPROT_LABELS, labels, strict=True))
    assert git_blob(pairs) == blob
    if split == "dev":  # the only one of BLURB's files that is at hand
        with gzip.open(real_data / "re/chemprot-blurb/dev.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
            rows = [tuple(line.rstrip("\n").split("\t")) for line in file]
        same_rows = rows == in_brief(pairs)
        assert same_rows
    rows = chemprot.read_chemprot_blue(*files)
    assert (len(rows), sum(row.label != "false" for row in rows)) == blue
    natural = chemprot.read_chemprot_abstracts(files[0])
    assert len(natural) == 2 * {"train": 1020, "dev": 612, "test": 800}[split]


@each(("split", "pairs", "positives"), [("train", 18008, 4109), ("dev", 11279, 2408), ("test", 15779, 3429)])
def test_real_chemprot_without_punkt_is_within_three_thousandths_of_blurbs(real_data, split, pairs, positives):
    files = list_files(real_data, split)
    rows = chemprot.read_chemprot(*files, chemprot.load_unlearnt())
    assert (len(rows), sum(row.label != "false" for row in rows)) == (pairs, positives)
    assert f"{pairs:,}" in chemprot.UNLEARNT


@each(
    ("split", "lim_labels", "lost", "scibert_rows"),
    [
        ("train", (12389, 761, 2251, 173, 235, 713), 24, (4169, 13)),
        ("dev", (7950, 548, 1093, 115, 199, 457), 6, (2427, 12)),
        ("test", (10956, 664, 1658, 183, 292, 644), 15, (3469, 12)),
    ],
)
def test_real_sets_made_of_chemprot(real_data, split, lim_labels, lost, scibert_rows):
    """Bio-ELECTRA's rows are those of Lim and Kang without the first; BioBERT prints 14,443 for the test set."""
    lim_rows = tabular.read_chemprot_lim(real_data / LIM, tabular.LIM_MEMBERS[split])
    assert count(lim_rows) == dict(zip(tabular.CHEMPROT_LABELS, lim_labels, strict=True))
    assert sum(row.first[2:] == row.second[2:] for row in lim_rows) == lost
    rows = tabular.read_chemprot_bioelectra(real_data / f"re/chemprot-bioelectra/{split}.tsv.gz")
    same_labels = [row.label for row in rows] == [row.label for row in lim_rows[1:]]
    assert same_labels and len(rows) == {"train": 16521, "dev": 10361, "test": 14396}[split]
    related = chemprot.read_chemprot_scibert(real_data / f"re/chemprot-scibert/{split}.txt")
    assert (len(related), len(count(related))) == scibert_rows


def test_real_lim_training_and_development_together(real_data):
    rows = tabular.read_chemprot_lim(real_data / LIM, "train_whole_SNLIformat")
    labels = (20339, 1309, 3344, 288, 434, 1170)  # sums of the two splits
    assert count(rows) == dict(zip(tabular.CHEMPROT_LABELS, labels, strict=True))


@each(
    ("split", "labels", "natural"),
    [
        ("train", (21745, 1163, 1486, 725, 177), 6074),
        ("dev", (2027, 156, 201, 101, 11), 831),
        ("test", (4737, 302, 360, 221, 96), 1299),
    ],
)
def test_real_ddi(real_data, split, labels, natural):
    """The corpus reproduces BLURB's test file byte for byte, and the ids and labels of its development file.

    In the latter the texts of two documents differ by a character, because BLURB used another release.
    """
    files = real_data / ZIP, real_data / f"re/ddi/splits/{split}_files.tsv"
    pairs = ddi.read_ddi(*files)
    assert count(pairs) == dict(zip(tabular.DDI_LABELS, labels, strict=True))
    assert len(ddi.read_ddi_sentences(*files)) == natural
    if split == "train":
        assert {row.id: row.label for row in pairs}["DDI-DrugBank.d236.s29.p0"] == "DDI-false"
        return
    table = tabular.read_ddi_table(real_data / f"re/ddi/blurb/{split}.tsv")
    same_labels = [(row.id, row.document, row.label) for row in pairs] == [(o.id, o.document, o.label) for o in table]
    same_texts = sum(row.text == pair.dummify().text for row, pair in zip(table, pairs, strict=True))
    assert same_labels and same_texts == {"dev": 2475, "test": 5716}[split]
    overlaps = [sum(row.first.end > row.second.start for row in rows) for rows in (table, pairs)]
    assert overlaps[0] == overlaps[1] == {"dev": 3, "test": 7}[split]


def test_real_gad(real_data):
    files = [real_data / f"re/gad/{form}/{split}.tsv" for form in ("blurb", "bioelectra") for split in SPLITS]
    assert [len(tabular.read_gad(file)) for file in files] == [4261, 535, 534, 4796, 534, 534]


def test_real_folds_of_gad_and_euadr(real_data):
    """GAD: 5,330 rows, of which 5,122 are distinct; BioBERT prints 5,339."""
    tests = [tabular.read_gad(real_data / FOLDS, f"GAD/{fold}/test.tsv") for fold in range(1, 11)]
    trains = [tabular.read_gad(real_data / FOLDS, f"GAD/{fold}/train.tsv") for fold in (1, 10)]
    assert [len(rows) for rows in tests] == [534, *8 * [533], 532] and [len(rows) for rows in trains] == [4796, 4798]
    assert len({(row.text, row.label) for rows in tests for row in rows}) == 5122
    for split, counts in {"train": [318, 318, 319, *7 * [320]], "test": [37, 37, 36, *7 * [35]]}.items():
        euadr = [tabular.read_gad(real_data / f"re/euadr/{fold}/{split}.tsv") for fold in range(1, 11)]
        assert list(map(len, euadr)) == counts
