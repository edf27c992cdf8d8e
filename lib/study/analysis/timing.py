"""Seconds that training steps and forward passes of several models take on this machine, in interleaved repetitions."""

import time
from collections.abc import Callable

import pandas as pd
import torch
from accelerate import Accelerator
from transformers import PreTrainedModel

from lib.modeling import bodies, costs, models
from lib.pretraining import objectives, pretraining
from lib.pretraining.settings import Pretraining
from lib.study import hardware, open_study, params, results
from lib.training import optimizers, training

LIMIT, FEWEST = 40.0, 5  # seconds; repetitions
SPECIAL = 5  # the first ids of our vocabularies, which no random row holds


def interleave(
    works: dict[str, Callable[[], None]], repetitions: int, wait: Callable[[], None] = lambda: None
) -> pd.DataFrame:
    """Seconds of each piece of work in each repetition: columns `model, repetition, seconds`.

    In a repetition each is done once, in turn forwards and backwards, so that what slows the machine down slows all
    of them. One repetition before the first is not counted. `wait`: until the device has ended. None begins after
    LIMIT seconds, once there are FEWEST: on a busy machine a page would take for ever.
    """
    rows, start = [], time.perf_counter()
    for repetition in range(repetitions + 1):
        if repetition > FEWEST and time.perf_counter() - start > LIMIT:
            break
        for name in list(works)[:: 1 if repetition % 2 else -1]:
            wait()
            begun = time.perf_counter()
            works[name]()
            wait()
            rows.append({"model": name, "repetition": repetition, "seconds": time.perf_counter() - begun})
    times = pd.DataFrame(rows)
    return times[times["repetition"] > 0].reset_index(drop=True)


def wait_for(device: torch.device) -> Callable[[], None]:
    return torch.cuda.synchronize if device.type == "cuda" else lambda: None


def time_steps(key: str, scale: str) -> pd.DataFrame:
    """Seconds of training steps of a table's architectures and sizes, random weights, on one random batch.

    A step is forward, backward and optimizer, as in pretraining at the scale, on rows of its first length; the table
    says how many. Of models with the same architecture and size the first stands for all.
    """
    table, budget = params.load("tables", key), params.load("scales", scale)
    device = training.accelerator(budget.precision)
    torch.set_num_threads(budget.threads)  # after Accelerate, which may set its own number
    works = {}
    for model in list_timed(key):
        plan = params.load_pretraining(model, scale)
        phase, asked = plan.phases[0], count_asked(model, scale)
        built = build_trained(model, scale)
        batch = make_batch(built.config.vocab_size, table.batch_size, phase.length, asked)
        works[model] = make_step(built, objectives.loss_of(plan), batch, plan, phase.learning_rate, device)
    times = interleave(works, table.repetitions, wait_for(device.device))
    times["device"] = training.describe_device(device)
    device.free_memory()
    return times


def describe_steps(key: str, scale: str) -> pd.DataFrame:
    """What a step of `time_steps` computes: a row a model, with parameters of the encoder, pieces and FLOPs."""
    rows, facts = params.load("tables", key).batch_size, []
    for model in list_timed(key):
        length = params.load_pretraining(model, scale).phases[0].length
        with torch.device("meta"):
            encoder = models.encoder_of(build_trained(model, scale))
        config, _ = open_study(scale).model(model).configs
        flops = rows * costs.training_flops(config, length, count_asked(model, scale))
        facts.append(describe_work(model, encoder, rows * length, flops))
    return pd.DataFrame(facts)


def count_asked(model: str, scale: str) -> int:
    """The pieces of a row of a model's first phase that are to be predicted."""
    plan = params.load_pretraining(model, scale)
    phase = plan.phases[0]
    return pretraining.make_masking(plan, plan.masked_share, phase.max_predictions).slots(phase.length)


def build_trained(model: str, scale: str) -> PreTrainedModel:
    """A model as it is pretrained at a scale, with random weights."""
    settings, plan = params.load("models", model), params.load_pretraining(model, scale)
    config, _ = open_study(scale).model(model).configs
    torch.manual_seed(0)
    return models.build(
        settings.architecture, plan.body, config.vocab_size, plan.positions, plan.dropout, settings.pairs != "none"
    )


def list_timed(key: str) -> list[str]:
    """The first model of each architecture and size in a table of times, by name."""
    found: dict[tuple, str] = {}
    for model in params.load("tables", key).rows.values():
        found.setdefault(describe_body(model), model)
    return list(found.values())


def describe_body(model: str) -> tuple[str, str]:
    """Architecture and size."""
    settings = params.load("models", model)
    return settings.architecture, settings.size


def make_batch(vocabulary_size: int, rows: int, length: int, asked: int) -> objectives.Batch:
    """Random pieces in two segments, of which `asked` places a row are to be predicted, and random pairs."""
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(SPECIAL, vocabulary_size, (rows, length), generator=draw)
    places = torch.stack([1 + torch.randperm(length - 1, generator=draw)[:asked].sort().values for _ in range(rows)])
    return {
        "input_ids": ids,
        "token_types": (torch.arange(length) >= length // 2).long().expand(rows, -1).contiguous(),
        "positions": places,
        "targets": ids.gather(1, places),
        "pair": torch.randint(2, (rows,), generator=draw),
        "counts": torch.tensor([rows * asked, rows * length, rows], dtype=torch.float32),
    }


def make_step(
    built: torch.nn.Module,
    loss_of: Callable[[torch.nn.Module, objectives.Batch], torch.Tensor],
    batch: objectives.Batch,
    plan: Pretraining,
    rate: float,
    device: Accelerator,
) -> Callable[[], None]:
    """A step of the training loop on a batch that is on the device already."""
    built.to(device.device).train()
    module, optimizer = device.prepare(training.Loss(built, loss_of), optimizers.make(built, plan, rate))
    batch = {name: tensor.to(device.device) for name, tensor in batch.items()}
    return lambda: training.take_step(module, optimizer, [batch], device, plan.clip, (0, 0))


def time_passes(keys: list[str], bodies_of: str, scale: str, rows: int, length: int, repetitions: int) -> pd.DataFrame:
    """Seconds of forward passes of encoders with random weights, of the bodies of a scale, on one random batch.

    As `time_steps`; threads and precision are those of `scale`. Every place of every layer is computed.
    """
    budget = params.load("scales", scale)
    device = training.accelerator(budget.precision)
    torch.set_num_threads(budget.threads)
    works = {}
    for key in keys:
        body = build_encoder(key, bodies_of, length).to(device.device).eval()
        ids = make_batch(body.config.vocab_size, rows, length, 1)["input_ids"].to(device.device)
        works[key] = make_pass(body, ids, device)
    times = interleave(works, repetitions, wait_for(device.device))
    times["device"] = training.describe_device(device)
    return times


def describe_passes(keys: list[str], bodies_of: str, rows: int, length: int) -> pd.DataFrame:
    """What a pass of `time_passes` computes: a row a model, with its parameters, pieces and FLOPs."""
    facts = []
    for key in keys:
        with torch.device("meta"):
            body = build_encoder(key, bodies_of, length)
        config, _ = open_study(bodies_of).model(key).configs
        facts.append(describe_work(key, body, rows * length, rows * costs.body_flops(config, length, length)))
    return pd.DataFrame(facts)


def build_encoder(key: str, bodies_of: str, length: int) -> PreTrainedModel:
    """A model's encoder of the body of a scale, with random weights, for rows of `length` pieces at least."""
    settings, plan = params.load("models", key), params.load_pretraining(key, bodies_of)
    config, _ = open_study(bodies_of).model(key).configs
    return models.encoder_of(
        models.build(settings.architecture, plan.body, config.vocab_size, max(length, plan.positions), 0.0)
    )


def make_pass(body: PreTrainedModel, ids: torch.Tensor, device: Accelerator) -> Callable[[], None]:
    """A forward pass of an encoder over pieces (rows, length) that are on the device already."""

    def work() -> None:
        with torch.inference_mode(), device.autocast():
            bodies.encode(body, ids)

    return work


def describe_work(key: str, encoder: PreTrainedModel, pieces: int, flops: float) -> dict:
    """What is timed: the model, its parameters, and how much it computes."""
    settings = params.load("models", key)
    named = {"model": key, "architecture": settings.architecture, "size": settings.size}
    return named | models.count_parameters(encoder) | {"pieces": pieces, "FLOPs": flops}


def summarise(times: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """A row a model: median and range of its seconds, pieces and FLOPs a second, and its facts."""
    seconds = times.groupby("model", sort=False)["seconds"].agg(["median", "min", "max", "count"])
    table = facts.merge(seconds.reset_index(), on="model", validate="one_to_one")
    table["pieces a second"] = table["pieces"] / table["median"]
    table["GFLOP/s"] = table["FLOPs"] / table["median"] / 1e9
    return table.rename(columns={"median": "seconds", "min": "fastest", "max": "slowest", "count": "repetitions"})


def compare_pair(times: pd.DataFrame, facts: pd.DataFrame, model: str, base: str) -> dict[str, float]:
    """What one model takes of another's seconds (the median over paired repetitions), FLOPs and parameters."""
    wide = times.pivot(index="repetition", columns="model", values="seconds")
    of = facts.set_index("model")
    shares = {name: of.loc[model, name] / of.loc[base, name] for name in ("FLOPs", "parameters")}
    return {"seconds": float((wide[model] / wide[base]).median())} | shares


def build(key: str, scale: str, times: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """A table of days with ours beside them: those that the run of the scale takes at the speed that was measured."""
    table = params.load("tables", key)
    seconds = times.groupby("model")["seconds"].median() / facts.set_index("model")["pieces"]
    lines = []
    for cell in results.read_published(table.paper, table.table).to_dict("records"):
        model = table.rows[cell["row"]]
        line = {name: cell[name] for name in ("paper", "table", "row", "column", "metric")}
        line |= {"published": cell["value"], "n_seeds": 0, "verdict": "n/a", "note": why_not(model, scale)}
        if not line["note"]:
            pieces = open_study(scale).model(model).count_work()["tokens"]
            line["ours"] = float(f"{seconds[find_timed(key, model)] * pieces / 86_400:.3g}")
            line["note"] = f"at the speed measured here, for the {pieces:,} pieces of this scale: not the paper's run"
            if params.load("scales", scale).made_up:
                line["note"] = results.MADE_UP
        lines.append(line)
    return pd.DataFrame(lines, columns=results.COLUMNS)


def why_not(model: str, scale: str) -> str:
    """Why a model's run cannot be made at a scale, or an empty string."""
    settings = params.load("models", model)
    return settings.not_run or next(filter(None, (open_study(scale).corpus(c).why_not for c in settings.corpora)), "")


def compare_runs(key: str, times: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """Each printed row as a share of the one that a table is beside: its days, its FLOPs as published, and ours."""
    table = params.load("tables", key)
    base = table.rows[table.beside]
    printed = results.read_published(table.paper, table.table).set_index("row")["value"]
    work = {model: open_study("paper").model(model).count_work() for model in table.rows.values()}
    rows = []
    for row, model in table.rows.items():
        if row == table.beside:
            continue
        flops = work[model]["flops"] / work[base]["flops"]
        ours = compare_pair(times, facts, find_timed(key, model), find_timed(key, base))
        rows.append(
            {"row": row, "model": model, "days": printed[row]}
            | {f"of {place}": printed[row] / days for place, days in list_days(key).items()}
            | {"FLOPs of the run": flops, "FLOPs a piece": flops * work[base]["tokens"] / work[model]["tokens"]}
            | {f"{name}, ours": share for name, share in ours.items()}
        )
    return pd.DataFrame(rows)


def list_days(key: str) -> dict[str, float]:
    """Every number of days that a table's paper prints of the row that it is beside, with where that stands."""
    table = params.load("tables", key)
    base = table.rows[table.beside]
    places = [run for run in hardware.read().runs if run.paper == table.paper and base in run.days]
    found = [(hardware.read_days(base, run), run.where) for run in places]
    return {f"{days:g} days ({where})": days for days, where in found}


def find_timed(key: str, model: str) -> str:
    """The model of a table that was timed for a model's architecture and size."""
    return next(timed for timed in list_timed(key) if describe_body(timed) == describe_body(model))


def describe(times: pd.DataFrame, facts: pd.DataFrame, base: str) -> str:
    """What was measured, each model against one of them, in sentences made from the numbers (Markdown)."""
    summary = summarise(times, facts).set_index("model")
    own = summary.loc[base]
    lines = [
        f"{base}: {own['seconds']:.3g} s for {own['pieces']:,} pieces, from {own['fastest']:.3g} to "
        f"{own['slowest']:.3g} over {own['repetitions']} repetitions; {own['parameters'] / 1e6:.1f} million parameters."
    ]
    for model, row in summary.drop(base).iterrows():
        share = compare_pair(times, facts, model, base)
        lines.append(
            f"{model}: {row['seconds']:.3g} s, {share['seconds']:.2f} of the seconds of {base}, with "
            f"{share['FLOPs']:.2f} of its FLOPs and {share['parameters']:.2f} of its parameters."
        )
    return "\n".join(f"- {line}" for line in [*lines, f"Measured on {times['device'].iloc[0]}."])


def describe_runs(runs: pd.DataFrame, key: str) -> str:
    """What the printed days say, and what is published of the runs, in sentences (Markdown)."""
    beside, shares = params.load("tables", key).beside, runs.set_index("row")
    albert = shares[[params.load("models", model).architecture == "albert" for model in shares["model"]]]
    lines = [
        f"{len(albert)} models of BioALBERT have {albert[name].min():.2f} to {albert[name].max():.2f} of the "
        f"{name.removeprefix('of ')} of {beside}."
        for name in (f"of {place}" for place in list_days(key))
    ]
    run, piece = (
        f"{albert[name].min():.2f} to {albert[name].max():.2f}" for name in ("FLOPs of the run", "FLOPs a piece")
    )
    lines.append(f"By the published settings their runs take {run} of its FLOPs, and {piece} of them a piece.")
    return "\n".join(f"- {line}" for line in lines)
