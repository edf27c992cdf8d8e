"""The words of PubMedBERT's Figure 3: what vocabularies make of them, and how much attention each gets."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.errors import StudyError
from lib.study import open_study, params, results
from lib.study.analysis import facts
from lib.vocabularies.loading import MARKS
from lib.vocabularies.words import tokens_of_words

COLUMNS = ["example", "place", "word", "printed", "asked", "vocabulary", "pieces", "count", "model", "attention",
           "note"]  # fmt: skip
PENULTIMATE = -2  # layer
CLS, SEP, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"


def why_not(model: str, scale: str) -> str:
    """Why a model is not among those that are pretrained at a scale in any case, or an empty string."""
    budget = params.load("scales", scale)
    panels = {name for panel in budget.panels for name in panel.models}
    if params.load("models", model).not_run:
        return params.load("models", model).not_run
    if budget.compared is None or model in {*budget.compared, *budget.models, *panels}:
        return ""
    return f"outside the budget of scale '{scale}': {model} is not among its models"


def choose_models(scale: str) -> list[str]:
    """The first two models of params/attention.yaml that a scale has, or none."""
    for pair in facts.attention().models:
        if not any(why_not(model, scale) for model in pair):
            return pair
    return []


def lay_out(words: Sequence[str], tokenizer) -> tuple[list[int], list[int]]:
    """A sequence of tokens with the special ones around it, and the number in `words` of the word that each belongs to.

    `words` begins with [CLS] and ends with [SEP].
    """
    tokens_of = tokens_of_words(tokenizer, words[1:-1])
    tokens = [[tokenizer.cls_token_id], *(tokens_of[word] for word in words[1:-1]), [tokenizer.sep_token_id]]
    owners = [number for number, of_word in enumerate(tokens) for _ in of_word]
    return [token for of_word in tokens for token in of_word], owners


def sum_by_word(attention: Sequence[float], owners: Sequence[int]) -> list[float]:
    """The attention on each word: the sum over its tokens. `owners`: as from `lay_out`."""
    return np.bincount(owners, weights=attention).tolist()


def measure(model: str, words: Sequence[str], asked: str, scale: str) -> list[float]:
    """How much of the attention from a word's first token lies on each word, summing to one.

    Mean over the heads of the penultimate layer (Gu et al. 2021, figure 3). StudyError for a model with one layer.
    """
    import torch  # here, as it takes seconds, and the graph only asks why_not

    encoder = open_study(scale).encoder(model).load()
    body = encoder.body(dropout=0.0).eval()
    if body.config.num_hidden_layers < 2:
        raise StudyError(f"{encoder.title}: it has one layer, and none is the last but one")
    body.set_attn_implementation("eager")  # the others do not give their weights
    sequence, owners = lay_out(words, encoder.tokenizer)
    with torch.inference_mode():
        layers = body(input_ids=torch.tensor([sequence]), output_attentions=True).attentions
    weights = layers[PENULTIMATE][0].mean(0)[owners.index(words.index(asked))]
    return sum_by_word(weights.tolist(), owners)


def build(scale: str) -> pd.DataFrame:
    """Every word of every example: its tokens under the published vocabularies, then, for two models of a scale, its
    tokens under the vocabulary of each and the attention that it gets. One line with a `note` for what is not there."""
    lines = []
    for example, settings in facts.attention().examples.items():
        words = [CLS, *settings.sentence.split(), SEP]
        for vocabulary in facts.attention().vocabularies.values():
            lines += describe_words(example, words, vocabulary, scale)
        for model in choose_models(scale):
            found = measure(model, words, settings.asked, scale)
            for line in describe_words(example, words, params.load("models", model).vocabulary, scale):
                lines.append(line | {"model": model, "attention": round(found[line["place"]], 4)})
    if not choose_models(scale):
        named = dict.fromkeys(model for pair in facts.attention().models for model in pair)
        lines += [{"model": model, "note": why} for model in named if (why := why_not(model, scale))]
    return pd.DataFrame(lines, columns=COLUMNS).astype({"place": "Int64", "count": "Int64"})


def describe_words(example: str, words: Sequence[str], vocabulary: str, scale: str) -> list[dict]:
    """A line for each word with its tokens, the special ones too; one with a note where there is no vocabulary."""
    if why := open_study(scale).vocabulary(vocabulary).why_not:
        return [{"example": example, "vocabulary": vocabulary, "note": why}]
    settings, tokenizer = facts.attention().examples[example], open_study(scale).vocabulary(vocabulary).tokenizer()
    sequence, owners = lay_out(words, tokenizer)
    tokens: list[list[str]] = [[] for _ in words]
    for token, owner in zip(tokenizer.convert_ids_to_tokens(sequence), owners, strict=True):
        tokens[owner].append(MARKS.sub("", token))
    return [
        {"example": example, "place": place, "word": word, "printed": word in settings.printed,
         "asked": word == settings.asked, "vocabulary": vocabulary, "pieces": "-".join(tokens[place]),
         "count": len(tokens[place]), "note": ""}
        for place, word in enumerate(words)
    ]  # fmt: skip


def count_shattered(table: pd.DataFrame) -> pd.DataFrame:
    """Of the printed words of each example, how many each vocabulary cuts or does not know, and which."""
    rows = []
    words = table[table["word"].notna()].drop_duplicates(["example", "vocabulary", "place"])
    for (example, vocabulary), found in words[words["printed"].eq(True)].groupby(["example", "vocabulary"], sort=False):
        cut = found[(found["count"] > 1) | (found["pieces"] == UNKNOWN)]
        rows.append({"example": example, "vocabulary": vocabulary, "printed words": len(found), "cut": len(cut),
                     "in pieces": ", ".join(cut["pieces"])})  # fmt: skip
    return pd.DataFrame(rows, columns=["example", "vocabulary", "printed words", "cut", "in pieces"])


def spread(table: pd.DataFrame, example: str) -> pd.DataFrame:
    """The words of an example as a person reads them: tokens by vocabulary, attention by model."""
    found = table[(table["example"] == example) & table["word"].notna()]
    wide = found.drop_duplicates("place")[["place", "word"]].set_index("place")
    for vocabulary, lines in found.groupby("vocabulary", sort=False):
        wide[f"pieces, {vocabulary}"] = lines.drop_duplicates("place").set_index("place")["pieces"]
    for model, lines in found[found["attention"].notna()].groupby("model", sort=False):
        wide[f"attention, {model}"] = lines.set_index("place")["attention"]
    return wide


def describe(table: pd.DataFrame, scale: str) -> str:
    """What tokens and attention show, in sentences made from their numbers (Markdown)."""
    shattered = count_shattered(table)
    lines = [
        f"{example}: {row['vocabulary']} cuts {row['cut']} of {row['printed words']} printed words"
        + (f" ({row['in pieces']})." if row["cut"] else ".")
        for example, rows in shattered.groupby("example", sort=False)
        for row in rows.to_dict("records")
    ]
    for (example, model), words in table[table["attention"].notna()].groupby(["example", "model"], sort=False):
        on = words.groupby("printed")["attention"].sum()
        special = words.loc[words["word"].isin([CLS, SEP]), "attention"].sum()
        asked = facts.attention().examples[example].asked
        lines.append(
            f"{example}, attention of {model} from {asked}: {on.get(True, 0):.0%} on the printed words, "
            f"{special:.0%} on [CLS] and [SEP]."
        )
    for why in dict.fromkeys(table.loc[table["note"].fillna("") != "", "note"]):
        lines.append(f"n/a: {why}.")
    if params.load("scales", scale).made_up:
        lines.append(f"{results.MADE_UP.capitalize()}.")
    return "\n".join(f"- {line}" for line in lines)
