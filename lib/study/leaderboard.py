"""Encoders of result files and of this study beside printed scores and baselines: one frame, and ties."""

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
COMPARED = ["dataset", "protocol", "scale", "revision"]  # what encoders share that are told apart
HERE = "this study"


def list_own(study: "Study") -> list[Sent]:
    """The results of this scale, here or in the record, as files would have them; on registered datasets."""
    found = scores.list_study_runs(study)
    found = found[found["dataset"].isin(registry.DATASETS)]
    files = []
    for (model, protocol), runs in found.groupby(["model", "protocol"], sort=False):
        content = result_files.describe_encoder(study, model, protocol, runs["dataset"].unique())
        checked = parsing.check_settings(f"{model} under {protocol}", content, ResultFile)
        files.append(Sent(HERE, checked))
    return files


def join(study: "Study", sent: Iterable[Sent]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All of what stands on the page, a line each (COLUMNS, without groups), and the runs behind it (RUNS).

    Where a file has a dataset of an encoder that this study has run too, the file's runs stand.
    """
    lines, runs, known = [], [], set()
    files = [*sent, *list_own(study)]
    for one, name in zip(files, name_models(study, files), strict=True):
        for task in one.content.results:
            place = name, one.content.protocol, task.dataset.path
            if place not in known:
                known.add(place)
                lines.append(make_line(one, name, task))
                runs += make_runs(one, name, task)
    measured = pd.DataFrame(lines, columns=COLUMNS)
    printed = make_printed_lines(study)
    baselines = make_baseline_lines(study, pd.concat([measured, printed]), files)
    found = pd.concat([frame for frame in (measured, printed, baselines) if len(frame)], ignore_index=True)
    return found, pd.DataFrame(runs, columns=RUNS)


def name_models(study: "Study", files: Iterable[Sent]) -> list[str]:
    """What each file's encoder is called: its key, with the scale where that is another, and with the file where the
    name stands for other weights already."""
    names, known = [], {}
    for one in files:
        content, weights = one.content, {*one.content.model.revision.split(", ")}
        name = content.model.name + ("" if content.scale == study.scale else f" ({content.scale})")
        others = known.setdefault((name, content.protocol), weights)
        alike = weights <= others or others <= weights
        names.append(name if alike else f"{name}, {one.source}")
    return names


def make_line(one: Sent, name: str, task: Task) -> dict:
    """The line of one dataset of a file, its numbers made of its runs."""
    content, values = one.content, task.by_seed()
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
        "source": one.source,
    }


def make_runs(one: Sent, name: str, task: Task) -> list[dict]:
    """The runs of one dataset of a file (RUNS)."""
    content = one.content
    place = {"dataset": task.dataset.path, "protocol": content.protocol, "scale": content.scale}
    place |= {"revision": task.dataset.revision, "model": name}
    return [
        place | {"seed": run.seed, "fold": run.fold, "value": run.main_score, "jackknife": tuple(run.jackknife)}
        for run in task.scores
    ]


def make_printed_lines(study: "Study") -> pd.DataFrame:
    """The papers' printed scores, each under its paper's protocol; a number has no spread."""
    protocols = name_protocols()
    lines = [
        describe_dataset(line["dataset"])
        | {"protocol": protocols[line["paper"]], "paper": line["paper"], "model": f"{line['whose']} ({line['table']})"}
        | {"kind": "printed", "ours": line["published"], "source": "published/scores.csv"}
        for line in scores.list_registered_scores(study, protocols).to_dict("records")
    ]
    return pd.DataFrame(lines, columns=COLUMNS)


def name_protocols() -> dict[str, str]:
    """Each paper's own protocol."""
    return dict(zip(results.list_papers(), results.list_protocols(), strict=True))


def describe_dataset(key: str) -> dict:
    """A registered dataset's task, key and score, as lines have them."""
    dataset = registry.lookup(key)
    return {"task": result_files.name_task(dataset), "dataset": key, "score": dataset.main_score}


def make_baseline_lines(study: "Study", lines: pd.DataFrame, files: Iterable[Sent]) -> pd.DataFrame:
    """What the datasets of some lines score without an encoder, once for each paper that has the dataset.

    Of page 15; on data of somebody's own, of the files.
    """
    keys = lines["dataset"].unique()
    known = {task.dataset.path: task.baselines for one in files for task in one.content.results}
    known |= result_files.find_baselines(study, [key for key in keys if key in registry.DATASETS])
    places = lines.assign(protocol=lines["paper"].map(name_protocols())).drop_duplicates(["paper", "dataset"])
    found = []
    for line in places[["task", "dataset", "score", "protocol", "paper"]].to_dict("records"):
        for kind, value in known.get(line["dataset"], {}).items():
            name = show.REFERENCES.get(kind, kind)
            found.append(line | {"model": name, "kind": "baseline", "ours": value, "source": HERE})
    return pd.DataFrame(found, columns=COLUMNS)


def tie(study: "Study", lines: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The lines with their `group`: letters that two encoders share unless they are apart (scores.is_apart).

    Two are compared on one revision of a dataset, under one protocol and at one scale, with SEEDS seeds or more each. A
    line has no letter if there is no other to compare it with, if it has no runs, or if its data are made up.
    """
    if study.budget.made_up:
        return lines.assign(group="")
    found = {}
    for place, own in runs.dropna(subset="value").groupby(COMPARED, sort=False):
        for model, letters in name_ties(scores.split_models(own)).items():
            found[*place, model] = letters
    places = lines[[*COMPARED, "model"]].itertuples(index=False, name=None)
    return lines.assign(group=[found.get(place, "") for place in places])


def name_ties(sides: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """The letters of each side: two share one unless they are apart; `a` has the best (Piepho 2004).

    `sides`: the runs of each, with seed, fold, value and jackknife. Empty for fewer than two.
    """
    if len(sides) < 2:
        return {}
    order = sorted(sides, key=lambda name: -sides[name].groupby("seed")["value"].mean().mean())
    groups = [frozenset(order)]
    for number, better in enumerate(order):
        for than in order[number + 1 :]:
            if scores.is_apart(sides[better], sides[than]):
                groups = split(groups, better, than)
    groups.sort(key=lambda group: sorted(map(order.index, group)))
    letters = dict.fromkeys(order, "")
    for number, group in enumerate(groups):
        for name in group:
            letters[name] += name_group(number)
    return letters


def split(groups: list[frozenset], one: str, other: str) -> list[frozenset]:
    """The groups after two were found apart: none holds both, and none lies in another."""
    found = []
    for group in groups:
        found += [group - {one}, group - {other}] if {one, other} <= group else [group]
    found = list(dict.fromkeys(found))
    return [group for group in found if not any(group < other for other in found)]


def name_group(number: int) -> str:
    """a to z, then a2 to z2."""
    turn, place = divmod(number, len(string.ascii_lowercase))
    return string.ascii_lowercase[place] + (str(turn + 1) if turn else "")
