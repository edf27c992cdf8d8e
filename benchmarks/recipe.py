"""What the scale laptop's recipe of pretraining brings on two cores, and which of its settings does the work.

    python benchmarks/recipe.py bar [--seeds N]
    python benchmarks/recipe.py settings [name ...]
    python benchmarks/recipe.py bodies [name ...]

`bar`: one model is pretrained by the scale's recipe with two threads, on a machine that should have nothing else to
do, and fine-tuned on BC5CDR-chem; beside it the same body with random weights. Each seed does both. The learning
rate of both arms is chosen from the same candidates on the development set, for each seed.

`settings`: the recipe that the tuning started from with one setting changed at a time, and the scale's recipe, which
came out of it; each on the same number of pieces, fewer than the bar's, and fine-tuned on a third of the sentences,
with one thread and one seed; two run beside each other. Held-out rows and their masks are the same for all, but for
rows of 64 pieces, which hold half the text and show less of it at once; the F1 is of the development set. Where a body
or an objective is changed, seconds differ too.

`bodies`: the same for the scale's recipe with bodies of other widths and depths, and with a larger vocabulary, each on
as many pieces as it trains on in about the time that the scale's own takes for three million. Losses over different
vocabularies are not of the same text in as many pieces: they do not compare.

The model has PubMedBERT's text and vocabulary; it hides pieces, not whole words, and has no pairs, so that its loss is
that of masked pieces alone. Needs that text and vocabulary (./run_all.sh laptop pubmed-uncased) and the folder of real
data. All else is made in outputs/benchmarks/recipe/; what is there is not made again. Seconds of pretraining include
those of the word vectors and not the text's conversion into pieces, which all models of one text share.

Writes outputs/record/benchmarks/recipe.csv, recipe-settings.csv or recipe-bodies.csv; of the latter two the lines
that are named.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import yaml

from lib import artefacts, provenance
from lib.errors import StudyError, unknown
from lib.places import show_path
from lib.pretraining.pretraining import read_log
from lib.study import params, paths, results

OUTPUT = paths.output("record", "benchmarks")
STUDY = paths.output("benchmarks", "recipe")  # a copy of the study, with a scale of its own for each run
SCALE, MODEL, DATASET, PROTOCOL = "laptop", "pubmedbert", "bc5cdr-chem", "lee"
SHARED = ("corpora", "vocabularies", "tokens")  # of the scale laptop, used where they lie
SETTINGS_PIECES = 1_200_000  # fewer than the scale's, which the bar has
LOSS_BAR, F1_BAR, MINUTES_BAR = 3.9, 10.0, 20.0
FINETUNING = {"epochs": [4], "batch_size": [16], "learning_rate": [5.0e-4, 1.0e-3]}
SETTINGS_FINETUNING = FINETUNING | {"epochs": [3], "train_instances": 1500}  # a third of them
PLAIN = {"masking": "word-piece", "pairs": "none"}


@dataclass(frozen=True)
class Change:
    """What a run has otherwise than the recipe: that before the tuning, or `adopted`, the scale's."""

    what: str
    adopted: bool = False
    pieces: int = SETTINGS_PIECES
    recipe: dict = field(default_factory=dict)
    phase: dict = field(default_factory=dict)
    body: dict = field(default_factory=dict)
    model: dict = field(default_factory=dict)
    vocabulary_size: int | None = None  # None: the scale's


BEFORE = {  # the recipe that the tuning started from
    "masked_share": 0.3,
    "phases": [{"length": 128, "batch_size": 16, "learning_rate": 1.0e-3, "warmup": 0.05, "share": 1.0}],
}
ADOPTED = "adopted"


def change_body(layers: int, hidden: int, vocabulary_size: int | None = None, **others) -> Change:
    """A body of BERT's proportions, with heads of 64."""
    body = {"layers": layers, "hidden": hidden, "heads": hidden // 64, "intermediate": 4 * hidden}
    what = f"{layers} layers, {hidden} wide" + f", a vocabulary of {vocabulary_size}" * bool(vocabulary_size)
    return Change(what, body=body, vocabulary_size=vocabulary_size, **others)


SETTINGS = {
    "before": Change("nothing"),
    "start-random": Change("random start", recipe={"start": []}),
    "start-no-waves": Change("start without position waves", recipe={"start": ["word vectors", "token counts"]}),
    "start-no-vectors": Change("start without word vectors", recipe={"start": ["token counts", "position waves"]}),
    "start-no-counts": Change("start without token counts", recipe={"start": ["word vectors", "position waves"]}),
    "batch-halved": Change("half as many rows in a step", phase={"batch_size": 8}),
    "batch-doubled": Change("twice as many rows in a step", phase={"batch_size": 32}),
    "rate-halved": Change("half the learning rate", phase={"learning_rate": 5.0e-4}),
    "rate-doubled": Change("twice the learning rate", phase={"learning_rate": 2.0e-3}),
    "masked-15": Change("15% of the pieces masked", recipe={"masked_share": 0.15}),
    "masked-40": Change("40% of the pieces masked", recipe={"masked_share": 0.4}),
    "length-64": Change("rows of 64 pieces, twice as many", phase={"length": 64, "batch_size": 32}),
    "shallow": change_body(2, 384),
    "deep": change_body(8, 192),
    "electra": Change("ELECTRA", model={"architecture": "electra", "objective": "replaced tokens"}),
    ADOPTED: Change("to the scale's recipe", adopted=True),
}
BODIES = {  # pieces by the multiplications that one takes
    "4x256": change_body(4, 256, adopted=True, pieces=3_000_000),
    "2x384": change_body(2, 384, adopted=True, pieces=2_500_000),
    "4x384": change_body(4, 384, adopted=True, pieces=1_450_000),
    "2x384-16k": change_body(2, 384, 16_384, adopted=True, pieces=2_000_000),
}
CHANGES = SETTINGS | BODIES


def make_study() -> None:
    """A copy of the study's code and settings, which can be given other scales and models."""
    for name in ("lib", "params", "published"):
        shutil.copytree(
            paths.ROOT / name, STUDY / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    built = paths.output(SCALE)
    model = params.load("models", MODEL)
    for path in (paths.vocabulary(SCALE, model.vocabulary), *(paths.corpus(SCALE, key) for key in model.corpora)):
        if not path.is_dir():
            raise StudyError(f"{show_path(path)} is not there: run ./run_all.sh {SCALE} {model.vocabulary}")
    (built / "tokens").mkdir(exist_ok=True)


def add_scale(name: str, key: str, finetuning: dict, threads: int, seed: int, pieces: int | None = None) -> None:
    """A scale, with a model `trained` and its sibling `random`, of one run; `pieces`: in place of the scale's."""
    scale = yaml.safe_load((paths.PARAMS / f"scales/{SCALE}.yaml").read_text())
    recipe, change = scale["pretraining"]["recipe"], CHANGES[key]
    if not change.adopted:
        recipe |= BEFORE | change.recipe
        recipe["phases"] = [phase | change.phase for phase in recipe["phases"]]
    if pieces:
        recipe["tokens"] = pieces
    scale["bodies"]["base"] |= change.body
    scale["vocabulary_size"] = change.vocabulary_size or scale["vocabulary_size"]
    scale |= {"threads": threads, "seeds": [seed], "models": [], "finetuning": finetuning}
    write_yaml(STUDY / f"params/scales/{name}.yaml", scale)
    model = yaml.safe_load((paths.PARAMS / f"models/{MODEL}.yaml").read_text()) | PLAIN | change.model
    write_yaml(STUDY / f"params/models/{name}-trained.yaml", model)
    write_yaml(STUDY / f"params/models/{name}-random.yaml", model | {"corpora": [], "start": "random"})
    folder = STUDY / "outputs" / name
    folder.mkdir(parents=True, exist_ok=True)
    for kind in SHARED if change.vocabulary_size is None else ["corpora"]:
        if not (folder / kind).exists():
            (folder / kind).symlink_to(paths.output(SCALE, kind))


def write_yaml(path: Path, content: dict) -> None:
    artefacts.write_text(path, yaml.safe_dump(content, sort_keys=False))


def pretrain(name: str, arm: str, threads: int) -> dict:
    """The record of an arm's model, with the last row of its log."""
    run_study(threads, "-m", "lib.study.pretrained", name, f"{name}-{arm}")
    folder = STUDY / "outputs" / name / "models" / f"{name}-{arm}"
    log = read_log(folder)
    return artefacts.read_json(folder / "record.json") | {"last": log[-1] if log else {}}


def finetune(name: str, arm: str, threads: int) -> dict:
    """The result of an arm's model on the data set."""
    call = f"from lib.study import open_study; open_study('{name}').finetune('{name}-{arm}', '{DATASET}', '{PROTOCOL}')"
    run_study(threads, "-c", call)
    return artefacts.read_json(STUDY / f"outputs/{name}/results/{name}-{arm}--{DATASET}--{PROTOCOL}.json")


def run_study(threads: int, *words: str) -> None:
    """Run Python in the copy of the study; StudyError with the last line that it printed when it fails."""
    environment = os.environ | {"PYTHONPATH": str(STUDY), "OMP_NUM_THREADS": str(threads)}
    environment["STUDY_DATA"] = str(paths.require_data(SCALE).resolve())
    ran = subprocess.run([sys.executable, *words], cwd=STUDY, env=environment, capture_output=True, text=True)
    if ran.returncode:
        raise StudyError(f"{' '.join(words)}: {(ran.stderr + ran.stdout).strip().splitlines()[-1]}")


def measure_bar(seeds: int) -> list[dict]:
    """A line for each seed and arm."""
    lines = []
    for seed in range(1, seeds + 1):
        name = f"bar-{seed}"
        add_scale(name, ADOPTED, FINETUNING, threads=2, seed=seed)
        record = pretrain(name, "trained", threads=2)
        print(f"seed {seed}: held-out loss {record['last']['held-out loss']:.3f}", flush=True)
        lines.append(describe_arm(name, "trained", seed, record))
    for seed in range(1, seeds + 1):  # after all that is timed
        lines.append(describe_arm(f"bar-{seed}", "random", seed, pretrain(f"bar-{seed}", "random", threads=2)))
    for seed in range(1, seeds + 1):  # two are fine-tuned beside each other
        add_scale(f"bar-{seed}", ADOPTED, FINETUNING, threads=1, seed=seed)
    with ThreadPoolExecutor(2) as pool:
        tuned = pool.map(lambda line: finetune(f"bar-{line['seed']}", line["arm"], threads=1), lines)
        return [line | describe_scores(result) for line, result in zip(lines, tuned, strict=True)]


def describe_arm(name: str, arm: str, seed: int, record: dict) -> dict:
    """What pretraining was, in the columns of the table."""
    trained = arm == "trained"
    return {
        "arm": arm, "seed": seed, "parameters": record["parameters"], "pieces": record["tokens"],
        "minutes": round((record["seconds"] + record["seconds of the start"]) / 60, 1) if trained else 0,
        "held-out loss": round(record["last"]["held-out loss"], 3) if trained else None,
        "device": record["device"], "commit": provenance.commit(),
    }  # fmt: skip


def describe_scores(result: dict) -> dict:
    """What fine-tuning found, in the columns of the table."""
    chosen = result["chosen on dev"]
    return {
        "dataset": DATASET, "learning rate": chosen["learning_rate"],
        "dev F1": round(max(tried["dev f1"] for tried in result["candidates"]), 2),
        "test F1": round(statistics.mean(run["scores"]["f1"] for run in result["runs"]), 2),
    }  # fmt: skip


def describe_bar(lines: list[dict]) -> str:
    """The means beside the bars."""

    def mean(arm: str, name: str) -> float:
        return statistics.mean(line[name] for line in lines if line["arm"] == arm)

    gains = [
        one["test F1"] - other["test F1"]
        for one in lines
        for other in lines
        if one["seed"] == other["seed"] and (one["arm"], other["arm"]) == ("trained", "random")
    ]
    spread = f", from {min(gains):.1f} to {max(gains):.1f}" if len(gains) > 1 else ""
    return (
        f"{len(gains)} seed(s): {mean('trained', 'minutes'):.1f} minutes (bar {MINUTES_BAR:g}), held-out loss "
        f"{mean('trained', 'held-out loss'):.3f} (bar {LOSS_BAR}), F1 on the test set {mean('trained', 'test F1'):.2f} "
        f"for {mean('random', 'test F1'):.2f} from random weights, {statistics.mean(gains):+.2f} (bar +{F1_BAR:g})"
        f"{spread}."
    )


def measure_change(key: str) -> dict:
    """A line of the table of settings."""
    change, name = CHANGES[key], f"settings-{key}"
    add_scale(name, key, SETTINGS_FINETUNING, threads=1, seed=1, pieces=change.pieces)
    if change.vocabulary_size:
        vocabulary = params.load("models", MODEL).vocabulary
        run_study(1, "-c", f"from lib.study import open_study; open_study('{name}').vocabulary('{vocabulary}').train()")
    record = pretrain(name, "trained", threads=1)
    result = finetune(name, "trained", threads=1)
    line = {
        "name": key, "changed": change.what, "parameters": record["parameters"], "pieces": record["tokens"],
        "seconds": record["seconds"] + record["seconds of the start"],
        "held-out loss": round(record["last"]["held-out loss"], 3) if "objective" not in change.model else None,
    } | {k: v for k, v in describe_scores(result).items() if k != "test F1"}  # fmt: skip
    print(line, flush=True)
    return line | {"device": record["device"], "commit": provenance.commit()}


def merge(path: Path, lines: list[dict]) -> list[dict]:
    """The lines with those of other settings that were measured before, in the order of CHANGES."""
    before = pd.read_csv(path).to_dict("records") if path.exists() else []
    known = {line["name"]: line for line in [*before, *lines]}
    return [known[name] for name in CHANGES if name in known]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["bar", "settings", "bodies"])
    parser.add_argument("names", nargs="*", help=f"settings: {', '.join(SETTINGS)}; bodies: {', '.join(BODIES)}")
    parser.add_argument("--seeds", type=int, default=3)
    words = parser.parse_args()
    try:
        make_study()
        if words.what == "bar":
            lines = measure_bar(words.seeds)
            results.write_csv(OUTPUT / "recipe.csv", lines)
            print(describe_bar(lines))
            return
        known = SETTINGS if words.what == "settings" else BODIES
        for name in words.names:
            if name not in known:
                raise unknown(words.what, name, known)
        with ThreadPoolExecutor(2) as pool:
            lines = list(pool.map(measure_change, words.names or known))
        path = OUTPUT / f"recipe-{words.what}.csv"
        results.write_csv(path, merge(path, lines))
    except StudyError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
