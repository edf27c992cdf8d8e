"""The leaderboard: encoders from result files and this study, printed scores and baselines in one frame, with ties."""

import math
import string
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import TYPE_CHECKING

import pandas as pd

from lib import statistics
from lib.benchmarks import registry
from lib.study import params, parsing, result_files, results, scores, show
from lib.study.result_files import ResultFile, Sent, Task

if TYPE_CHECKING:
    from lib.study import Study

COLUMNS = ["task", "dataset", "score", "protocol", "paper", "model", "kind", "scale", "revision", "ours", "ours_std",
           "low", "high", "seeds", "group", "source"]  # fmt: skip
RUNS = ["dataset", "protocol", "scale", "revision", "model", "seed", "fold", "value", "jackknife"]
COMPARED = ["dataset", "protocol", "scale", "revision"]  # equal for any two encoders that are compared
HERE = "this study"


def list_own(study: "Study") -> list[Sent]:
    """List this scale's results on registered datasets, here or in the record, in the form of result files."""
    study_runs = scores.list_study_runs(study)
    study_runs = study_runs[study_runs["dataset"].isin(registry.DATASETS)]
    files = []
    for (model, protocol), runs in study_runs.groupby(["model", "protocol"], sort=False):
        content = result_files.describe_encoder(study, model, protocol, runs["dataset"].unique())
        result_file = parsing.check_settings(f"{model} under {protocol}", content, ResultFile)
        files.append(Sent(HERE, result_file))
    return files


def join(study: "Study", sent: Iterable[Sent]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the lines of the page (COLUMNS, without groups) and the runs behind them (RUNS).

    If a file and this study both ran an encoder on a dataset, the file's runs are used.
    """
    lines, runs, seen = [], [], set()
    files = [*sent, *list_own(study)]
    for file, name in zip(files, name_models(study, files), strict=True):
        for task in file.content.results:
            key = name, file.content.protocol, task.dataset.path
            if key not in seen:
                seen.add(key)
                lines.append(make_line(file, name, task))
                runs += make_runs(file, name, task)
    measured = pd.DataFrame(lines, columns=COLUMNS)
    printed = make_printed_lines(study)
    baselines = make_baseline_lines(study, pd.concat([measured, printed]), files)
    joined = pd.concat([frame for frame in (measured, printed, baselines) if len(frame)], ignore_index=True)
    return joined, pd.DataFrame(runs, columns=RUNS)


def name_models(study: "Study", files: Iterable[Sent]) -> list[str]:
    """Name each file's encoder by its key, with the scale if it is another one.

    The file's name is added if the name already belongs to other weights.
    """
    names, weights_by_name = [], {}
    for file in files:
        content, weights = file.content, {*file.content.model.revision.split(", ")}
        name = content.model.name + ("" if content.scale == study.scale else f" ({content.scale})")
        first_weights = weights_by_name.setdefault((name, content.protocol), weights)
        same_weights = weights <= first_weights or first_weights <= weights
        names.append(name if same_weights else f"{name}, {file.source}")
    return names


def make_line(sent: Sent, name: str, task: Task) -> dict:
    """Make the line of one dataset of a file, with numbers computed from its runs."""
    content, values = sent.content, task.by_seed()
    low, high = statistics.find_interval(values)
    return {
        "task": task.task_type,
        "dataset": task.dataset.path,
        "score": task.main_score,
        "protocol": content.protocol,
        "paper": params.load("protocols", content.protocol).paper,
        "model": name,
        "kind": "baseline" if content.model.name in params.BASELINES else "encoder",
        "scale": content.scale,
        "revision": task.dataset.revision,
        "ours": fmean(values),
        "ours_std": pd.Series(values).std(),
        "low": low,
        "high": high,
        "seeds": len(values),
        "source": sent.source,
    }


def make_runs(sent: Sent, name: str, task: Task) -> list[dict]:
    """List the runs of one dataset of a file (RUNS)."""
    content = sent.content
    fields = {"dataset": task.dataset.path, "protocol": content.protocol, "scale": content.scale}
    fields |= {"revision": task.dataset.revision, "model": name}
    rows = []
    for run in task.scores:
        jackknife = tuple(math.nan if score is None else score for score in run.jackknife)
        rows.append(fields | {"seed": run.seed, "fold": run.fold, "value": run.main_score, "jackknife": jackknife})
    return rows


def make_printed_lines(study: "Study") -> pd.DataFrame:
    """Return the papers' printed scores, each under its paper's protocol and without spread."""
    lines, protocols = [], results.list_protocols()
    for printed in scores.list_registered_scores(study, protocols).to_dict("records"):
        dataset = registry.lookup(printed["dataset"])
        lines.append({
            "task": result_files.name_task(dataset),
            "dataset": dataset.key,
            "score": dataset.main_score,
            "protocol": protocols[printed["paper"]],
            "paper": printed["paper"],
            "model": f"{printed['whose']} ({printed['table']})",
            "kind": "printed",
            "ours": printed["published"],
            "source": "published/scores.csv",
        })  # fmt: skip
    return pd.DataFrame(lines, columns=COLUMNS)


def make_baseline_lines(study: "Study", lines: pd.DataFrame, files: Iterable[Sent]) -> pd.DataFrame:
    """Return the baselines of the lines' datasets, once for each paper that has the dataset.

    They come from page 15, and for a user's own data from the files.
    """
    keys = lines["dataset"].unique()
    baselines = {task.dataset.path: task.baselines for file in files for task in file.content.results}
    baselines |= result_files.find_baselines(study, [key for key in keys if key in registry.DATASETS])
    lines = lines.assign(protocol=lines["paper"].map(results.list_protocols()))
    dataset_lines = lines.drop_duplicates(["paper", "dataset"])
    baseline_lines = []
    for line in dataset_lines[["task", "dataset", "score", "protocol", "paper"]].to_dict("records"):
        for kind, value in baselines.get(line["dataset"], {}).items():
            name = show.REFERENCES.get(kind, kind)
            baseline_lines.append(line | {"model": name, "kind": "baseline", "ours": value, "source": HERE})
    return pd.DataFrame(baseline_lines, columns=COLUMNS)


def tie(study: "Study", lines: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Add `group` to the lines: letters that two encoders share unless one is better (scores.is_apart).

    Two are compared on one revision of a dataset, under one protocol and at one scale, with SEEDS seeds or more each. A
    line has no letter if there is no other to compare it with, if it has no runs, or if its data are made up.
    """
    if study.budget.made_up:
        return lines.assign(group="")
    groups = {}
    for key, group_runs in runs.dropna(subset="value").groupby(COMPARED, sort=False):
        for model, letters in name_ties(scores.split_models(group_runs)).items():
            groups[*key, model] = letters
    keys = lines[[*COMPARED, "model"]].itertuples(index=False, name=None)
    return lines.assign(group=[groups.get(key, "") for key in keys])


def name_ties(sides: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """Assign letters to each side: two share a letter unless they are apart, and the best has `a` (Piepho 2004).

    `sides`: the runs of each, with seed, fold, value and jackknife. Returns {} for fewer than two.
    """
    if len(sides) < 2:
        return {}
    order = sorted(sides, key=lambda name: -sides[name].groupby("seed")["value"].mean().mean())
    groups = [frozenset(order)]
    for number, better in enumerate(order):
        for worse in order[number + 1 :]:
            if scores.is_apart(sides[better], sides[worse]):
                groups = split(groups, better, worse)
    groups.sort(key=lambda group: sorted(map(order.index, group)))
    letters = dict.fromkeys(order, "")
    for number, group in enumerate(groups):
        for name in group:
            letters[name] += name_group(number)
    return letters


def split(groups: list[frozenset], member: str, other: str) -> list[frozenset]:
    """Split groups after two members were found apart: no group holds both, and none lies within another."""
    divided = []
    for group in groups:
        divided += [group - {member}, group - {other}] if {member, other} <= group else [group]
    divided = list(dict.fromkeys(divided))
    return [group for group in divided if not any(group < other for other in divided)]


def name_group(number: int) -> str:
    """Return the letter of a group: a to z, then a2 to z2."""
    turn, index = divmod(number, len(string.ascii_lowercase))
    return string.ascii_lowercase[index] + (str(turn + 1) if turn else "")
