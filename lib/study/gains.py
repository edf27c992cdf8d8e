"""Every printed score and each of ours, minus the dataset's best baseline without pretraining."""

from typing import TYPE_CHECKING

import pandas as pd

from lib.benchmarks import registry, versions
from lib.study import params, results, scores, show, tables

if TYPE_CHECKING:
    from lib.study import Study

GAINS = {  # column -> the two columns it is the difference of
    "above_chance": ("published", "chance"),
    "above_without_pretraining": ("published", "without_pretraining"),
    "ours_above_without_pretraining": ("ours", "without_pretraining"),
}
COLUMNS = ["paper", "table", "row", "column", "dataset", "metric", "model", "protocol", "published", "ours",
           *tables.BASELINES, *GAINS, "note"]  # fmt: skip
QUOTED = "of another system, quoted by the paper"
QUOTED_COLUMNS = ("State-of-the-art", "SOTA")  # columns of printed tables with scores of other systems
UNTRAINED = "itself without pretraining"
UNSAID = {("naseem-7", "tagging"): "the paper does not say what its F1 counts (page 91)"}
APART = 0.005  # share of a printed size: line breaks and quotation marks cause less, another split causes more


def tabulate_gains(study: "Study") -> pd.DataFrame:
    """Return printed scores and ours on single datasets, one line each, with baselines and gains.

    Scores are the dataset's main one. Printed scores come first, with ours of the same run, then ours that no table
    prints. `model` and `protocol` are those of our run, `ours` its mean over seeds. Chance and the other baselines come
    from page 15; if that has only other versions of the dataset, the first of these is used, as the note says.
    """
    printed = scores.list_printed_scores(study, results.list_papers()).drop(columns="metric")
    ours = average_runs(study.results())
    joined = printed.merge(ours, how="left", on=tables.RUN)
    joined["ours"] = joined["ours"].where(joined["why_not"] == "").round(2)
    printed_runs = joined.dropna(subset="ours").set_index(tables.RUN).index
    only_ours = ours[~ours.set_index(tables.RUN).index.isin(printed_runs)].round(2)
    lines = pd.concat([joined, only_ours], ignore_index=True).rename(columns={"score": "metric"})
    return add_references(lines, study)[COLUMNS]


def average_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each run of the study's own models: the main score, averaged over folds, then over seeds."""
    own_models = [model for model in runs["model"].unique() if params.is_model(model) or model in params.BASELINES]
    main_runs = scores.keep_main(runs[runs["model"].isin(own_models)])
    seed_scores = main_runs.groupby([*tables.RUN, *tables.SEED])["value"].mean()
    return seed_scores.groupby(tables.RUN).mean().rename("ours").reset_index()


def add_references(lines: pd.DataFrame, study: "Study") -> pd.DataFrame:
    """Add the baselines of each line's dataset, the gains over them, and notes."""
    baselines = study.baselines().rename(columns={"score": "metric", "dataset": "reference"})
    measured_datasets = set(baselines["reference"])
    references = {key: find_reference(key, measured_datasets) for key in lines["dataset"].unique()}
    lines = lines.assign(reference=lines["dataset"].map(references))
    lines = lines.merge(baselines, how="left", on=["reference", "metric"])
    for gain, (score, baseline) in GAINS.items():
        lines[gain] = (lines[score] - lines[baseline]).astype(float).round(2)
    size_differences = read_counts(study)
    return lines.assign(note=[describe_caveats(line, size_differences) for line in lines.to_dict("records")])


def find_reference(dataset: str, known: set[str]) -> str:
    """Return the dataset whose baselines are used for this one: itself, else another version of the same set."""
    others = next((keys for keys in versions.SETS.values() if dataset in keys), [])
    return next((key for key in (dataset, *others) if key in known), dataset)


def read_counts(study: "Study") -> dict[tuple[str, str], str]:
    """Return differences between a paper's training and test set sizes and those of our files.

    By paper and dataset; only the first difference of more than APART is kept.
    """
    differences = {}
    for key, table in params.load_tables("counts").items():
        counts = study.find_table(key)
        if counts is None:
            continue
        for line in counts.dropna(subset=["published", "ours"]).to_dict("records"):
            row, column, printed, ours = line["row"], line["column"], line["published"], line["ours"]
            is_size = row in table.rows and table.columns.get(column) in ("train", "test")
            if is_size and abs(printed - ours) > APART * printed:
                difference = f"{key} prints {printed:.0f} in {column}, our files have {ours:.0f}"
                differences.setdefault((table.paper, table.rows[row]), difference)
    return differences


def describe_caveats(line: dict, counted: dict[tuple[str, str], str]) -> str:
    """Return the caveats to know before reading a line's gains; empty if there are none."""
    caveats = []
    if not is_pretrained(line["model"]):
        caveats.append(UNTRAINED)
    if line["column"] in QUOTED_COLUMNS:
        caveats.append(QUOTED)
    if pd.notna(line["published"]):
        caveats += [counted.get((line["paper"], line["dataset"]), "")]
        caveats += [UNSAID.get((line["table"], registry.lookup(line["dataset"]).family), "")]
    if pd.isna(line["without_pretraining"]):
        caveats.append("not known what it scores without pretraining")
    elif line["reference"] != line["dataset"]:
        caveats.append(f"without pretraining: of another version, {line['reference']}")
    return "; ".join(filter(None, caveats))


def keep_known(lines: pd.DataFrame) -> pd.DataFrame:
    """Keep the lines of pretrained encoders, the papers' and ours, whose dataset has a baseline."""
    with_baseline = lines.dropna(subset="without_pretraining")
    own_scores = with_baseline[~with_baseline["column"].isin(QUOTED_COLUMNS)]
    return own_scores[own_scores["model"].fillna("").map(is_pretrained).astype(bool)]


def is_pretrained(model: str) -> bool:
    """Return whether a model is pretrained: no classifier without an encoder, and no encoder with random weights."""
    if params.is_model(model):
        settings = params.load("models", model)
        return bool(settings.corpora) or settings.as_released
    return model not in params.BASELINES


def keep_ours(lines: pd.DataFrame) -> pd.DataFrame:
    """Keep the lines with a score of ours, each run once."""
    return lines.dropna(subset="ours").drop_duplicates(["model", "protocol", "dataset", "metric"])


def list_distances(lines: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Return the gains of the papers' scores, and of ours, over the best known baseline without pretraining."""
    known_lines = keep_known(lines)
    return known_lines["above_without_pretraining"].dropna(), keep_ours(known_lines)["ours_above_without_pretraining"]


def describe(lines: pd.DataFrame) -> list[str]:
    """Compare printed scores and ours with the baselines in sentences; empty if nothing is known."""
    printed, ours = list_distances(lines)
    sentences = []
    if len(printed):
        above = f"{(printed > 0).sum()} of {len(printed)} printed scores beat {show.BEST_BASELINE}"
        sentences.append(f"{above}; the median difference is {printed.median():+.1f} points.")
    if len(ours):
        n_above = (ours > 0).sum()
        above = f"{n_above} of our {len(ours)} scores {'beats' if n_above == 1 else 'beat'} it"
        sentences.append(f"{above}; the median difference is {ours.median():+.1f} points.")
    return sentences
