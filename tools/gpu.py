"""Measure on a machine that is at hand for minutes: it has a GPU and torch, but no network, git or Snakemake.

    python tools/gpu.py pack SCALE FOLDER [MODEL ...]  here: pack all that the scale's panels need into FOLDER
    python FOLDER/gpu.py run SECONDS OUT [PROCESSES]   there: pretrain and fine-tune until the time is over
    python tools/gpu.py take OUT                       here: put the results into outputs/<scale>/

The corpora and vocabularies of the scale must have been built (./run_all.sh SCALE KEY ...). Runs follow the order of
the panels, one pretraining after another, so that what is done when the time is over is complete. A second `run`
continues where the first stopped, as long as the machine keeps $STUDY_WORK (default: ~/study-gpu). Weights stay there:
a model that lacks a result is pretrained again, with all models that continue the same one, and all their results are
made again.
"""

import contextlib
import json
import lzma
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))  # last, because on that machine PYTHONPATH names the unpacked study

MOST = 60 * 10**6  # bytes in a packed folder
SAVED = 60.0  # seconds between packing results
PROCESSES = 14  # that share the GPU, each on its own core
# Packages that training needs and such a machine lacks, in the versions of requirements.lock.
WHEELS = ("annotated-types", "colorlog", "isal", "mwparserfromhell", "optuna", "pydantic", "pydantic-core", "sentencex",
          "seqeval", "typing-inspection")  # fmt: skip
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
TOKENS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 1, "pb": 1, "dict_size": 64 * 2**20}]  # two-byte ids

Job = tuple[str, ...]  # "pretrain" and a model, or "finetune", model, dataset and protocol


def list_chain(model: str) -> list[str]:
    """List a model after the models that it continues, the first one first."""
    from lib.study import params

    initial = params.load("models", model).initial
    return [*(list_chain(initial) if initial else []), model]


def list_jobs(runs: Iterable[Sequence[str]]) -> list[Job]:
    """List the pretraining of all models that runs need, each once, then the runs."""
    pretrained = dict.fromkeys(ancestor for model, *_ in runs for ancestor in list_chain(model))
    return [*(("pretrain", model) for model in pretrained), *(("finetune", *run) for run in runs)]


def order(runs: Sequence[Sequence[str]]) -> list[Job]:
    """List the jobs of runs, one pretraining seed after another."""
    from lib.study import params

    seeds = [params.split_seed(model)[1] for model, *_ in runs]
    by_seed = [list_jobs([run for run, run_seed in zip(runs, seeds, strict=True) if run_seed == seed])
               for seed in sorted({*seeds})]  # fmt: skip
    return list(dict.fromkeys(job for jobs in by_seed for job in jobs))


def pack(scale: str, folder: Path, only: Sequence[str] = (), wheels: bool = True) -> None:
    """Write into `folder` the study, its data, the text as tokens and the packages that the other machine lacks.

    `only`: the recipes whose runs to pack, if the runs of all panels are too many to travel at once. Raises StudyError
    for an unknown recipe, if there are uncommitted changes, if nothing is left to do, or if the folder becomes too
    large.
    """
    from lib import provenance
    from lib.errors import StudyError, unknown
    from lib.study import open_study, params, paths

    study, commit = open_study(scale), provenance.commit()
    if commit.endswith("+changes"):
        raise StudyError("lib, notebooks or params have changes: commit them, as results name the commit")
    runs = study.budget.panel_runs()
    recipes = {params.split_seed(model)[0] for model, *_ in runs}
    for name in only:
        if name not in recipes:
            raise unknown("recipe", name, recipes)
    runs = [run for run in runs if not only or params.split_seed(run[0])[0] in only]
    chains = {model: {*list_chain(model)} for model, *_ in runs}
    retrained = {
        ancestor for run in runs if not paths.find(paths.results(scale, *run)).exists() for ancestor in chains[run[0]]
    }
    runs = [run for run in runs if chains[run[0]] & retrained]
    if not runs:
        chosen = f" of {', '.join(only)}" if only else ""
        raise StudyError(f"every run{chosen} of the panels of scale '{scale}' has a result, here or in the record")
    models = [study.model(job[1]) for job in list_jobs(runs) if job[0] == "pretrain"]
    pairs = {(corpus.key, model.vocabulary.key): (corpus, model.vocabulary) for model in models
             for corpus in model.corpora}  # fmt: skip
    files = [*(ROOT / "lib").rglob("*.py"), *(ROOT / "params").rglob("*.yaml"), *(ROOT / "published").glob("*.csv")]
    for corpus, vocabulary in pairs.values():
        vocabulary.pack(corpus)
        files += [corpus.folder / "record.json", *vocabulary.folder.glob("*")]
    packed = {path: path.relative_to(ROOT) for path in dict.fromkeys(files)}
    for key in dict.fromkeys(dataset for _, dataset, _ in runs):
        dataset = study.dataset(key)
        data_files = [path for part in dataset.parts for path in dataset.paths(*part)]
        packed |= {path: path.relative_to(ROOT) if path.is_relative_to(ROOT) else "data" / path.relative_to(study.data)
                   for path in data_files}  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / "study.tar.xz", "w:xz", preset=9) as archive:
        for path, name in packed.items():
            archive.add(path, name)
    tokens = folder / "tokens.tar.xz"
    with lzma.open(tokens, "w", filters=TOKENS) as file, tarfile.open(fileobj=file, mode="w") as archive:
        for keys in pairs:
            path = paths.tokens(scale, *keys)
            archive.add(path, path.relative_to(ROOT))
    plan = {"scale": scale, "commit": commit, "jobs": order(runs)}
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    shutil.copy(__file__, folder / "gpu.py")
    if wheels:
        fetch_wheels(folder / "wheels", ROOT / "requirements.lock")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{len(plan['jobs'])} jobs, {size / 1e6:.1f} MB in {folder}")
    if size > MOST:
        raise StudyError(f"{size / 1e6:.1f} MB, where {MOST / 1e6:.0f} may travel: take fewer sets or texts")


def fetch_wheels(folder: Path, lock: Path) -> None:
    """Download or build the packages of WHEELS for Python 3.12, in the versions that the lock file pins."""
    pins = dict(re.findall(r"^([a-z0-9_.-]+)==([^ \\]+)", lock.read_text(encoding="utf-8"), re.M))
    pip = [sys.executable, "-m", "pip"]
    for name in WHEELS:
        requirement = f"{name}=={pins[name]}"
        platforms = [f"--platform={platform}" for platform in PLATFORMS]
        download = [*pip, "download", "--quiet", "--no-deps", "--only-binary=:all:", "--python-version=3.12",
                    "--implementation=cp", *platforms, "--dest", folder, requirement]  # fmt: skip
        if subprocess.run(download, capture_output=True).returncode:  # only its source is published
            subprocess.run([*pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, requirement], check=True)


def unpack(here: Path, work: Path) -> dict:
    """Unpack into `work`, once, put it on the import path of this process and its children, and return the plan."""
    plan_text = (here / "plan.json").read_text(encoding="utf-8")
    if (work / "plan.json").exists():
        if (work / "plan.json").read_text(encoding="utf-8") != plan_text:
            raise SystemExit(f"error: {work} holds another plan: delete it, or set STUDY_WORK to another folder")
    else:
        for name in ("study", "tokens"):
            with tarfile.open(here / f"{name}.tar.xz") as archive:
                archive.extractall(work, filter="data")
        if wheels := [*here.glob("wheels/*.whl")]:
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
            subprocess.run([*pip, "--target", work / "site", *wheels], check=True)
        (work / "plan.json").write_text(plan_text, encoding="utf-8")  # last, so that it marks a complete folder
    plan = json.loads(plan_text)
    import_paths = [str(work), str(work / "site")]
    sys.path[:0] = import_paths
    os.environ |= {
        "PYTHONPATH": os.pathsep.join([*import_paths, os.environ.get("PYTHONPATH", "")]),
        "STUDY_DATA": str(work / "data"), "STUDY_COMMIT": plan["commit"], "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    return plan


def share_gpu() -> None:
    """Start NVIDIA's MPS if it is installed, so that processes share the GPU; without it they take turns."""
    if command := shutil.which("nvidia-cuda-mps-control"):
        subprocess.run([command, "-d"], check=False)


def work_off(connection: Connection, scale: str) -> None:
    """Do jobs as they arrive; answer each with its traceback, or an empty string if it succeeds."""
    from lib import parent
    from lib.study import open_study

    parent.watch()  # this process ends if its parent is killed
    study = open_study(scale)
    while True:
        kind, *keys = connection.recv()
        try:
            if kind == "pretrain":
                study.model(*keys).pretrain()
            else:
                study.finetune(*keys)
            connection.send("")
        except Exception:  # a failed job must not stop the others
            connection.send(traceback.format_exc())


@dataclass
class Crew:
    """Processes that do jobs, one each at a time."""

    scale: str
    size: int
    idle: list[Connection] = field(default_factory=list)
    busy: dict[Connection, tuple[Job, float]] = field(default_factory=dict)
    processes: dict[Connection, multiprocessing.Process] = field(default_factory=dict)

    def start(self, job: Job) -> None:
        """Give a job to an idle process, or to a new one."""
        if not self.idle:
            ours, theirs = multiprocessing.Pipe()
            context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork once it is initialized
            process = context.Process(target=work_off, args=(theirs, self.scale), daemon=True)
            process.start()
            theirs.close()
            self.processes[ours] = process
            self.idle.append(ours)
        connection = self.idle.pop()
        with contextlib.suppress(OSError):  # its process has died, which `finish` notices
            connection.send(job)
        self.busy[connection] = job, time.monotonic()

    def finish(self, seconds: float) -> Iterable[tuple[Job, float, str]]:
        """Yield the jobs that end within `seconds`, each with its duration and its problem, empty if it succeeded."""
        for connection in wait(list(self.busy), seconds):
            job, start_time = self.busy.pop(connection)
            try:
                problem = connection.recv()
                self.idle.append(connection)
            except (EOFError, OSError):  # OSError: it died before it read its job
                problem = f"its process ended with {self.processes[connection].exitcode}"
            yield job, time.monotonic() - start_time, problem

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.join()


def run(here: Path, work: Path, seconds: float, out: Path, processes: int = PROCESSES) -> int:
    """Do the jobs of the plan until the time is over, pack their results into `out`, and return how many failed.

    A job is not started if the longest one of its kind took more than the time left.
    """
    deadline = time.monotonic() + seconds
    plan = unpack(here, work)
    from lib.study import params

    share_gpu()
    scale, waiting = plan["scale"], [tuple(job) for job in plan["jobs"]]
    done = {job for job in waiting if result_of(scale, job).exists()}
    waiting = [job for job in waiting if job not in done]
    longest: dict[str, float] = {}  # kind of job -> seconds of its longest
    failed, crew, last_save = 0, Crew(scale, processes), time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    needs = {job: params.load("models", job[1]).initial if job[0] == "pretrain" else job[1] for job in waiting}

    def may_begin(job: Job) -> bool:
        ready = not needs[job] or ("pretrain", needs[job]) in done
        return ready and time.monotonic() + longest.get(name_kind(job), 0.0) < deadline

    while time.monotonic() < deadline:
        while len(crew.busy) < crew.size and (job := next(filter(may_begin, waiting), None)):
            waiting.remove(job)
            crew.start(job)
        if not crew.busy:
            break
        for job, duration, problem in crew.finish(min(1.0, max(0.0, deadline - time.monotonic()))):
            print(f"{'FAILED' if problem else 'done  '} {' '.join(job)} ({duration:.0f} s) {problem}", flush=True)
            entry = {"job": job, "seconds": round(duration, 1), "problem": problem}
            with open(out / "jobs.jsonl", "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
            failed += bool(problem)
            if not problem:
                done.add(job)
                longest[name_kind(job)] = max(duration, longest.get(name_kind(job), 0.0))
        if time.monotonic() - last_save > SAVED:
            save(scale, done, out)
            last_save = time.monotonic()
    crew.stop()
    remaining = len(waiting) + len(crew.busy)
    print(f"{len(done)} jobs done, {failed} failed, {len(crew.busy)} broken off, {remaining} left", flush=True)
    save(scale, done, out)
    return failed


def save(scale: str, done: Iterable[Job], out: Path) -> None:
    """Pack the results of finished jobs: for models, their record and log."""
    from lib.study import paths

    temporary = out / ".results.tar.xz.tmp"
    with tarfile.open(temporary, "w:xz") as archive:
        archive.add(paths.ROOT / "plan.json", "plan.json")
        for job in sorted(done):
            path = result_of(scale, job)
            for file in (path, path.with_name("log.jsonl")) if job[0] == "pretrain" else (path,):
                archive.add(file, file.relative_to(paths.ROOT))
    os.replace(temporary, out / "results.tar.xz")


def result_of(scale: str, job: Job) -> Path:
    """Return the file that shows that a job is done."""
    from lib.study import paths

    kind, *keys = job
    return paths.model(scale, *keys) / "record.json" if kind == "pretrain" else paths.results(scale, *keys)


def name_kind(job: Job) -> str:
    """Return what jobs of about the same duration share: a recipe, or a dataset and protocol."""
    from lib.study import params

    return params.split_seed(job[1])[0] if job[0] == "pretrain" else " ".join(job[2:])


def take(out: Path) -> None:
    """Put the returned files below outputs/, and delete these models' results there that come from other weights.

    A model is left out if the record has results of it that did not come again, because it would mix two sets of
    weights.
    """
    with tarfile.open(out / "results.tar.xz") as archive:
        members = [member for member in archive.getmembers() if member.name.startswith("outputs/")]
        mixed = find_mixed({member.name for member in members})
        members = [member for member in members if name_owner(member.name) not in mixed]
        archive.extractall(ROOT, members, filter="data")
    new_results = [ROOT / member.name for member in members if Path(member.name).parent.name == "results"]
    weights = {(path.parent, name_model(path)): read_weights(path) for path in new_results}
    outdated = [path for folder, model in weights for path in folder.glob(f"{model}--*.json")
                if read_weights(path) != weights[folder, model]]  # fmt: skip
    for path in outdated:
        path.unlink()
    print(f"{len(members)} files taken over, {len(outdated)} results of other weights taken away")
    if mixed:
        print(f"left out, as the record has results of theirs that did not come again: {', '.join(sorted(mixed))}")


def find_mixed(came: set[str]) -> set[str]:
    """Return the models that have some new results, and others only in the record."""
    results = {name for name in came if Path(name).parent.name == "results"}
    scales = {Path(name).parts[1] for name in results}
    recorded = {f"outputs/{scale}/results/{path.name}" for scale in scales
                for path in (ROOT / "outputs" / "record" / scale / "results").glob("*.json")}  # fmt: skip
    return set(map(name_owner, recorded - results)) & set(map(name_owner, results))


def name_owner(member: str) -> str:
    """Return the model that a packed file belongs to: a result, or a file in the model's folder."""
    path = Path(member)
    return name_model(path) if path.parent.name == "results" else path.parent.name


def name_model(result: Path) -> str:
    return result.name.split("--")[0]


def read_weights(result: Path) -> str:
    """Return the fingerprint of the weights that a result comes from."""
    return json.loads(result.read_text(encoding="utf-8"))["runs"][0]["inputs"]["model"]


def main(words: list[str]) -> int:
    match words:
        case ["pack", scale, folder, *rest]:
            from lib.errors import StudyError

            try:
                only = [word for word in rest if word != "--no-wheels"]
                pack(scale, Path(folder), only, wheels="--no-wheels" not in rest)
            except StudyError as error:
                print(f"error: {error}", file=sys.stderr)
                return 1
        case ["run", seconds, out, *processes]:
            work = Path(os.environ.get("STUDY_WORK", Path.home() / "study-gpu"))
            return int(bool(run(Path(__file__).parent, work, float(seconds), Path(out), *map(int, processes))))
        case ["take", out]:
            take(Path(out))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
