"""Shared by the tests: the folder of real data, and a small copy of the study that runs in a minute."""

import contextlib
import fcntl
import functools
import gc
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from lib import artefacts
from lib.corpora import leakage
from lib.running import warm
from lib.study import dataset_texts, papers, params, paths
from lib.study.study import read_mesh

TINY = """\
title: smoke (made-up data, for the tests)
made_up: true
text: samples
bodies:
  small: {layers: 1, hidden: 32, heads: 2, intermediate: 64, embedding: 16}
  base: {layers: 1, hidden: 32, heads: 2, intermediate: 64, embedding: 16}
  large: {layers: 1, hidden: 32, heads: 2, intermediate: 64, embedding: 16}
vocabulary_size: 400
sequence_length: 32
precision: float32
threads: 1
seeds: [1, 2]
datasets: [ncbi-disease]
models: [bert-general]
panels:
  - protocol: lee
    models: [bert-general]
    datasets: [ncbi-disease]
pretraining:
  recipe:
    tokens: 40_000
    start: [word vectors, token counts, position waves]
    phases:
      - {length: 32, batch_size: 8, learning_rate: 3.0e-3, warmup: 0.1, share: 1.0}
    optimizer: adamw
    weight_decay: 0.01
    betas: [0.9, 0.98]
    dropout: 0.1
  micro_batch: 256
  compile: false
  workers: 0
  held_out_blocks: 8
  evaluations: 2
finetuning:
  epochs: [3]
  batch_size: [8]
  learning_rate: [5.0e-3]
"""
# What the small copy keeps of each kind.
KEPT = {
    "corpora": ["wiki-books", "pubmed"],
    "vocabularies": ["wiki-books-cased", "bert-uncased", "scibert-uncased", "pubmedbert-uncased"],
    "models": ["bert-random", "bert-general"],
}
LEFT_OUT = """
from lib.study.verdicts import Judgement
LEFT_OUT = Test(lambda study: Judgement(note="left out of this copy"))
"""
CLAIM = """
KEPT = {"lee-beats-bert-ner": paired("lee-4", ("BERT (Wiki+Books)", "Random initialisation"), metric="F1")}
CLAIMS = tuple(replace(claim, test=KEPT.get(claim.key, LEFT_OUT)) for claim in CLAIMS)
"""
COMPARISON = """
COMPARISONS = (Comparison("bert-random", "bert-general", "lee", ("ncbi-disease",)),)
"""

# For what runs in a copy: it asks no other host, and its modules are compiled once, and not in each of a hundred
# processes, also where the environment wants the checkout without bytecode.
IN_COPIES = {"HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": ""}


# The command line without building the report; it still prints where the report would be, as unchanged.
WITHOUT_REPORT = """
import sys
from lib.running import cli, report
from lib.study import paths
report.build_report = lambda scale: (paths.output(scale, "report", "index.html"), False)
sys.exit(cli.main({}))
"""


class Study:
    """A copy of the study in a folder, which may already be there."""

    def __init__(self, folder: Path):
        self.folder = folder

    def copy_tiny(self) -> None:
        """Copy the study at a tiny smoke scale: two models, one dataset, two tables."""
        self.copy(TINY)
        folder = self.folder
        for kind, kept in KEPT.items():
            keep_keys(folder, kind, kept)
        for scale in set(params.keys("scales")) - {"smoke"}:
            self.edit_yaml(f"params/scales/{scale}.yaml", models=[])
        keep_tables(folder, {"lee": ["4"], "gu": ["1"]})
        paper = yaml.safe_load((folder / "params/papers/lee.yaml").read_text())
        for name, stands_for in paper["names"].items():
            if stands_for.get("model", "bert-general") not in KEPT["models"]:
                paper["names"][name] = {"not_run": "left out of this copy"}
        self.edit_yaml("params/papers/lee.yaml", **paper)
        paper = yaml.safe_load((folder / "params/papers/gu.yaml").read_text())
        paper["tables"]["1"]["ours"] = ["wiki-books-cased"]
        self.edit_yaml("params/papers/gu.yaml", **paper)
        runs = yaml.safe_load((folder / "params/hardware.yaml").read_text())["runs"]
        for run in runs:
            run["days"] = {model: days for model, days in run["days"].items() if model in KEPT["models"]}
        self.edit_yaml("params/hardware.yaml", runs=[run for run in runs if run["days"]], ratios=[])
        self.edit_text("lib/study/claim_tests.py", '"bert-cased", "pubmed', '"bert-uncased", "pubmed')
        self.edit_text("lib/study/contrasts.py", 'ATTENDED = "bert-general-pubmed", "pubmedbert"', "ATTENDED = ()")
        long = "In series test 1, symptoms of babrer improved after tevilolol was given by mouth."
        self.edit_text("notebooks/02_explore_an_encoder.ipynb", long, "The town of babrer.")
        for module, lines in (("claims", LEFT_OUT + CLAIM), ("contrasts", COMPARISON)):
            with open(folder / f"lib/study/{module}.py", "a") as file:
                file.write(lines)

    def copy(self, scale: str) -> None:
        """Copy the whole study, with this text as its smoke scale."""
        folder = self.folder
        for name in ("lib", "made-up", "notebooks", "params", "published"):
            shutil.copytree(paths.ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        measured = "outputs/record/benchmarks"  # which pages 00 and 96 show
        shutil.copytree(paths.ROOT / measured, folder / measured)
        shutil.copy(paths.ROOT / "Snakefile", folder / "Snakefile")
        (folder / "params/scales/smoke.yaml").write_text(scale)

    @property
    def outputs(self) -> Path:
        return self.folder / "outputs" / "smoke"

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | IN_COPIES | {"PYTHONPATH": str(self.folder)}

    def start_python(self, *words: str) -> subprocess.Popen:
        """A Python process in this copy."""
        return subprocess.Popen(
            [sys.executable, *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def start(self, *words: str) -> subprocess.Popen:
        """The study's command line in this copy, as run_all.sh calls it."""
        return self.start_python("-m", "lib.running.cli", *words)

    def start_code(self, code: str) -> subprocess.Popen:
        """Lines of Python that read this copy, one such program at a time, in a child of the warm parent."""
        (self.folder / "program.py").write_text(code)
        return self.start_python("-SP", "lib/running/submit.py", "program")

    def run(self, *words: str, fails: bool = False) -> str:
        """Run to the end, in a child of the warm parent, which has imported what takes long; what was printed."""
        return finish(self.start_python("-SP", "lib/running/submit.py", "lib.running.cli", *words), fails)

    def run_without_report(self, *words: str, fails: bool = False) -> str:
        """Run as `run` does, but build no report, for tests that read none; what was printed."""
        return finish(self.start_code(WITHOUT_REPORT.format([*words])), fails)

    def run_code(self, code: str) -> str:
        """What lines of Python print that read this copy."""
        return finish(self.start_code(code))

    def edit_yaml(self, name: str, **changes) -> None:
        path = self.folder / name
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))

    def edit_text(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))


def finish(process: subprocess.Popen, fails: bool = False) -> str:
    """Wait for a process; what it printed."""
    output = process.communicate(timeout=600)[0]
    assert (process.returncode != 0) == fails, output
    return output


def keep_keys(folder: Path, kind: str, kept: Collection[str]) -> None:
    """Of a copy of the study these keys of a kind, whether they stand in files of their own or in one."""
    for path in (folder / "params" / kind).glob("*.yaml"):
        if path.stem not in kept:
            path.unlink()
    path = folder / "params" / f"{kind}.yaml"
    if path.exists():
        path.write_text(yaml.safe_dump({key: yaml.safe_load(path.read_text())[key] for key in kept}))


def keep_tables(folder: Path, kept: dict[str, list[str]]) -> None:
    """Of a copy of the study these tables of each paper, and of its names those that are printed or that they show."""
    printed = papers.read_printed(folder / "published")
    for path in (folder / "params/papers").glob("*.yaml"):
        paper = yaml.safe_load(path.read_text())
        paper["tables"] = {number: paper["tables"][number] for number in kept.get(path.stem, [])}
        known = {name for entry in paper["tables"].values() for name in entry.get("ours", [])}
        for (key, _), table in printed.items():
            known |= {*table["row"], *table["column"]} if key == paper["paper"] else set()
        paper["names"] = {name: stands_for for name, stands_for in paper["names"].items() if name in known}
        path.write_text(yaml.safe_dump(paper))


def run_python(code: str, *words: str, **variables: str) -> str:
    """What lines of Python print in a process of their own, with these environment variables beside those here."""
    command = [sys.executable, "-c", code, *words]
    return subprocess.check_output(command, cwd=paths.ROOT, env=os.environ | variables, text=True)


def change_settings(monkeypatch, kind: str, key: str, **changes) -> None:
    """Change settings of one entry of params/, such as `datasets` of the scale laptop."""
    load, changed = params.load, params.load(kind, key).model_copy(update=changes)
    monkeypatch.setattr(params, "load", lambda *named: changed if named == (kind, key) else load(*named))


def keep_calls(monkeypatch, owner, name: str, note: Callable, calls: list | None = None) -> list:
    """Return a list of what `note` makes of the arguments of each call of a function, which goes on as before."""
    calls, original = [] if calls is None else calls, getattr(owner, name)

    def call(*given, **options):
        calls.append(note(*given))
        return original(*given, **options)

    monkeypatch.setattr(owner, name, call)
    return calls


def jobs_started(output: str) -> list[str]:
    """The names of the notebooks that a run of the study started, in order of name."""
    return sorted(line.split()[2] for line in output.splitlines() if line[8:15] == " start ")


# Files of tests that run whole studies, train, or read all real data, take longest and begin first.
LONG = (
    "test_study",
    "test_released",
    "test_privacy",
    "test_record",
    "test_pretraining",
    "test_distributed",
    "test_finetuning",
    "test_browser",
    "test_witness",
    "test_counting",
    "test_committed",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first. --dist=loadfile keeps the tests of a file on one worker, so that they share what they make."""
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))


def pytest_collection_finish() -> None:
    """What is imported by now stays: the collector, which every training calls at its end, need not look at it."""
    gc.collect()
    gc.freeze()


def each(names: str | tuple[str, ...], values: Iterable) -> Callable:
    """As pytest.mark.parametrize, in one case: every value is tried, and the failure lists those that did not pass.

    Every value has a `tmp_path` of its own; the other fixtures are made once.
    """
    names, values = tuple(re.split(", *", names)) if isinstance(names, str) else names, list(values)

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def try_all(**fixtures):
            faults = []
            for number, value in enumerate(values):
                given = dict(zip(names, (value,) if len(names) == 1 else value, strict=True))
                if "tmp_path" in fixtures:
                    given["tmp_path"] = fixtures["tmp_path"] / str(number)
                    given["tmp_path"].mkdir()
                try:
                    test(**fixtures | given)
                except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # a value is never left out
                    faults.append(f"{value}: {type(error).__name__}: {error}")
            assert values and not faults, f"{len(faults)} of {len(values)}:\n" + "\n".join(faults)

        signature = inspect.signature(test)
        wanted = [p for name, p in signature.parameters.items() if name not in names]
        try_all.__signature__ = signature.replace(parameters=wanted)
        return try_all

    return decorate


def pytest_configure(config: pytest.Config) -> None:
    """One warm parent for the studies of all workers, which inherit its address."""
    if not hasattr(config, "workerinput"):
        ends = contextlib.ExitStack()
        address = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="study-"))) / "parent"
        environment = ends.enter_context(warm.start_parent(address, os.environ | IN_COPIES))
        patch = ends.enter_context(pytest.MonkeyPatch.context())
        if warm.ADDRESS in environment:
            patch.setenv(warm.ADDRESS, environment[warm.ADDRESS])
        config.add_cleanup(ends.close)


@pytest.fixture(scope="session")
def finished_study(tmp_path_factory) -> Study:
    """A tiny study that has run undisturbed, one for all workers. Tests that change it must take a copy."""
    several = "PYTEST_XDIST_WORKER" in os.environ
    place = tmp_path_factory.getbasetemp().parent if several else tmp_path_factory.getbasetemp()
    folder, printed = place / "finished-study", place / "finished-study.txt"
    with open(place / "finished-study.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the others wait for the worker that makes it
        if not printed.exists():
            shutil.rmtree(folder, ignore_errors=True)  # of one that failed
            study = Study(folder)
            study.copy_tiny()
            artefacts.write_text(printed, study.run())
    study = Study(folder)
    study.first_output = printed.read_text(encoding="utf-8")
    return study


@pytest.fixture
def whole_study(finished_study, tmp_path):
    """A finished study of the test's own."""
    copy = Study(tmp_path / "study")
    shutil.copytree(finished_study.folder, copy.folder, symlinks=True)
    return copy


@pytest.fixture
def study(whole_study):
    """The same with few of its pages, which every report renders: those that lead to one table."""
    for page in (whole_study.outputs / "notebooks").glob("*.ipynb"):
        if not page.name.startswith(("01", "23", "30", "40")):
            page.unlink()
    return whole_study


@pytest.fixture(scope="session")
def bert(tmp_path_factory) -> Path:
    """The folder of a small BERT with random weights, shared by the tests; do not change it."""
    import small_encoders

    folder = tmp_path_factory.mktemp("bert") / "my-bert"
    small_encoders.make(folder, "bert", small_encoders.SIZE)
    return folder


@pytest.fixture
def tokenizer():
    """A small uncased tokenizer, for tests that need no certain vocabulary."""
    import small_encoders  # and with it transformers, which not every test needs

    return small_encoders.learn_tokenizer()


@pytest.fixture
def real_data(monkeypatch) -> Path:
    """The folder of real data: $STUDY_DATA, or shared/data beside the repository; the test skips without it."""
    folder = paths.ROOT / os.environ.get("STUDY_DATA", "../shared/data")
    if not folder.is_dir():
        pytest.skip("no folder of real data: set STUDY_DATA")
    monkeypatch.setenv("STUDY_DATA", str(folder))
    return folder


@contextlib.contextmanager
def outputs_in(folder: Path) -> Iterator[Path]:
    """Outputs and record in this folder, for a module's fixture or a part of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "output", folder.joinpath)
        yield folder


@pytest.fixture
def own_outputs(tmp_path) -> Iterator[Path]:
    """Outputs and record in a folder of the test's own, which is not there yet."""
    with outputs_in(tmp_path / "outputs") as folder:
        yield folder


@pytest.fixture
def fresh() -> Iterator[None]:
    """Clear, before and after, the caches that hold data of the test before."""
    dataset_texts.test_texts.cache_clear()
    read_mesh.cache_clear()
    yield
    dataset_texts.test_texts.cache_clear()
    read_mesh.cache_clear()


def write_index(*sentences: str) -> None:
    """Write the index of the test sentences that documents of the smoke scale are searched for."""
    path = paths.test_sentences("smoke") / "index.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(leakage.index_sentences(sentences), path)


@pytest.fixture
def raw_data(fresh, own_outputs, tmp_path, monkeypatch) -> Path:
    """An empty data folder of the smoke scale, with an index of no test sentences."""
    monkeypatch.setattr(paths, "MADE_UP", tmp_path / "data")
    params.load.cache_clear()
    write_index()
    return paths.MADE_UP


@pytest.fixture
def smoke_data(own_outputs) -> Path:
    """The made-up data, with outputs in a folder of the test's own."""
    params.load.cache_clear()
    return paths.MADE_UP
