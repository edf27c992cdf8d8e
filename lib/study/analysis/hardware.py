"""What pretraining cost the papers by their printed settings, what it would cost on one GPU of today, and ours."""

import re
from functools import cache

import pandas as pd

from lib.errors import StudyError
from lib.modeling import costs, models
from lib.places import show_path
from lib.pretraining import objectives, pretraining
from lib.study import params, paths, results
from lib.study.analysis import facts

COLUMNS = ["paper", "model", "whose", "reading", "steps", "tokens", "flops", "device", "devices", "precision", "hours",
           "device_hours", "kwh", "efficiency", "hours_today", "kwh_today", "where", "note"]  # fmt: skip
NUMBERS = ["flops", "hours", "device_hours", "kwh", "efficiency", "hours_today", "kwh_today"]
OURS = "this study"
UNLIKE, NEAR = 1.2, 0.1  # times as fast, at least, are not the same speed; a printed ratio may be so far off


def count_work(key: str, changes: dict[str, int] | None = None, scale: str = "paper") -> dict[str, float]:
    """Steps, tokens (padding too) and FLOPs of a model's pretraining without the one that it continues.

    FLOPs are those of lib/modeling/costs.py: matrix products that are needed. The papers' code computes the whole of
    the last layer, which is a little more. `changes`: settings that replace those of every phase.
    """
    model, plan = params.load("models", key), params.load_pretraining(key, scale)
    config, generator = build_configs(key, scale)
    steps, tokens, flops = 0, 0, 0.0
    for phase in plan.phases or model.published.phases:  # none where the text is not public
        phase = phase.model_copy(update=changes or {})
        asked = pretraining.make_masking(plan, plan.masked_share, phase.max_predictions).slots(phase.length)
        rows = phase.steps * phase.batch_size
        steps += phase.steps
        tokens += rows * phase.length
        flops += rows * costs.training_flops(config, phase.length, asked, generator)
    passes = objectives.ADVERSARIAL_PASSES if model.adversarial else 1
    return {"steps": steps, "tokens": tokens, "flops": passes * flops}


@cache
def build_configs(key: str, scale: str):
    """The configuration of a registered model at a scale, and that of ELECTRA's generator or None."""
    model, plan = params.load("models", key), params.load_pretraining(key, scale)
    size, limit = params.load("vocabularies", model.vocabulary).size, params.load("scales", scale).vocabulary_size
    return models.configure(model.architecture, plan.body, min(size, limit or size), plan.positions, plan.dropout)


def build_table(scale: str) -> pd.DataFrame:
    """The printed runs in the order of params/hardware.yaml, then the models that were pretrained at a scale.

    Numbers are rounded to four digits; an efficiency is a share of the rate that the machine has at best. Energy is
    that of the devices alone, at the highest power of each.
    """
    printed = [describe_run(key, run) for run in facts.hardware().runs for key in run.days]
    table = pd.DataFrame(printed + list_ours(scale), columns=COLUMNS)
    table[NUMBERS] = table[NUMBERS].astype(float).map(lambda value: float(f"{value:.4g}"))
    return table.astype({"steps": "Int64", "tokens": "Int64", "devices": "Int64"})


def describe_run(key: str, run: facts.PrintedRun) -> dict:
    """The line of a model whose hardware or time is printed, or of one of which it is said why not."""
    line = {"paper": run.paper, "model": key, "whose": "paper", "reading": run.reading, "where": run.where}
    if "steps" not in run.missing:
        line |= count_work(key, run.changes)
        line |= cost_today(line["flops"])
    days, notes = read_days(key, run), [run.assumed] if run.assumed else []
    if run.said:
        notes = [f"Printed: {run.said} {days:g} days.", *notes]
    if run.device:
        device = facts.hardware().devices[run.device]
        line |= {"device": device.title, "devices": run.devices, "precision": run.precision}
        if days is not None:
            line |= cost_hours(24 * days, run.devices, device, run.precision, line.get("flops"))
        if device.watts is None:
            notes.append(f"n/a, energy: the power of a {device.title} was not found.")
    notes += [f"n/a, {name}: {why}." for name, why in run.missing.items()]
    return line | {"note": " ".join(notes)}


def read_days(key: str, run: facts.PrintedRun) -> float | None:
    """The printed days of a model; StudyError when the table that holds them has no such row."""
    days = run.days[key]
    if not isinstance(days, str):
        return days
    cells = results.read_published(run.paper, run.table)
    found = cells.loc[(cells["row"] == days) & (cells["metric"] == "days"), "value"]
    if len(found) != 1:
        where = f"table {run.table} of {run.paper}"
        raise StudyError(f"params/hardware.yaml, {key}: {where} has {len(found)} rows '{days}' with days")
    return float(found.iloc[0])


def cost_hours(hours: float, devices: int, device: facts.Device, precision: str, flops: float | None) -> dict:
    """Device-hours, energy and implied efficiency of so many hours on so many devices."""
    line = {"hours": hours, "device_hours": hours * devices}
    if device.watts is not None:
        line["kwh"] = hours * devices * device.watts / 1000
    if flops is not None:
        line["efficiency"] = flops / (3600 * hours * devices * device.rates[precision])
    return line


def cost_today(flops: float) -> dict[str, float]:
    """Hours and energy of so many FLOPs on one GPU of today."""
    rate, _ = rate_today()
    hours = flops / (3600 * rate)
    device = facts.hardware().devices[facts.hardware().today.device]
    return {"hours_today": hours, "kwh_today": hours * device.watts / 1000}


def rate_today() -> tuple[float, str]:
    """FLOP/s that one GPU of today is assumed to reach, and what it is called."""
    today = facts.hardware().today
    device = facts.hardware().devices[today.device]
    name = f"one {device.title} at {today.share:.0%} of its {today.precision} rate"
    return today.share * device.rates[today.precision], name


def list_ours(scale: str) -> list[dict]:
    """The lines of the models in tables/pretrained.csv, by their records; their power is not measured."""
    if not params.load("scales", scale).models:
        return []
    notes = [f"{results.MADE_UP}."] if params.load("scales", scale).made_up else []
    path = paths.table(scale, "pretrained")
    if (found := results.find_table(path)) is None:
        raise StudyError(f"{show_path(path)} has not been made: run ./run_all.sh {scale} 13")
    return [describe_ours(row, notes) for row in found.to_dict("records")]


def describe_ours(row: dict, notes: list[str]) -> dict:
    """The line of one of ours; its efficiency where the rate of its device is known.

    StudyError for a device that is not as lib/training/training.py describes one.
    """
    found = re.fullmatch(r"(?:(\d+) processes of )?(.+), (\w+)", row["device"])
    if not found:
        raise StudyError(f"tables/pretrained.csv, {row['model']}: unknown form of device '{row['device']}'")
    devices, name, precision = int(found[1] or 1), found[2], found[3]
    rates = {device.title: device.rates for device in facts.hardware().devices.values()}.get(name, {})
    hours = row["seconds"] / 3600
    line = {"paper": OURS, "model": row["model"], "whose": "ours", "reading": "", "tokens": row["pieces"],
            "flops": row["FLOPs"], "device": name, "devices": devices, "precision": precision, "hours": hours,
            "device_hours": hours * devices, "where": "tables/pretrained.csv"}  # fmt: skip
    if precision not in rates:
        notes = [*notes, f"n/a, efficiency: no rate of '{name}' in {precision} is known."]
    elif not row["seconds"]:
        notes = [*notes, "n/a, efficiency: it took less than half a second."]
    else:
        line["efficiency"] = row["FLOPs"] / (row["seconds"] * devices * rates[precision])
    notes = [*notes, "n/a, energy: not measured."]
    if row["seconds of the start"]:
        notes = [*notes, f"Without the {row['seconds of the start']:.0f} s of its start."]
    return line | cost_today(row["FLOPs"]) | {"note": " ".join(notes)}


def list_facts() -> pd.DataFrame:
    """What is printed of each model, as a person reads it, and what is assumed where nothing is."""
    rows = []
    for run in facts.hardware().runs:
        device = facts.hardware().devices.get(run.device)
        for key in run.days:
            days = read_days(key, run)
            recipe = params.load("models", key).published
            phases = [phase.model_copy(update=run.changes) for phase in recipe.phases]
            said = ", then ".join(f"{p.steps:,} steps of {p.batch_size:,} x {p.length}" for p in phases)
            rows.append(
                {"paper": run.paper, "model": key, "reading": run.reading,
                 "pretraining": "n/a" if "steps" in run.missing else said,
                 "hardware": f"{run.devices} {device.title}" if device else "n/a", "precision": run.precision or "n/a",
                 "days": "n/a" if days is None else f"{run.said} {days:g}".strip(), "where": run.where,
                 "assumed, or why n/a": " ".join([run.assumed, *(f"{why}." for why in run.missing.values())]).strip()}
            )  # fmt: skip
    return pd.DataFrame(rows)


def list_devices() -> pd.DataFrame:
    """Rates and power of the machines, with their sources."""
    return pd.DataFrame(
        {"device": device.title} | {f"{name}, TFLOP/s": rate / 1e12 for name, rate in device.rates.items()}
        | {"watts": device.watts, "source": device.source}
        for device in facts.hardware().devices.values()
    )  # fmt: skip


def compare_ratios() -> pd.DataFrame:
    """Printed ratios of pretraining beside ours: of tokens, of FLOPs, and of the one of them that is meant."""
    rows = []
    for ratio in facts.hardware().ratios:
        of, to = ([count_work(key) for key in keys] for keys in (ratio.of, ratio.to))
        tokens, flops = (sum(w[name] for w in of) / sum(w[name] for w in to) for name in ("tokens", "flops"))
        rows.append(
            {"what is printed": ratio.said, "where": ratio.where, "printed": ratio.printed, "tokens": tokens,
             "FLOPs": flops, "meant": "FLOPs a token" if ratio.each_token else "FLOPs",
             "ours": flops / tokens if ratio.each_token else flops}
        )  # fmt: skip
    return pd.DataFrame(rows)


def show_costs(table: pd.DataFrame) -> pd.DataFrame:
    """The table as a person reads it: three digits, n/a where there is nothing."""
    shown = table.drop(columns=["whose", "where", "note"])
    for name in ("tokens", *NUMBERS):
        form = "{:.2e}" if name in ("tokens", "flops") else "{:.1%}" if name == "efficiency" else "{:.3g}"
        shown[name] = [pd.NA if pd.isna(value) else form.format(value) for value in table[name]]
    return shown


def describe(table: pd.DataFrame, ratios: pd.DataFrame) -> str:
    """What the costs show, in sentences made from the numbers (Markdown)."""
    lines = [*describe_printed(table), *describe_efficiency(table), *describe_speed(table), *describe_ratios(ratios)]
    return "\n".join(f"- {line}" for line in [*lines, *describe_today(table)])


def describe_printed(table: pd.DataFrame) -> list[str]:
    """What is printed, and how far the costs are apart."""
    main = table[(table["whose"] == "paper") & (table["reading"] == "")]
    timed = main[main["hours"].notna()]
    lines = [
        f"Of {len(main)} models that the papers pretrain or compare with, steps are known of "
        f"{main['steps'].notna().sum()} and a time of {len(timed)}; {(table['reading'] != '').sum()} other readings "
        "of the same models are shown too."
    ]
    for name, unit in (("flops", "FLOPs"), ("device_hours", "device-hours"), ("kwh", "kWh")):
        ordered = main.dropna(subset=name).sort_values(name).to_dict("records")
        if ordered:
            least, most = (f"{row[name]:.3g} for {row['model']}" for row in (ordered[0], ordered[-1]))
            lines.append(f"The fewest {unit}: {least}; the most: {most}.")
    untimed = main[main["device"].notna() & main["hours"].isna() & main["flops"].notna()]
    for paper, rows in untimed.groupby("paper", sort=False):
        longest = max(rows.to_dict("records"), key=hours_at_best)
        lines.append(
            f"{paper} prints hardware and no time: at the full rate of {longest['devices']} x {longest['device']}, "
            f"{longest['model']} takes {hours_at_best(longest) / 24:.1f} days at least."
        )
    return lines


def hours_at_best(line: dict) -> float:
    """The hours that a line's FLOPs take at the full rate of its devices."""
    rates = {device.title: device.rates for device in facts.hardware().devices.values()}[line["device"]]
    return line["flops"] / (3600 * line["devices"] * rates[line["precision"]])


def describe_efficiency(table: pd.DataFrame) -> list[str]:
    """The implied efficiencies that cannot be, that are hard to believe, and that are low."""
    bounds = facts.hardware().believable
    known = table[(table["whose"] == "paper") & table["efficiency"].notna()]
    share = known["efficiency"]
    kinds = {
        "above the rate of the machine: a printed setting is misprinted or misunderstood": known[share > 1],
        f"hard to believe, above {bounds.high:.0%}": known[(share > bounds.high) & (share <= 1)],
        f"low, below {bounds.low:.0%}: more was computed or waited for than is printed, or the reading is wrong":
            known[share < bounds.low],
    }  # fmt: skip
    lines = []
    for kind, rows in kinds.items():
        said = [
            f"{row['model']}{row['reading'] and ', ' + row['reading']}: {row['efficiency']:.1%} of {row['devices']} x "
            f"{row['device']} in {row['precision']}"
            for row in rows.to_dict("records")
        ]
        lines.append(f"Efficiency {kind} ({len(said)}). {'; '.join(said) or 'None'}.")
    return lines


def describe_speed(table: pd.DataFrame) -> list[str]:
    """Times that are not alike: of the same step on the same machine, and of one model in several places."""
    printed = table[(table["whose"] == "paper") & table["hours"].notna()]
    seconds = 3600 * printed["hours"] / printed["steps"].astype(float)
    work = (printed["flops"] / printed["steps"].astype(float)).map("{:.3g}".format)
    lines = []
    same = printed.assign(seconds=seconds, work=work)[printed["reading"] == ""]
    for (paper, _, _, _), rows in same.groupby(["paper", "device", "devices", "work"], sort=False):
        slow, fast = rows.loc[rows["seconds"].idxmax()], rows.loc[rows["seconds"].idxmin()]
        if slow["seconds"] > UNLIKE * fast["seconds"]:
            lines.append(
                f"{paper}: the same step on the same machine takes {fast['seconds']:.2f} s by the days of "
                f"{fast['model']} and {slow['seconds']:.2f} s by those of {slow['model']}."
            )
    for (model, steps), rows in printed.groupby(["model", "steps"], sort=False):
        places = rows.drop_duplicates("hours")
        if len(places) > 1:
            said = ", ".join(
                f"{row['hours'] / 24:g} ({row['paper']}, {row['where']})" for row in places.to_dict("records")
            )
            lines.append(f"The printed days of {model}, {steps:,} steps, differ: {said}.")
    return lines


def describe_ratios(ratios: pd.DataFrame) -> list[str]:
    """Which of the printed ratios come out."""
    if ratios.empty:
        return []
    near = (ratios["ours"] / ratios["printed"] - 1).abs() <= NEAR
    lines = [f"{near.sum()} of {len(ratios)} printed ratios come out within {NEAR:.0%}."]
    for row in ratios[~near].to_dict("records"):
        lines.append(
            f"'{row['what is printed']}' ({row['where']}): {row['printed']:g} as printed; by the settings "
            f"{row['ours']:.2g} in {row['meant']}."
        )
    return lines


def describe_today(table: pd.DataFrame) -> list[str]:
    """What the same costs on one GPU of today, and how ours compare."""
    main = table[(table["whose"] == "paper") & (table["reading"] == "")]
    own = main[main["paper"].isin(results.list_papers()) & main["hours_today"].notna()]
    lines = []
    if len(own):
        hours, kwh, (_, name) = own["hours_today"], own["kwh_today"], rate_today()
        lines.append(
            f"On {name} the {len(own)} models of the five papers take {hours.min():.1f} to {hours.max():.0f} hours "
            f"each, {hours.sum():.0f} hours and {kwh.sum():.0f} kWh together, without the general models that some "
            "continue."
        )
    ours = table[table["whose"] == "ours"]
    if len(ours):
        lines.append(
            f"Ours at this scale: {len(ours)} models in {ours['hours'].sum():.1f} hours, {ours['flops'].min():.2g} to "
            f"{ours['flops'].max():.2g} FLOPs each; the printed model with the fewest has "
            f"{main['flops'].min() / ours['flops'].max():,.0f} times as many as ours with the most."
        )
    missing = len(set(params.keys("models")) - set(ours["model"]))
    return [*lines, f"{missing} of {len(params.keys('models'))} registered models are not among ours on this page."]
