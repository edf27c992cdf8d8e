"""One tagger of diseases, chemicals, genes and species, from an encoder and public datasets of one type each.

    STUDY_DATA=folder python tools/tagger.py make ENCODER FOLDER [--epochs N] [--threads N]
    STUDY_DATA=folder python tools/tagger.py score FOLDER

`make` fine-tunes the encoder on the training sentences of all datasets together (protocol small-tagger) and saves it in
FOLDER, in bfloat16; `score` tests it on each dataset's test set and writes FOLDER/scores.csv. A word that is not an
entity of its dataset's type may be an entity of any other type (Crf.loss_of_any). A sentence that occurs in several
datasets gets the entities of all; training sentences that occur in any development or test set are left out.
"""

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

from lib.artefacts import whole_file, write_text  # noqa: E402
from lib.benchmarks.bio import join_tag, split_tag  # noqa: E402
from lib.benchmarks.datasets import SPLITS, Dataset  # noqa: E402
from lib.benchmarks.instances import Sentence  # noqa: E402
from lib.errors import StudyError  # noqa: E402
from lib.finetuning import saved  # noqa: E402
from lib.finetuning.finetuning import finetune  # noqa: E402
from lib.study import open_study, params, results  # noqa: E402
from lib.study.study import Study  # noqa: E402
from lib.training.optimization import Machine  # noqa: E402

SETS = {  # type -> the datasets in which it is annotated
    "Disease": ("ncbi-disease", "bc5cdr-disease"),
    "Chemical": ("bc5cdr-chem",),
    "Gene": ("bc2gm",),
    "Species": ("s800", "linnaeus"),
}
MADE, SCORED = "## What it learnt from", "## On each test set"  # parts of the card
HOW = """\
Made by `tools/tagger.py make` from the training sentences of these datasets together (their licences: \
`params/downloads.yaml`): {sets}. A word that is no entity of its dataset's type may be an entity of another type; the \
loss does not penalize that. {sentences:,} sentences; left out: {left_out}. The scores above are of all test sentences \
together, before the weights were rounded to bfloat16."""
SAID = """\
By `tools/tagger.py score`, of the weights as they are here, in bfloat16. Only the type of the dataset counts, and \
only whole entities. *Baseline*: the best of ours without an encoder: a dictionary or a CRF that learnt from this \
dataset alone, or a CRF with word classes of unlabelled abstracts (`outputs/record/laptop/tables/baselines.csv`). \
One seed; rates and epochs were set once and not searched."""
SPARSE = "linnaeus"  # whole articles: seven sentences of eight have no entity; as many of those are kept as have one
SCALE, PROTOCOL, SEED = "two-hours", "small-tagger", 1


def read_as(dataset: Dataset, kind: str, split: str) -> list[Sentence]:
    """Read the sentences of a dataset of one type, and give its entities the type `kind`."""
    return [
        replace(sentence, tags=[join_tag(split_tag(tag)[0], kind if tag != "O" else "") for tag in sentence.tags],
                annotated=(kind,))
        for sentence in dataset.load(split)
    ]  # fmt: skip


def thin_out(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return all sentences with an entity, and as many of the others, drawn at random."""
    empty = [number for number, sentence in enumerate(sentences) if set(sentence.tags) == {"O"}]
    entity_count = len(sentences) - len(empty)
    dropped = set(random.Random(SEED).sample(empty, max(0, len(empty) - entity_count)))
    return [sentence for number, sentence in enumerate(sentences) if number not in dropped]


def merge(sentences: Sequence[Sentence]) -> Iterator[Sentence]:
    """Yield each sentence once, with the entities of all its annotated types; if they overlap, the first type wins."""
    merged: dict[tuple[str, ...], Sentence] = {}
    for sentence in sentences:
        earlier = merged.setdefault(tuple(sentence.words), sentence)
        new_types = [kind for kind in sentence.annotated if kind not in earlier.annotated]
        if not new_types:
            continue
        tags = [
            earlier_tag if earlier_tag != "O" else tag
            for earlier_tag, tag in zip(earlier.tags, sentence.tags, strict=True)
        ]
        merged[tuple(sentence.words)] = replace(earlier, tags=tags, annotated=(*earlier.annotated, *new_types))
    yield from merged.values()


def join(datasets: dict[str, Sequence[Dataset]], left_out: Counter) -> Dataset:
    """Return all datasets as one, read from the files of all. `left_out` counts the training sentences left out."""
    parts = defaultdict(list)
    for kind, sets in datasets.items():
        for dataset in sets:
            for split in SPLITS:
                sentences = read_as(dataset, kind, split)
                if (dataset.key, split) == (SPARSE, "train"):
                    all_sentences, sentences = sentences, thin_out(sentences)
                    left_out[f"of {dataset.title} without an entity"] = len(all_sentences) - len(sentences)
                parts[split] += sentences
    test_words = {tuple(one.words) for split in ("dev", "test") for one in parts[split]}
    kept = [one for one in parts["train"] if tuple(one.words) not in test_words]
    left_out["that also occur in a development or test set"] = len(parts["train"]) - len(kept)
    parts["train"] = list(merge(kept))
    left_out["merged with an equal one"] = len(kept) - len(parts["train"])
    all_datasets = [one for sets in datasets.values() for one in sets]
    files = {split: tuple(str(path.resolve()) for one in all_datasets for path in one.paths(split)) for split in SPLITS}
    merged = {files["train"]: parts["train"]} | {files[split]: list(merge(parts[split])) for split in ("dev", "test")}
    return Dataset(
        "entities", "the sets together", "tagging", "diseases, chemicals, genes and species", "entity-type-f1",
        lambda *given: merged[tuple(map(str, given))], files, folder=Path("/"),
    )  # fmt: skip


def open_sets(study: Study) -> dict[str, list[Dataset]]:
    return {kind: [study.dataset(key) for key in keys] for kind, keys in SETS.items()}


def make(encoder: str, folder: Path, epochs: int, threads: int) -> None:
    study, left_out = open_study(SCALE), Counter()
    dataset = join(open_sets(study), left_out)
    settings = params.load_finetuning(PROTOCOL, dataset.key, dataset.family, SCALE)
    settings = settings.model_copy(update={"epochs": [epochs], "runs": 1})
    description = describe_making(dataset, left_out)
    print(description, flush=True)
    finetune(study.encoder(encoder), dataset, settings, [SEED], folder.with_name(f"{folder.name}-runs"),
             Machine(threads=threads), save=folder)  # fmt: skip
    round_weights(folder)
    add_to_card(folder, MADE, description)


def round_weights(folder: Path) -> None:
    """Convert a saved model's weights to bfloat16, half the bytes. `load_saved` converts them back to float32."""
    path = folder / "model.safetensors"
    weights = {name: weight.to(torch.bfloat16) for name, weight in load_file(path).items()}
    with whole_file(path) as temporary:
        save_file(weights, temporary, metadata={"format": "pt"})
    saved.share_weights(folder)


def describe_making(dataset: Dataset, left_out: Counter) -> str:
    """Return the card's part about the training sentences."""
    sets = ", ".join(key for keys in SETS.values() for key in keys)
    exclusions = "; ".join(f"{number:,} {reason}" for reason, number in left_out.items())
    return HOW.format(sets=sets, sentences=len(dataset.load("train")), left_out=exclusions)


def add_to_card(folder: Path, heading: str, text: str) -> None:
    """Append a part to the card. It replaces any part with the same heading, and all that follows it."""
    card = folder / "README.md"
    preceding = card.read_text(encoding="utf-8").split(heading)[0].rstrip()
    write_text(card, f"{preceding}\n\n{heading}\n\n{text}\n")


def score(folder: Path) -> None:
    """Score the saved model on each test set, and write the scores and the best baseline to scores.csv and the card."""
    model, rows = saved.load_saved(folder), []
    baselines = open_study("laptop").baselines().query("score == 'f1'").set_index("dataset")
    for kind, sets in open_sets(open_study(SCALE)).items():
        for dataset in sets:
            test = read_as(dataset, kind, "test")
            scores = dataset.score(test, model.predict(test))
            baseline = baselines.loc[dataset.key, ["without_pretraining", "unlabelled_text"]].max()
            numbers = {name: scores[name] for name in ("precision", "recall", "f1")} | {"baseline f1": baseline}
            rows.append({"type": kind, "dataset": dataset.key, "sentences": len(test)}
                        | {name: f"{value:.2f}" for name, value in numbers.items()})  # fmt: skip
            print(rows[-1], flush=True)
    results.write_csv(folder / "scores.csv", rows)
    add_to_card(folder, SCORED, f"{SAID}\n\n{pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True)}")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("make", "score"):
        commands.add_parser(name)
    commands.choices["make"].add_argument("encoder")
    commands.choices["make"].add_argument("--epochs", type=int, default=4)
    commands.choices["make"].add_argument("--threads", type=int, default=2)
    for command in commands.choices.values():
        command.add_argument("folder", type=Path)
    options = parser.parse_args(words)
    try:
        if options.command == "make":
            make(options.encoder, options.folder, options.epochs, options.threads)
        else:
            score(options.folder)
    except StudyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
