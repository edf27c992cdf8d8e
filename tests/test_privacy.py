"""No text of a restricted set leaves the data folder: words planted in every one of them are searched for everywhere.

A planted word names its set and its field, such as `qzcanarymedstsdrug3x`. Restricted are the registry's sets whose
access is not public, and the credentialed sources of text.
"""

import csv
import dataclasses
import gzip
import io
import random
import re
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import LEFT_OUT, TINY, Study, each, keep_keys, keep_tables
from golden import write_files
from notebook_code import definitions

from lib import artefacts, places
from lib.benchmarks import chemprot, datasets, registry
from lib.corpora import readers
from lib.modeling.shape import Body
from lib.study import open_study, params, paths, show
from tools.made_up import relations as made_relations
from tools.made_up import tagging as made_tagging
from tools.made_up import texts as made_texts
from tools.made_up.files import write_gzip, write_lines, write_zip
from tools.made_up.language import Lexicon

REPOSITORY = Path(__file__).parent.parent
CANARY = re.compile(rb"qzcanary\w*", re.IGNORECASE)  # of any set and field; the start is enough where a word was cut
RESTRICTED = [key for key, dataset in registry.DATASETS.items() if dataset.access != "public"]
PLANTED = {  # folder below the data folder -> what writes it, with others, below a folder of its own
    "ner/i2b2-2010": lambda new, *given: made_tagging.write_i2b2(new / "ner/i2b2-2010", *given),
    "ner/share-clef-2013": lambda new, *given: made_tagging.write_shareclef(new / "ner/share-clef-2013", *given),
    **{
        f"re/chemprot{form}": lambda new, *given: plant_chemprot(new / "re", *given)
        for form in ("", "-blurb", "-recursive", "-bioelectra", "-scibert")
    },
    "sts/medsts": made_texts.write_similarity,
    "nli/mednli": made_texts.write_inference,
    "doccls/docclsjp": lambda new, rng, names: made_texts.write_japanese(new / "doccls", rng),
    "qa/bioasq-7b-yesno-blurb": lambda new, *given: made_texts.write_yesno(new / "qa", *given),
    "qa/bioasq-8b-yesno": lambda new, *given: made_texts.write_yesno(new / "qa", *given),
    "qa/bioasq-reranker": lambda new, *given: made_texts.write_candidates(new / "qa/bioasq-reranker", *given),
    **{
        f"qa/bioasq-{form}": lambda new, *given: made_texts.write_factoid(new / "qa", *given)
        for form in ("factoid-biobert", "7b-biobert", "8b-factoid")
    },
}
NOTES = "corpora/mimic/NOTEEVENTS.csv"
# What is made of a credentialed corpus to pretrain on has to hold its text; .gitignore keeps it out of the repository.
WORKING = ("documents/mimic", "corpora/mimic")
COUNTED = ("gu-3", "lee-3", "naseem-6", "ozyurt-1")
VOCABULARIES = ("bert-cased", "bert-uncased", "pubmedbert-uncased", "pubmedbert-28895-uncased")
MODEL, SET = "bert-random", "share-clef-2013"  # the one restricted set with the three splits that fine-tuning needs
TAGGING = f"30_finetune_words--{MODEL}--lee--tagging"


class Run(NamedTuple):
    study: Study
    printed: list[str]  # by the commands
    found: dict[str, set[bytes]]  # canaries in each file outside the data folder
    files: set[str]


def make_names(folder: str) -> dict[str, list[str]]:
    """A lexicon of canaries of one set; where a field takes only some kinds of name, these tell it from others."""
    stem = re.sub(r"\W", "", folder.split("/")[1])
    kinds = ("drug", "disease", "device", "place")
    return {kind: [f"qzcanary{stem}{kind}{number}x" for number in range(12)] for kind in kinds}


def plant_chemprot(folder: Path, rng: random.Random, names: dict) -> None:
    made = made_relations
    sets = {
        split: made.make_statements(
            rng, f"{names['place'][0]} {split}", n, made.CHEMPROT, names["drug"], names["device"]
        )
        for split, n in made.SIZES.items()
    }
    made.write_chemprot(folder, sets)


def plant(data: Path, scratch: Path) -> None:
    """Write every restricted set with canaries for names, one public set, and clinical notes with a test sentence."""
    for split in datasets.SPLITS:
        sentences = made_tagging.make(random.Random(1), Lexicon(1).names, f"public {split}", 20)
        made_tagging.write_conll(data / f"ner/ncbi-disease/{split}.tsv", sentences, "disease", "Disease")
    for folder, write in PLANTED.items():
        write(scratch / folder, random.Random(1), make_names(folder))
        shutil.copytree(scratch / folder / folder, data / folder)
    # One set has no names, the other none that tell its second text from its first.
    edit(data / "doccls/docclsjp/docclsjp.csv", "第".encode(), "第qzcanarydocclsjptextx".encode(), count=0)
    for split in datasets.SPLITS:
        edit(data / f"nli/mednli/mli_{split}_v1.jsonl", b"The patient", b"The qzcanarymednlihypothesisx patient", 0)
    held = max((data / "ner/i2b2-2010/test_data/record-20.txt").read_text().split("\n"), key=len)
    (data / NOTES).parent.mkdir(parents=True)
    with open(data / NOTES, "w", newline="") as file:
        out = csv.writer(file, quoting=csv.QUOTE_ALL)
        out.writerow(["ROW_ID", "DESCRIPTION", "ISERROR", "TEXT"])
        for number in range(30):
            note = f"Seen on ward {number} for qzcanarymimicnote{number}x.\nSent home after {number + 2} days of rest."
            out.writerow([number, f"qzcanarymimicdescription{number}x", "", note + (f"\n{held}" * (number == 7))])


def unpack(data: bytes) -> list[bytes]:
    """What a file holds: its bytes, and unpacked what is packed."""
    if data[:2] == b"\x1f\x8b":
        return unpack(gzip.decompress(data))
    if data[:4] == b"PAR1":
        table = pq.read_table(io.BytesIO(data))
        return [repr(table.to_pylist()).encode(), repr(table.schema.metadata).encode()]
    if data[:2] == b"PK":
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return [part for member in archive.namelist() for part in (member.encode(), *unpack(archive.read(member)))]
    return [data]


def search(folder: Path, leave_out: tuple[Path, ...] = ()) -> tuple[dict[str, set[bytes]], set[str]]:
    """The canaries in each file below a folder and in its name, and the files that were searched."""
    found, files = {}, set()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(path.is_relative_to(place) for place in leave_out):
            name = str(path.relative_to(folder))
            files.add(name)
            hits = {hit for part in (name.encode(), *unpack(path.read_bytes())) for hit in CANARY.findall(part)}
            if hits:
                found[name] = hits
    return found, files


def search_study(study: Study) -> tuple[dict[str, set[bytes]], set[str]]:
    return search(study.folder, (study.folder / "data", *(study.folder / "outputs/laptop" / w for w in WORKING)))


def edit(path: Path, pattern: bytes, replacement: bytes, count: int = 1) -> None:
    content = path.read_bytes()
    changed = re.sub(pattern, replacement, content, count=count)
    assert changed != content
    path.write_bytes(changed)


def make_tables(folder: Path) -> None:
    """Keep of the study's parameters what the run needs, at a scale of real data."""
    shutil.copytree(paths.PARAMS / "papers", folder / "params/papers", dirs_exist_ok=True)
    for kind in ("corpora", "vocabularies"):
        shutil.copy(paths.PARAMS / f"{kind}.yaml", folder / "params")
    keep_tables(folder, {"gu": ["3", "8"], "lee": ["3"], "naseem": ["6"], "ozyurt": ["1"]})
    keep_keys(folder, "corpora", ("mimic", "pubmed"))
    keep_keys(folder, "vocabularies", VOCABULARIES)
    scale = TINY.replace("made_up: true", "made_up: false").replace("seeds: [1, 2]", "seeds: [1]")
    scale = re.sub("datasets: .*", f"datasets: [{SET}]", scale).replace("epochs: [3]", "epochs: [1]")
    scale = re.sub("\npanels:\n(?: .*\n)+", "\n", re.sub("\nmodels: .*", "\nmodels: []", scale))
    (folder / "params/scales/laptop.yaml").write_text(scale.replace("smoke (made-up", "laptop (made-up"))
    with open(folder / "lib/study/claims.py", "a") as file:
        file.write(f"{LEFT_OUT}CLAIMS = tuple(replace(claim, test=LEFT_OUT) for claim in CLAIMS)\n")


def make_vocabularies(folder: Path) -> list[str]:
    """Vocabularies of letters under the names of the published ones."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,:'\"()"
    small = [*("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"), *letters, *(f"##{letter}" for letter in letters)]
    for key in VOCABULARIES:
        settings = params.load("vocabularies", key)
        capitals = [*letters[:26].upper(), *(f"##{letter}" for letter in letters[:26].upper())]
        write_lines(folder / settings.file, small + (capitals if settings.cased else []))
    return small


def make_model(folder: Path, vocabulary: list[str]) -> None:
    from transformers import BertTokenizer

    from lib.modeling import models

    body = Body(layers=1, hidden=32, heads=2, intermediate=64, embedding=16)
    models.build_model("bert", body, len(vocabulary), 32, 0.1).save_pretrained(folder)
    write_lines(folder / "vocab.txt", vocabulary)
    BertTokenizer(vocab=str(folder / "vocab.txt"), do_lower_case=True).save_pretrained(folder)


def make_punkt(folder: Path) -> None:
    """A sentence splitter for ChemProt in NLTK's form, of one that has learnt nothing."""
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        write_lines(folder / "tokenizers/punkt_tab/english" / name, [])


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A copy of the study at scale laptop, whose data folder holds made-up sets with canaries; nothing has run."""
    import nltk

    study, scratch = Study(tmp_path_factory.mktemp("private")), tmp_path_factory.mktemp("scratch")
    study.copy_tiny()
    make_tables(study.folder)
    make_punkt(scratch / "nltk")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("STUDY_DATA", raising=False)
        patch.setenv("NLTK_DATA", str(scratch / "nltk"))
        patch.setattr(nltk.data, "path", [str(scratch / "nltk")])
        patch.setattr(paths, "ROOT", study.folder)
        patch.setattr(places, "ROOT", study.folder)
        chemprot.load_punkt.cache_clear()
        plant(study.folder / "data", scratch)
        make_model(study.folder / "outputs/laptop/models" / MODEL, make_vocabularies(study.folder / "data"))
        yield study
    chemprot.load_punkt.cache_clear()


def start_tagging(study: Study) -> subprocess.Popen:
    """Fine-tuning on a restricted set with show_text, which the graph asks for where data are made up alone."""
    given = {"scale": "laptop", "model": MODEL, "datasets": [SET], "protocol": "lee", "show_text": True}
    return study.start_code(f"""
from lib.running import warm
kernel = warm.Kernel()  # before this process has a thread that computes
from lib.running import runner
runner.run("laptop", "30_finetune_words", {TAGGING!r}, {given}, kernel=kernel)
""")


def run_both(study: Study, *words: str, fails: bool = False) -> Run:
    """Fine-tuning beside the graph, which ends with the report."""
    tagging = start_tagging(study)
    printed = [study.run("laptop", "--partial", *words, fails=fails), tagging.communicate(timeout=300)[0]]
    assert (tagging.returncode != 0) == fails, printed[1]
    return Run(study, printed, *search_study(study))


@pytest.fixture(scope="module")
def good_run(study) -> Run:
    return run_both(study, "12", "13", "14", "15_without_pretraining", "22", "mimic")


@pytest.fixture(scope="module")
def failed_run(good_run) -> Run:
    """The same with canaries where readers expect a type that they know."""
    folder = good_run.study.folder / "data/ner"
    con = folder / "i2b2-2010/concept_assertion_relation_training_data/beth/concept/record-00.con"
    xml = folder / SET / "Task1TrainSetGOLD199knowtatorehost/00000-000004-DISCHARGE_SUMMARY.txt.knowtator.xml"
    whole = {path: path.read_bytes() for path in (con, xml)}
    edit(con, b't="[a-z]+"', b't="qzcanarytype"')
    edit(xml, b'mentionClass id="Disease_Disorder"', b'mentionClass id="qzcanarytype"')
    failed = run_both(good_run.study, "12_datasets", fails=True)
    for path, content in whole.items():
        path.write_bytes(content)
    return failed


def test_a_canary_anywhere_is_found(tmp_path):
    write_files(tmp_path, {"deep/er/page.html": "<td>患者QZCANARYmedsts</td>", "qzcanarymedsts.txt": "",
                           "clean.txt": "In series 7 a drug was given."})  # fmt: skip
    write_gzip(tmp_path / "log.gz", b"cut off: qzcanary")
    write_zip(tmp_path / "log.zip", {"a/member": "qzcanarymedstsdrug3x"})
    pq.write_table(pa.table({"column": ["qzcanarymedsts"]}), tmp_path / "rows.parquet")
    pq.write_table(pa.table({"qzcanary": [1]}), tmp_path / "columns.parquet")
    found, files = search(tmp_path)
    assert files - set(found) == {"clean.txt"} and len(files) == 7
    assert set(search(tmp_path, (tmp_path / "deep",))[0]) == set(found) - {"deep/er/page.html"}


@each("key", RESTRICTED)
def test_every_restricted_set_is_planted_and_read(study, key):
    """A set that is registered without being planted fails here."""
    dataset = registry.lookup(key)
    names = {name for found in dataset.files.values() for name in found}
    assert all(any(Path(name).is_relative_to(folder) for folder in PLANTED) for name in names)
    at_hand = open_study("laptop").dataset(key).splits
    assert at_hand
    for split in at_hand:
        loaded = [repr(instance).encode() for instance in open_study("laptop").dataset(key).load(split)]
        assert sum(bool(CANARY.search(text)) for text in loaded) > len(loaded) / 2


def test_every_credentialed_source_is_planted(study):
    sources = [params.load("sources", key) for key in params.keys("sources")]
    assert [source.files.rstrip("*") for source in sources if source.access != "public"] == [NOTES]
    trained = {corpus for key in params.keys("vocabularies") for corpus in params.load("vocabularies", key).corpora}
    access = {open_study("laptop").corpus(key).access for key in trained}
    assert access == {"public"}  # a vocabulary holds words of what it is trained on
    assert all(CANARY.search(note.text.encode()) for note in readers.read_notes(study.folder / "data" / NOTES))


def test_everything_ran_and_read_the_canaries(good_run):
    folder = good_run.study.folder / "outputs/laptop"
    counted = {f"13_dataset_counts--{key}" for key in COUNTED}
    others = {TAGGING, "10_corpora--mimic", "12_datasets", "14_leaks", "15_without_pretraining", "22_input_lengths"}
    assert {path.stem for path in (folder / "notebooks").glob("*.ipynb")} == counted | others
    assert set(RESTRICTED) <= set(pd.read_csv(folder / "tables/datasets.csv")["dataset"])
    assert len(set(RESTRICTED) & set(pd.read_csv(folder / "tables/baselines.csv")["dataset"])) > 10
    lengths = pd.read_csv(folder / "tables/gu-8.csv").set_index("row")["ours"]
    assert lengths[["ChemProt", "BioASQ"]].notna().all()
    leaks = pd.read_csv(folder / "tables/leaks.csv").set_index(["finding", "dataset"])["count"]
    assert leaks["test sentences in the raw corpora"]["i2b2-2010"] == 1
    corpus = artefacts.read_json(folder / "corpora/mimic/record.json")
    assert (corpus["read"], corpus["test text"]) == (30, 1)
    assert all(search(folder / place)[0] for place in WORKING)
    assert f"outputs/laptop/predictions/{MODEL}--{SET}--lee--1.parquet" in good_run.files
    assert {"outputs/laptop/test-sentences/index.parquet", "outputs/laptop/report/14_leaks.html"} <= good_run.files


def test_nothing_of_a_restricted_set_is_written_or_printed(good_run):
    assert good_run.found == {}
    assert not any(CANARY.search(text.encode()) for text in good_run.printed)


# One of each form: four sets of factoid questions go the same way.
FORMS = {registry.lookup(key).read: key for key in RESTRICTED if {"train", "test"} <= registry.lookup(key).files.keys()}


def test_what_fine_tuning_keeps_of_a_restricted_set_holds_none_of_its_text(good_run, monkeypatch):
    study = open_study("laptop")
    keys = [key for key in FORMS.values() if "test" in study.dataset(key).splits]
    assert len(keys) > 9
    protocol = study.protocol
    short = {"epochs": [1], "batch_size": [32], "learning_rate": [1e-3], "min_steps": None, "folds": 1, "runs": 1}
    for key in keys:
        settings = protocol("gu", key).model_copy(update=short)
        monkeypatch.setattr("lib.study.study.Study.protocol", lambda *_, settings=settings: settings)
        result = open_study("laptop").finetune(MODEL, key, "gu")
        assert result["runs"][0]["instances"]["test"] > 0, key
        for place in ("predictions", "results"):
            folder = paths.output("laptop", place)
            assert list(folder.glob(f"{MODEL}--{key}--gu*")), key
            assert search(folder)[0] == {}, key


def test_nothing_of_a_restricted_set_is_in_what_a_failure_leaves(failed_run):
    failed = {"outputs/laptop/failed/12_datasets.ipynb", "outputs/laptop/report/12_datasets--failed.html"}
    assert failed | {f"outputs/laptop/failed/{TAGGING}.ipynb"} <= failed_run.files
    assert "record-00.con:" in failed_run.printed[0] and "knowtator.xml:" in failed_run.printed[1]
    assert failed_run.found == {}
    assert not any(CANARY.search(text.encode()) for text in failed_run.printed)


@pytest.mark.skipif(not (REPOSITORY / ".git").exists(), reason="git says what it ignores")
def test_what_is_made_of_credentialed_text_is_not_committed():
    places = [f"outputs/{scale}/{place}/documents.parquet" for scale in ("laptop", "paper") for place in WORKING]
    ignored = subprocess.run(
        ["git", "check-ignore", "--no-index", *places, "data/x"], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert ignored.stdout.split() == [*places, "data/x"]


def list_instances(show_text: bool) -> list[dict]:
    """The instances that page 12 shows, of every dataset with files here."""
    registered = map(open_study("laptop").dataset, registry.DATASETS)
    return list(definitions("12_datasets").list_instances(registered, show_text))


def look_at_notes(show_text: bool) -> str:
    """What page 10 shows of credentialed text."""
    return definitions("10_corpora").look_at_corpus(open_study("laptop"), "mimic", show_text).data


@each("show_text", [True, False])
def test_pages_show_no_instance_of_a_restricted_set(good_run, show_text):
    found = [open_study("laptop").dataset(key) for key in RESTRICTED]
    shown = [repr(show.readable(dataset, show_text).load("train")) for dataset in found]
    shown += [show.quote([{"text": "qzcanary"}], dataset, show_text).data for dataset in found]
    shown += [str(list_instances(show_text)), look_at_notes(show_text)]
    assert len(shown) > 20
    assert not any(CANARY.search(text.encode()) for text in shown)


def test_pages_would_show_them_if_they_were_public(good_run, monkeypatch):
    public = {key: dataclasses.replace(dataset, access="public") for key, dataset in registry.DATASETS.items()}
    monkeypatch.setattr(registry, "DATASETS", public)
    monkeypatch.setattr("lib.study.corpora.Corpus.access", "public")
    dataset = open_study("laptop").dataset(SET)
    assert CANARY.search(repr(show.readable(dataset, True).load("train")).encode())
    assert CANARY.search(str(list_instances(True)).encode())
    shown = show.quote([{"text": "qzcanary"}], dataset, True).data, look_at_notes(True)
    assert all(CANARY.search(text.encode()) for text in shown)
