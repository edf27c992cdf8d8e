"""What pretraining buys: every printed score of a dataset, and each of ours, minus the best baseline."""

from typing import TYPE_CHECKING

import pandas as pd

from lib.benchmarks import registry, versions
from lib.study import params, paths, results, scores, tables

if TYPE_CHECKING:
    from lib.study import Study

GAINS = {  # column -> the two that it is the difference of
    "above_chance": ("published", "chance"),
    "above_without_pretraining": ("published", "without_pretraining"),
    "ours_above_without_pretraining": ("ours", "without_pretraining"),
}
COLUMNS = ["paper", "table", "row", "column", "dataset", "metric", "model", "protocol", "published", "ours",
           *tables.BASELINES, *GAINS, "note"]  # fmt: skip
QUOTED = "of another system, quoted by the paper"
QUOTED_COLUMNS = ("State-of-the-art", "SOTA")  # of printed tables, whose scores are other systems'
UNTRAINED = "itself without a pretrained encoder"
UNSAID = {("naseem-7", "tagging"): "the paper does not say what its F1 counts (page 91)"}
APART = 0.005  # of a printed size: line breaks and quotation marks make less, another division makes more


def tabulate_gains(study: "Study") -> pd.DataFrame:
    """A line for each printed score of one dataset, of the score that ranks models there, with ours of its run; then a
    line for each score of ours that no table prints.

    `model` and `protocol` are those of our run, `ours` its mean over seeds. What a dataset scores by chance and without
    pretraining is page 15's; where that has other versions of the set alone, of the first of these, as the note says.
    """
    printed = scores.list_printed_scores(study, results.list_papers()).drop(columns="metric")
    ours = average_runs(study.results())
    both = printed.merge(ours, how="left", on=tables.RUN)
    both["ours"] = both["ours"].where(both["why_not"] == "").round(2)
    in_tables = both.dropna(subset="ours").set_index(tables.RUN).index
    rest = ours[~ours.set_index(tables.RUN).index.isin(in_tables)].round(2)
    lines = pd.concat([both, rest], ignore_index=True).rename(columns={"score": "metric"})
    return add_references(lines, study)[COLUMNS]


def average_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """A line for each run of the study's own models, of the score that ranks models on its dataset: the mean over its
    seeds, a seed's being the mean over its folds."""
    own = runs["model"].map(lambda model: params.is_model(model) or model in params.BASELINES).astype(bool)
    seeds = scores.keep_main(runs[own]).groupby([*tables.RUN, *tables.SEED])["value"].mean()
    return seeds.groupby(tables.RUN).mean().rename("ours").reset_index()


def add_references(lines: pd.DataFrame, study: "Study") -> pd.DataFrame:
    """Lines with what their datasets score without pretraining, their distances from it, and notes."""
    known = study.baselines().rename(columns={"score": "metric", "dataset": "reference"})
    with_score = set(known["reference"])
    stand_for = {key: find_reference(key, with_score) for key in lines["dataset"].unique()}
    lines = lines.assign(reference=lines["dataset"].map(stand_for))
    lines = lines.merge(known, how="left", on=["reference", "metric"])
    for gain, (score, less) in GAINS.items():
        lines[gain] = (lines[score] - lines[less]).astype(float).round(2)
    counted = read_counts(study)
    return lines.assign(note=[say_caveats(line, counted) for line in lines.to_dict("records")])


def find_reference(dataset: str, known: set[str]) -> str:
    """Whose score without pretraining stands for a dataset: its own, else that of another version of the set."""
    others = next((keys for keys in versions.SETS.values() if dataset in keys), [])
    return next((key for key in (dataset, *others) if key in known), dataset)


def read_counts(study: "Study") -> dict[tuple[str, str], str]:
    """By paper and dataset: where it prints another size of the training or test set than that of the files here."""
    found: dict[tuple[str, str], str] = {}
    for key, table in params.load_tables("counts").items():
        counts = results.find_table(paths.table(study.scale, key))
        if counts is None:
            continue
        for line in counts.dropna(subset=["published", "ours"]).to_dict("records"):
            row, column, printed, ours = line["row"], line["column"], line["published"], line["ours"]
            is_size = row in table.rows and table.columns.get(column) in ("train", "test")
            if is_size and abs(printed - ours) > APART * printed:
                difference = f"{key} prints {printed:.0f} in {column}, our files have {ours:.0f}"
                found.setdefault((table.paper, table.rows[row]), difference)
    return found


def say_caveats(line: dict, counted: dict[tuple[str, str], str]) -> str:
    """What has to be known of a line before its distances are read; empty for nothing."""
    said = []
    if line["model"] in params.BASELINES:
        said.append(UNTRAINED)
    if line["column"] in QUOTED_COLUMNS:
        said.append(QUOTED)
    if pd.notna(line["published"]):
        said += [counted.get((line["paper"], line["dataset"]), "")]
        said += [UNSAID.get((line["table"], registry.lookup(line["dataset"]).family), "")]
    if pd.isna(line["without_pretraining"]):
        said.append("not known what it scores without pretraining")
    elif line["reference"] != line["dataset"]:
        said.append(f"without pretraining: of another version, {line['reference']}")
    return "; ".join(filter(None, said))


def keep_known(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines of pretrained encoders, the papers' and ours, whose dataset has a baseline."""
    known = lines.dropna(subset="without_pretraining")
    return known[~known["model"].isin(params.BASELINES) & ~known["column"].isin(QUOTED_COLUMNS)]


def keep_ours(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines with a score of ours, each run once."""
    return lines.dropna(subset="ours").drop_duplicates(["model", "protocol", "dataset", "metric"])


def list_distances(lines: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """How far the papers' scores, and ours, are above the best without pretraining, where that is known."""
    known = keep_known(lines)
    return known["above_without_pretraining"].dropna(), keep_ours(known)["ours_above_without_pretraining"]


def say(lines: pd.DataFrame) -> list[str]:
    """What pretraining buys in print and here, in sentences; none where nothing is known."""
    printed, ours = list_distances(lines)
    said = []
    if len(printed):
        below = f"{(printed < 0).sum()} of {len(printed)} printed scores are below the baseline without pretraining"
        said.append(f"{below}; the median gain is {printed.median():+.1f} points.")
    if len(ours):
        said.append(f"{(ours < 0).sum()} of {len(ours)} scores of ours are below; the median is {ours.median():+.1f}.")
    return said
