"""What shows that pretraining does what the papers describe: its rows, its sizes, its losses, and that it learns."""

from collections import Counter

import numpy as np
import pandas as pd
import torch
import transformers

from lib.made_up import smoke_language
from lib.modeling import bodies, models
from lib.pretraining import masking, objectives, pretraining
from lib.pretraining.blocks import Blocks
from lib.pretraining.random_numbers import make_keys
from lib.progress import Progress
from lib.study import open_study, params
from lib.training import optimizers
from lib.training.settings import Optimization

SENTENCES, OVERFITTING_STEPS, OVERFITTING_RATE = 20, 100, 1e-3


def mask_example(key: str, scale: str, show_text: bool) -> list[dict]:
    """What a model is asked, as rows: a piece of text, as the model sees it, and the pieces to guess.

    The text is of the model's own corpus, or made up where it is not to be shown.
    """
    model = params.load("models", key)
    tokenizer = open_study(scale).vocabulary(model.vocabulary).tokenizer()
    corpus = (model.corpora or params.load("vocabularies", model.vocabulary).corpora)[0]
    made_up = " ".join(smoke_language.make_examples(3)).replace("[", "").replace("]", "")
    text = next(open_study(scale).corpus(corpus).documents()).text if show_text else made_up
    ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"][:60]
    row = np.array([[tokenizer.cls_token_id, *ids, tokenizer.sep_token_id]])
    plan = params.load_pretraining(key, scale)
    hidden = pretraining.make_masking(plan, plan.masked_share)
    seen, _, asked = masking.mask_tokens(
        row, make_keys(0), masking.take_inventory(tokenizer), hidden, np.array([hidden.share_at(0.0)])
    )
    asked = asked[asked != masking.IGNORED]
    return [
        {"": "the model sees", "pieces": " ".join(tokenizer.convert_ids_to_tokens(seen[0].tolist()))},
        {"": "it has to guess", "pieces": " ".join(tokenizer.convert_ids_to_tokens(asked.tolist()))},
    ]


def check_batches(scale: str, rows: int) -> pd.DataFrame:
    """What the first rows of each of the scale's models are like, measured beside wanted (measure_batches)."""
    found = []
    for model in params.load("scales", scale).models:
        batches = open_study(scale).model(model).batches().parts[0]
        for row in measure_batches(batches, max(1, rows // batches.batch_size)):
            found.append({"model": model} | row)
    return pd.DataFrame(found)


def measure_batches(batches: Blocks, steps: int) -> list[dict]:
    """What the batches of the first steps are like, as rows `what, measured, wanted`; shares, but for counts."""
    inventory, totals = batches.inventory, Counter()
    for step in range(min(steps, len(batches))):
        batch = {name: tensor.numpy() for name, tensor in batches[step].items()}
        row, slot = np.nonzero(batch["targets"] != masking.IGNORED)
        place, target = batch["positions"][row, slot], batch["targets"][row, slot]
        seen, original = batch["input_ids"][row, place], batch["input_ids"].copy()
        original[row, place] = target
        maskable = ~inventory.special[original]
        words = np.cumsum(masking.begin_words(original, maskable, inventory)).reshape(original.shape)  # of all rows
        sizes = np.bincount(words[maskable])
        asked = np.bincount(words[row, place], minlength=len(sizes))
        totals["rows"] += len(original)
        totals["places"] += original.size
        totals["padding"] += int(batch["padding"].sum()) if "padding" in batch else 0
        totals["hideable"] += int(maskable.sum())
        wanted = masking.count_to_mask(maskable.sum(axis=1), batches.share_at(step), batches.masking.limit)
        totals["wanted"] += int(wanted.sum())
        totals["asked"] += len(row)
        totals["hidden"] += int((seen == inventory.mask).sum())
        totals["unchanged"] += int((seen == target).sum())
        totals["split"] += int(((asked > 0) & (asked < sizes)).sum())
        if batches.pairs != "none":
            segments = batches.cut(*batches.order(batches.list_sequences(step)))
            own, other = (batches.text.find_documents(p)[0] for p in (segments.first, segments.second))
            totals["true"] += int((batch["pair"] == 0).sum())
            totals["same document"] += int(((own == other) & (segments.pair == 1)).sum())
    asked, whole = totals["asked"], batches.masking.kind != "word-piece"
    hidden, unchanged = totals["hidden"] / asked, totals["unchanged"] / asked
    rows = [
        ("pieces asked for", asked / totals["hideable"], totals["wanted"] / totals["hideable"]),
        ("of these, hidden", hidden, batches.masking.masked),
        ("of these, replaced by a random piece", 1 - hidden - unchanged, batches.masking.replaced),
        ("of these, left as they are", unchanged, 1 - batches.masking.masked - batches.masking.replaced),
        ("words asked for in part (count)", totals["split"], 0 if whole else None),
        ("padding", totals["padding"] / totals["places"], None if batches.pairs != "none" else 0),
    ]
    if batches.pairs != "none":
        rows.append(("pairs that follow each other in the text", totals["true"] / totals["rows"], 0.5))
    if batches.pairs == "next sentence":
        rows.append(("random segments of the same document (count)", totals["same document"], 0))
    return [dict(zip(("what", "measured", "wanted"), row, strict=True)) for row in rows]


def count_published() -> pd.DataFrame:
    """Parameters of the models whose number is printed, built as their papers describe them, in millions.

    Counted is what is left after pretraining: the encoder with its pooler, without the heads. Of models that are alike
    in all of this, the first is shown.
    """
    found = []
    for key in params.keys("models"):
        model = params.load("models", key)
        if model.parameters is None:
            continue
        plan = params.load_pretraining(key, "paper")
        size = params.load("vocabularies", model.vocabulary).size
        with torch.device("meta"):  # shapes alone: no memory, no time
            built = models.build(model.architecture, plan.body, size, plan.positions, 0.0, pairs=True)
        counted = models.count_parameters(models.encoder_of(built))["parameters"] / 1e6
        found.append(
            {"model": key, "architecture": model.architecture, "layers": plan.body.layers, "width": plan.body.hidden,
             "embeddings": plan.embedding_width,
             "vocabulary": size, "printed, millions": model.parameters, "counted, millions": round(counted, 2),
             "difference, %": round(100 * (counted / model.parameters - 1), 1)}
        )  # fmt: skip
    table = pd.DataFrame(found)
    return table.drop_duplicates([name for name in table if name != "model"], ignore_index=True)


def compare_losses(scale: str) -> pd.DataFrame:
    """The loss of one batch of each of the scale's models by this study and by the library's own heads.

    The weights are random ones. ELECTRA's two losses and the adversarial model's plain one are compared.
    """
    found = []
    for key in params.load("scales", scale).models:
        model, batch = prepare(key, scale, rows=8)
        if isinstance(model, models.Electra):
            torch.manual_seed(0)
            ours = objectives.replaced_tokens(model, batch)
            torch.manual_seed(0)
            logits = bodies.gather(model.generator(batch["input_ids"]).logits, batch["positions"])
            inputs, replaced = objectives.corrupt(logits, batch)
            generated = model.generator(batch["input_ids"], labels=spread_targets(batch)).loss
            theirs = generated + objectives.DISCRIMINATOR_WEIGHT * model.discriminator(inputs, labels=replaced).loss
        else:
            ours = objectives.masked_tokens(model, batch)
            theirs = model(**library_inputs(model, batch)).loss
        found.append(
            {"model": key, "ours": ours.item(), "library": theirs.item(), "difference": abs(ours - theirs).item()}
        )
    return pd.DataFrame(found)


def prepare(key: str, scale: str, rows: int) -> tuple[torch.nn.Module, objectives.Batch]:
    """A model with random weights, without dropout, and the first rows that it would see."""
    model = open_study(scale).model(key)
    plan, batches = model.plan, model.batches().parts[0]
    batches.batch_size = rows  # instead of the scale's
    transformers.set_seed(0)
    built = models.build(
        plan.architecture, plan.body, batches.inventory.size, plan.positions, 0.0, plan.pairs != "none"
    )
    return built.eval(), batches[0]


def spread_targets(batch: objectives.Batch) -> torch.Tensor:
    """The pieces to predict at every place of the rows, as the library wants them, (rows, length)."""
    labels = torch.full_like(batch["input_ids"], masking.IGNORED)
    row, slot = (batch["targets"] != masking.IGNORED).nonzero(as_tuple=True)
    labels[row, batch["positions"][row, slot]] = batch["targets"][row, slot]
    return labels


def library_inputs(model, batch: objectives.Batch) -> dict[str, torch.Tensor]:
    """A batch as BertForPreTraining, AlbertForPreTraining or their siblings without pairs take it."""
    inputs = {"input_ids": batch["input_ids"], "labels": spread_targets(batch)}
    if "padding" in batch:
        inputs["attention_mask"] = (~batch["padding"]).long()
    if "pair" in batch:
        name = "sentence_order_label" if model.config.model_type == "albert" else "next_sentence_label"
        inputs |= {"token_type_ids": batch["token_types"], name: batch["pair"]}
    return inputs


def overfit(scale: str) -> pd.DataFrame:
    """The loss of 20 rows at the first step and over the last ten of training on them alone, for each model.

    Each by its own loss: ELECTRA's is its generator's plus 50 times its discriminator's.
    """
    found = []
    recipe = Optimization(optimizer="adamw", weight_decay=0.0, betas=[0.9, 0.98], dropout=0.0)
    for key in params.load("scales", scale).models:
        model, batch = prepare(key, scale, rows=SENTENCES)
        loss_of = objectives.loss_of(params.load_pretraining(key, scale))
        optimizer = optimizers.make(model, recipe, OVERFITTING_RATE)
        progress, losses = Progress(f"{key} on {len(batch['input_ids'])} rows"), []
        for step in range(OVERFITTING_STEPS):
            loss = loss_of(model, batch)
            loss.backward()
            losses.append(loss.item())
            optimizer.step()
            optimizer.zero_grad()
            progress.update(step + 1, OVERFITTING_STEPS)
        rows = len(batch["input_ids"])
        found.append({"model": key, "rows": rows, "loss at first": losses[0], "at last": sum(losses[-10:]) / 10})
    return pd.DataFrame(found)


def describe(batches: pd.DataFrame, sizes: pd.DataFrame, losses: pd.DataFrame, learned: pd.DataFrame) -> str:
    """What the checks show, in sentences made from their numbers (Markdown)."""
    apart = (batches["measured"] - batches["wanted"]).abs()
    furthest = batches.loc[apart.idxmax()]
    largest = sizes.loc[sizes["difference, %"].abs().idxmax()]
    lines = [
        f"- Batches: of {len(batches)} numbers counted, the one furthest from what is wanted is "
        f"'{furthest['what']}' of {furthest['model']}: {furthest['measured']:.4f} for {furthest['wanted']:.4f}.",
        f"- Sizes: {(sizes['difference, %'].abs() <= 5).sum()} of {len(sizes)} models are within 5% of the number "
        f"printed; the furthest is {largest['model']} with {largest['counted, millions']:.1f} million counted and "
        f"{largest['printed, millions']:g} printed.",
        f"- Losses: the largest difference from the library's is {losses['difference'].max():.1e}.",
    ]
    for _, row in learned.iterrows():
        lines.append(
            f"- {row['model']} on {row['rows']} rows alone: loss {row['loss at first']:.3f} to {row['at last']:.3f}."
        )
    return "\n".join(lines)
