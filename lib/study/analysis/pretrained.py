"""What pretraining leaves behind, as pages show it: logs, costs, comparisons, sentences."""

from collections.abc import Sequence

import pandas as pd

from lib import artefacts
from lib.errors import StudyError
from lib.pretraining.pretraining import read_log
from lib.study import params, paths


def summarise(record: dict) -> dict:
    """The size and cost of a pretrained model."""
    names = ("parameters", "body parameters", "tokens", "documents too short", "seconds", "seconds of the start",
             "FLOPs", "device", "commit", "fingerprint")  # fmt: skip
    return {name: f"{record[name]:.2e}" if name == "FLOPs" else record[name] for name in names}


def describe(record: dict, scale: str) -> str:
    """What the run shows, in sentences made from its numbers (Markdown)."""
    if not record["log"]:
        return "- This model was not pretrained: its weights are random."
    last = record["log"][-1]
    seen = [row["held-out loss"] for row in record["log"] if "held-out loss" in row]
    lines = [
        f"- {last['tokens']:,} pieces of {', '.join(record['settings']['corpora'])}; the loss on held-out text went "
        f"from {seen[0]:.2f} to {seen[-1]:.2f} over {len(seen)} evaluations."
    ]
    for name in ("pairs right", "replaced found", "kept cleared"):
        if name in last:
            lines.append(f"- {name} on held-out text: {last[name]:.1%}.")
    if start := record["settings"]["start"]:
        lines.append(f"- It began with {', '.join(start)}.")
    if params.load("scales", scale).made_up:
        lines.append("- The data are made up.")
    return "\n".join(lines)


def read_records(keys: Sequence[str], scale: str) -> dict[str, dict]:
    """The records of pretrained models with their logs, by key; StudyError for one that is not there."""
    found = {}
    for key in keys:
        record = artefacts.read_record(paths.model(scale, key))
        if record is None:
            raise StudyError(f"model '{key}' is not pretrained at scale '{scale}': run ./run_all.sh {scale} {key}")
        found[key] = record | {"log": read_log(paths.model(scale, key))}
    return found


def compare(records: dict[str, dict]) -> pd.DataFrame:
    """Pretrained models beside each other: what they are, what they cost, and what they know of held-out text."""
    rows = []
    for key, record in records.items():
        settings, last = record["settings"], record["log"][-1]
        rows.append(
            {"model": key, "architecture": settings["architecture"], "text": ", ".join(settings["corpora"]),
             "continues": settings["initial"] or "", "vocabulary": settings["vocabulary"],
             "start": ", ".join(settings["start"]) or "random", "masking": settings["masking"],
             "pairs": settings["pairs"], "parameters": record["parameters"], "pieces": record["tokens"],
             "seconds": record["seconds"],
             "seconds of the start": record["seconds of the start"], "FLOPs": f"{record['FLOPs']:.2e}"}
            | {name: last[name] for name in ("held-out loss", "pairs right", "replaced found", "kept cleared")
               if name in last}
            | {"device": record["device"]}
        )  # fmt: skip
    return pd.DataFrame(rows)


def describe_all(table: pd.DataFrame, scale: str) -> str:
    """What pretraining cost and brought, in sentences made from the numbers (Markdown)."""
    lines = [
        f"- {len(table)} models, each of {table['pieces'].min():,} to {table['pieces'].max():,} pieces of text "
        f"(a continued one has its share of them, and those of the model before it), in "
        f"{table['seconds'].sum() / 60:.0f} minutes together.",
    ]
    for (vocabulary, masking_kind), group in table[table["architecture"] != "electra"].groupby(
        ["vocabulary", "masking"]
    ):
        if len(group) > 1:
            best = group.loc[group["held-out loss"].idxmin()]
            others = ", ".join(f"{row['model']} {row['held-out loss']:.2f}" for _, row in group.iterrows())
            lines.append(f"- On the same vocabulary ({vocabulary}, {masking_kind}): {others}; lowest: {best['model']}.")
    if params.load("scales", scale).made_up:
        lines.append("- The data are made up.")
    return "\n".join(lines)
