"""The command line of the study, behind ./run_all.sh."""

import argparse
import fcntl
import fnmatch
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import pandas as pd

from lib import artefacts
from lib.benchmarks import registry
from lib.errors import StudyError, unknown
from lib.places import from_here, settle_variables, show_path
from lib.running import anew, graph, labelling, plan, record, report
from lib.study import dataset_texts, downloads, exploring, open_study, params, parsing, paths, receipts

USAGE = """\
./run_all.sh [scale] [target ...]   run the study (scale: smoke by default), ending with a report
./run_all.sh [scale] report         only the report, from existing outputs and the record
./run_all.sh released [target ...]  the papers' tables from public weights, nothing pretrained (--quick: one seed)
./run_all.sh SCALE record           copy a run's results to outputs/record/, which is committed
./run_all.sh evaluate [--model FOLDER_OR_HUB_NAME] [--protocol gu] [--datasets name ... | --data FOLDER]
                      [--scale laptop] [--compare [model ...]] [--save FOLDER]
                                    evaluate an encoder on a paper's benchmarks or your own data, beside others;
                                    save the best models
./run_all.sh leaderboard [FOLDER ...] [--scale laptop]
                                    result files that `evaluate` wrote, printed scores and the record on one page
./run_all.sh tag [--model FOLDER] [file ...] [--format jsonl|tsv|brat|pubtator] [-o PATH]
                                    tag the entities of new text with a saved model (default: model/tagger); without a
                                    file, of standard input
./run_all.sh classify --model FOLDER [file ...] [--format jsonl|tsv] [-o PATH]
                                    classify new texts or pairs with a saved model
./run_all.sh data [name ...] [--files N]
                                    download or build missing public data; say how to get the rest
./run_all.sh test [pytest options]  ruff and the tests
./run_all.sh lab                    JupyterLab with the study's kernel

targets: keys of tables (lee-4), notebooks (30), models, corpora, vocabularies; none: everything"""


LEADERBOARD = "03_leaderboard"


def main(words: list[str]) -> int:
    """Run one command line; return its exit status. An error or interruption is told in one line."""
    settle_variables()
    try:
        return run_command(words)
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nstopped; {how_to_go_on('--again' in words)}", file=sys.stderr)
        return 130


def run_command(words: list[str]) -> int:
    """Do what the words of a command line ask for; return the exit status."""
    match words:
        case ["test", *options]:
            return run_tests(options)
        case ["lab", *options]:
            os.chdir(paths.ROOT)
            os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *options])
        case ["tag" | "classify", *_]:
            return labelling.run_labelling(words)
        case ["evaluate", *options]:
            return evaluate(options)
        case ["leaderboard", *options]:
            return show_leaderboard(options)
        case ["data", *options]:
            return fetch_data(options)
    parser = argparse.ArgumentParser("run_all.sh", usage=USAGE, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true", help="list scales and targets")
    parser.add_argument("--dry-run", action="store_true", help="what would be done, and why")
    parser.add_argument("--verbose", action="store_true", help="with --dry-run: Snakemake's own words")
    parser.add_argument("--status", action="store_true", help="what is done of each stage, what runs, what failed")
    parser.add_argument("--again", action="store_true", help="rebuild the targets, as when code of lib has changed")
    parser.add_argument("--quick", action="store_true", help="with released: one seed, no hyperparameter search")
    parser.add_argument("--partial", action="store_true", help="go on with the real data at hand")
    parser.add_argument("--cores", type=int, default=count_cores(), help="notebooks at once (default: all cores)")
    parser.add_argument("--profile", metavar="FOLDER", type=from_here, help="for a cluster: profiles/slurm")
    return run_targets(parser.parse_intermixed_args(words))


def fetch_data(words: list[str]) -> int:
    parser = argparse.ArgumentParser("run_all.sh data")
    names_help = f"which files; default: all public ones. Names: {', '.join(downloads.load_manifest())}"
    parser.add_argument("names", nargs="*", metavar="name", help=names_help)
    parser.add_argument("--files", type=int, help="how many files of a listed source (pubmed-baseline); default: all")
    options = parser.parse_intermixed_args(words)
    if options.files is not None and options.files < 1:
        raise StudyError(f"--files {options.files}: at least one")
    return downloads.fetch_groups(options.names, options.files)


def how_to_go_on(again: bool) -> str:
    """Say how to resume a stopped or failed run.

    After --again it resumes without it, because a second --again would delete what the first has made.
    """
    return "run it without --again to go on" if again else "the same command goes on from here"


def run_targets(options: argparse.Namespace) -> int:
    scales = params.keys("scales")
    scale_words = [word for word in options.words if word in scales]
    if len(scale_words) > 1:
        raise StudyError(f"one scale at a time, not {' and '.join(scale_words)}")
    scale = scale_words[0] if scale_words else "smoke"
    words = [word for word in options.words if word != scale]
    if options.quick:
        if scale != "released":
            raise StudyError(f"--quick is for scale 'released', not '{scale}'")
        scale = "released-quick"
    if options.list:
        return print_targets(scale)
    if words in (["report"], ["record"]):
        if options.dry_run or options.status:
            raise StudyError(f"'{words[0]}' takes neither --dry-run nor --status")
        with the_only_study():
            return finish(scale, failed=False) if words == ["report"] else take_over_results(scale)
    words = [word for word in words if word != "report"]  # every run ends with the report
    if options.again and not words:
        raise StudyError(f"--again makes anew what is named: ./run_all.sh {scale} pubmedbert --again")
    try:
        wanted = plan.Plan(scale, words)
    except StudyError:
        if not scale_words and len(words) == 1:
            names = chain(
                scales,
                *plan.list_targets(scale).values(),
                ("record", "data", "evaluate", "leaderboard", "tag", "classify", "test", "lab"),
            )
            raise unknown("scale or target", words[0], names) from None
        raise
    if options.status:
        return print_status(scale, words)
    check_targets(wanted, options.partial)
    if wanted.study.budget.weights == "released":
        from lib.running import workload  # imported here because it takes seconds

        print(workload.describe_downloads(wanted), flush=True)
    flags = choose_place(options)
    if options.again:
        flags.append("--forcerun")
        for stage, keys in wanted.asked.items():
            flags += [receipts.name(scale, stage, job) for job in keys]
    receipts.forget_deleted(scale)
    if options.dry_run:
        status, output = graph.snakemake(scale, words, [*flags, "--dry-run"], stream=options.verbose)
        if not options.verbose and not status:
            print(graph.describe_plan(wanted, output))
        return status
    if wanted.jobs["corpus"] and (difference := dataset_texts.compare_sets(wanted.study)):
        print(difference)
    with the_only_study():
        artefacts.remove_leftovers(paths.output(scale))
        if options.again:
            anew.forget_targets(wanted)
        # On a cluster the runner's lines go to the job logs, so Snakemake's own output is shown.
        status, output = graph.snakemake(scale, words, [*flags, "--keep-going"], stream=bool(options.profile))
        if "Nothing to be done" in output:
            print(f"Nothing to do: everything asked for at scale '{scale}' is up to date.")
        return finish(scale, status != 0, options.again)


def evaluate(words: list[str]) -> int:
    """Evaluate one encoder on the datasets of a protocol's paper, named ones or the user's own.

    The run ends with a page of its scores.
    """
    parser = argparse.ArgumentParser("run_all.sh evaluate")
    model_help = "a folder in the save_pretrained layout, a hub name, or a key; default: encoder-14m, which ships"
    parser.add_argument("--model", default=exploring.SHIPPED, type=name_encoder, help=model_help)
    parser.add_argument("--protocol", default="gu", help=f"whose rules: {', '.join(params.keys('protocols'))}")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--datasets", nargs="*", help="default: those that the protocol's paper prints scores on")
    data_help = "your own: train, dev and test as CoNLL, BRAT, PubTator, CSV, TSV or JSON lines (docs/adding.md)"
    group.add_argument("--data", metavar="FOLDER", type=as_path, help=data_help)
    compare_help = f"encoders to put beside it; without a name {', '.join(params.keys('encoders'))}"
    parser.add_argument("--compare", nargs="*", metavar="MODEL", type=name_encoder, help=compare_help)
    parser.add_argument("--scale", default="laptop", help="whose budget: laptop, or paper for the paper's own settings")
    parser.add_argument("--cores", type=int, default=count_cores(), help="notebooks at once (default: all cores)")
    parser.add_argument("--dry-run", action="store_true", help="what would be done, and why")
    save_help = "where to save the best model of each dataset, in a folder of its name"
    parser.add_argument("--save", metavar="FOLDER", type=as_path, help=save_help)
    options = parser.parse_args(words)
    from lib.running import evaluation  # imported here because it takes seconds

    if not options.data:
        paths.require_data(options.scale)
    with the_only_study():  # because running jobs read the request
        target = evaluation.ask(options)
    command_line = [options.scale, target, "--partial", "--cores", str(options.cores)]
    return run_command([*command_line, "--dry-run"] if options.dry_run else command_line)


def show_leaderboard(words: list[str]) -> int:
    """Build the leaderboard page: result files beside printed scores and this study's scores.

    All result files are read and checked before the page runs.
    """
    parser = argparse.ArgumentParser("run_all.sh leaderboard")
    folder_help = "of result files (docs/results_format.md)"
    parser.add_argument("folders", nargs="*", metavar="FOLDER", type=as_path, help=folder_help)
    parser.add_argument("--scale", default="laptop", help="whose results stand beside the files'")
    options = parser.parse_intermixed_args(words)
    from lib.running import runner
    from lib.study import result_files  # imported here because it takes seconds

    scale = options.scale
    result_files.read_folders(options.folders, open_study(scale).budget.made_up)
    folders = [os.path.relpath(folder, paths.ROOT) for folder in options.folders]
    with the_only_study():
        runner.run(scale, LEADERBOARD, LEADERBOARD, {"scale": scale, "folders": folders}, [paths.leaderboard(scale)])
        print(f"Scores: {show_path(paths.leaderboard(scale))}")
        return finish(scale, failed=False)


def as_path(word: str) -> Path:
    """Return a path from the command line as an absolute path, with `~` expanded."""
    return Path(os.path.expanduser(word)).absolute()


def name_encoder(word: str) -> str:
    """Return the value of --model, with an existing path made absolute.

    A registered key takes precedence over a folder of the same name.
    """
    return word if params.find_kind(word) else from_here(word)


def check_targets(targets: plan.Plan, partial: bool) -> None:
    """Check settings and raw data before anything starts.

    Raises StudyError if a setting is invalid, or if raw data are missing and `partial` is not set.
    """
    needed = find_groups(targets)
    if not targets.study.budget.made_up and needed != set():
        folder = paths.require_data(targets.scale)
        missing = [name for name in downloads.list_missing(folder) if needed is None or name in needed]
        if missing and not partial:
            raise StudyError(
                f"{show_path(folder)} lacks files: ./run_all.sh data {' '.join(missing)} fetches them; "
                "--partial goes on with what is there"
            )
        for (table,) in targets.asked["table"]:
            for dataset, why_missing in targets.datasets_of(table).items():
                if why_missing:
                    print(f"{table}: left out: {dataset}: {why_missing}")
    for dataset in targets.study.budget.datasets or []:
        registry.lookup(dataset)
    for stage, keys in targets.jobs.items():
        for job in keys:
            targets.state(stage, *job)


def find_groups(targets: plan.Plan) -> set[str] | None:
    """Return the groups of params/downloads.yaml that the targets read; None stands for all of them.

    Those of a table include datasets that are not at hand. None for a page, an explored encoder, fine-tuning or tuning,
    because these use whatever datasets are at hand. If every dataset is the user's own, only the groups with corpus
    text.
    """
    if any(targets.asked[stage] for stage in ("page", "explored", "finetune", "tuning")):
        return None
    datasets = {dataset for (table,) in targets.asked["table"] for dataset in targets.datasets_of(table)}
    for model, protocol in targets.asked["evaluation"]:
        datasets |= {dataset for _, dataset, _ in targets.runnable.requested_runs(model, protocol)}
    patterns = set()  # of the corpora's raw files
    for (key,) in targets.jobs["corpus"]:
        patterns |= {params.load("sources", source).files for source in targets.study.corpus(key).sources}
    text_groups = set()
    for name, group in downloads.load_manifest().items():
        if any(fnmatch.filter(group.paths(), pattern) for pattern in patterns):
            text_groups.add(name)
    registered = datasets & {*registry.DATASETS}
    if datasets and not registered:
        return text_groups
    return {registry.lookup(dataset).group for dataset in registered} | text_groups | {"vocab"}


def choose_place(options: argparse.Namespace) -> list[str]:
    """Return Snakemake's options for where jobs run: on this machine, or as a profile says.

    Raises StudyError if the profile does not exist, or if its executor is not installed.
    """
    if not options.profile:
        # One job at a time uses the GPUs, because two would share their memory.
        return ["--cores", str(max(1, options.cores)), "--resources", "gpu=1"]
    file = paths.ROOT / options.profile / "config.yaml"
    if not file.exists():
        raise StudyError(f"--profile {options.profile}: no config.yaml in it; the study's own is profiles/slurm")
    executor = parsing.read_yaml(file, dict).get("executor", "local")
    plugin = f"snakemake-executor-plugin-{executor}"
    if executor != "local" and not importlib.util.find_spec(plugin.replace("-", "_")):
        raise StudyError(
            f"{show_path(file)}: the executor '{executor}' is not installed: run {show_path(Path(sys.executable))} "
            f"-m pip install {plugin} (for the version see docs/clusters.md)"
        )
    return ["--profile", str(file.parent)]


@contextmanager
def the_only_study() -> Iterator[None]:
    """Hold the lock of this folder. Raises StudyError if another study holds it.

    The kernel releases the lock when this process dies.
    """
    path = paths.ROOT / "outputs" / ".study.lock"
    path.parent.mkdir(exist_ok=True)
    with open(path, "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise StudyError(
                f"a study is already running in this folder (process {file.read().strip()}): "
                "wait for it, or see ./run_all.sh --status"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def finish(scale: str, failed: bool, again: bool = False) -> int:
    """Build the report if something changed, print where it is, and return the exit status."""
    index, built = report.build_report(scale)
    print(f"{'Report' if built else 'Report, unchanged'}: {show_path(index)}")
    if failed:
        print(f"Not everything was done (see above; the report links to failed notebooks): {how_to_go_on(again)}")
    return 1 if failed else 0


def take_over_results(scale: str) -> int:
    """Copy the results of a run into the record, and print how many files changed."""
    files = record.take_over(scale)
    print(f"{len(files)} files of outputs/record/{scale}/ are new or changed" if files else "Nothing has changed.")
    if files:
        record.update_summaries(scale)
        print("See git diff, then commit them.")
    return 0


def print_targets(scale: str) -> int:
    for kind, names in {"scales": params.keys("scales"), **plan.list_targets(scale)}.items():
        print(f"{kind + ':':14} {' '.join(names)}")
    return 0


def print_status(scale: str, words: list[str]) -> int:
    """Print the jobs done per stage, then running jobs with their progress, interrupted jobs and failed ones."""
    status, output = graph.snakemake(scale, words, ["--summary"])
    if status:  # the reason has been printed
        return status
    columns, *jobs = [line.split("\t") for line in output.splitlines() if line.count("\t") > 3]
    summary = pd.DataFrame(jobs, columns=columns)
    for rule, rule_jobs in summary.groupby("rule", sort=False):
        print(f"{rule:12} {(rule_jobs['plan'] == 'no update').sum()} of {len(rule_jobs)} done")
    for lock in sorted(paths.output(scale, "running").glob("*.lock")):
        running = artefacts.is_locked(lock)
        progress = graph.describe_progress(lock) if running else ""
        print(f"{'running' if running else 'interrupted':12} {lock.stem} {progress}")
    for page in sorted(paths.output(scale, "failed").glob("*.ipynb")):
        print(f"{'FAILED':12} {page.stem}")
    return 0


def count_cores() -> int:
    """Return the number of cores this process may use: fewer than the machine has under a batch system."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_tests(options: list[str]) -> int:
    """Run ruff, then pytest; return the exit status of the first that fails, else 0."""
    start = time.monotonic()
    parallel = ["--numprocesses=auto", "--dist=loadfile", "--no-loadscope-reorder"]  # in tests/conftest.py's order
    threads = {"OMP_NUM_THREADS": "1"}  # per worker, because workers already fill the cores
    for command in (["ruff", "check", "."], ["pytest", *parallel, *options]):
        status = subprocess.run([sys.executable, "-m", *command], cwd=paths.ROOT, env=threads | os.environ).returncode
        if status:
            return status
    print(f"all tests passed in {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
