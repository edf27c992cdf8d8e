"""The witness of refactoring: digests of everything that must stay equal when code moves.

tests/witness/*.json holds digests of every committed number, every example of every dataset as read, every integer that
pretraining makes from text, first losses, and scores. The tests compare them with what the code gives.

    python tools/witness.py           compare: print a line for each difference, and exit with status 1 if there is one
    python tools/witness.py --write   record the current digests, after an intended change; the commit says which.
                                      Refused if numbers changed and the VERSION of what makes them did not, unless
                                      --other-files says that they are made from other files
    python tools/witness.py --all     compare or write, with every example of the real data ($STUDY_DATA); takes minutes
"""

import argparse
import dataclasses
import hashlib
import json
import math
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from unittest import mock

import pandas as pd
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lib import errors  # noqa: E402
from lib.benchmarks import registry  # noqa: E402
from lib.benchmarks.instances import Instance  # noqa: E402
from lib.benchmarks.questions import Answer  # noqa: E402
from lib.corpora import build, leakage, rows  # noqa: E402
from lib.finetuning import finetuning  # noqa: E402
from lib.places import show_path  # noqa: E402
from lib.pretraining import tokens  # noqa: E402
from lib.study import dataset_texts, documents, open_study, params, paths  # noqa: E402
from lib.study.study import Study  # noqa: E402
from lib.vocabularies import learning  # noqa: E402

WITNESS = ROOT / "tests" / "witness"
SCALES = ("laptop", "two-hours", "weekend", "encoder-14m", "choices")  # whose results are committed
PROSE = {"note", "commit"}  # columns of a table that may be reworded
# Entries of a run that are not measurements.
PROVENANCE = {"stage", "version", "fingerprint", "settings", "inputs", "commit", "versions", "log"}
LOSS = re.compile(r"\b\d+\.\d{6}\b")
STEPS = 3  # whose losses are compared
# Datasets and protocols: one for each kind of head.
HEADS = (("ncbi-disease", "gu"), ("ncbi-disease", "gu-bilstm"), ("ebm-pico", "gu"), ("ddi", "gu"),
         ("ddi", "gu-markers-starts"), ("biosses", "gu"), ("hoc", "gu"), ("pubmedqa", "gu"),
         ("bioasq-7b-factoid", "lee"))  # fmt: skip
FIRST = 200  # examples of each part of the real data that are compared without --all
# One for each way of making batches. SentencePiece vocabularies are left out because their training computes in floats,
# which may differ on another processor.
MODELS = ("bert-general-pubmed", "pubmedbert", "oubiobert", "oubiobert-neither", "bio-electra")

Digests = dict[str, str]  # place, such as a column of a table -> digest of its content


def digest(content) -> str:
    """Return a short hash of anything that JSON can hold; floats count to the last bit."""
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()[:12]


def witness_record(outputs: Path = ROOT / "outputs" / "record") -> Digests:
    """Return digests of every column of every committed table, and of what every committed run measured.

    Raises AssertionError if a scale has none, so that looking in the wrong place does not pass as agreement.
    """
    digests = {}
    for scale in SCALES:
        tables, runs = sorted(outputs.glob(f"{scale}/tables/*.csv")), sorted(outputs.glob(f"{scale}/results/*.json"))
        assert tables and runs, f"no committed tables or results of scale '{scale}' below {show_path(outputs)}"
        for path in [*outputs.glob(f"{scale}/*.csv"), *tables]:
            table = pd.read_csv(path, dtype=str, keep_default_na=False)
            for column in [name for name in table if name not in PROSE]:
                digests[f"{scale}/{path.stem}: {column}"] = f"{len(table)} rows {digest(table[column].tolist())}"
        for path in runs:
            run_records = json.loads(path.read_text(encoding="utf-8"))["runs"]
            facts = [[v for k, v in run.items() if k not in PROVENANCE | {"scores"}] for run in run_records]
            scores = digest([run["scores"] for run in run_records])
            digests[f"{scale}/{path.stem}"] = f"{len(run_records)} runs, scores {scores}, facts {digest(facts)}"
    return digests


def list_fields(example: Instance) -> tuple:
    """Return the values of an example's fields, without a None at the end."""
    values = dataclasses.astuple(example)
    return values[:-1] if values[-1] is None else values


def witness_examples(scale: str, first: int | None = None) -> Digests:
    """Return digests of the examples of every dataset at hand: as read, as models read them, and as natural text.

    `first`: how many examples of each part are hashed; None: all. Names of classes and fields may change without a
    difference; values and their order may not.
    """
    digests = {}
    for key in registry.DATASETS:
        dataset = open_study(scale).dataset(key)
        splits = [] if dataset.punkt else dataset.splits  # Punkt's parameters are downloaded and have no version
        for split, fold in dataset.parts:
            if split not in splits:
                continue
            examples = dataset.load(split, fold)
            sample = examples[:first]
            digests[f"{key} {split} {fold}"] = ", ".join(
                [f"{len(examples)} examples"]
                + [
                    f"{name} {digest([view(example) for example in sample])}"
                    for name, view in (("fields", list_fields), ("inputs", attrgetter("inputs")),
                                       ("texts", attrgetter("natural")))
                ]
                + [f"version {dataset.version}"]
            )  # fmt: skip
    return digests


def witness_test_sentences(scale: str) -> Digests:
    """Return digests of the test sentences that are kept out of every corpus."""
    dataset_texts.test_texts.cache_clear()  # cached by scale only, although the data folder may differ
    study, digests = open_study(scale), {}
    for key in dataset_texts.test_texts(study):
        index = leakage.index_sentences(dataset_texts.read_test_sentences(study, key))
        digests[f"test sentences of {key}"] = (
            f"{len(index)} sentences {digest(index.to_pylist())}, version {dataset_texts.VERSION}"
        )
    dataset_texts.test_texts.cache_clear()
    return digests


def witness_pretraining() -> Digests:
    """Return digests of each stage of pretraining, from the made-up files to the batches of each kind of model."""
    scale, study, digests = "smoke", open_study("smoke"), {}
    dataset_texts.write_index(study)
    models = {key: params.load("models", key) for key in MODELS}
    vocabularies = {key: params.load("vocabularies", key) for key in sorted({m.vocabulary for m in models.values()})}
    corpora = sorted({key for row in (*models.values(), *vocabularies.values()) for key in row.corpora})
    for source, file in sorted({raw_file for key in corpora for raw_file in study.corpus(key).files}):
        documents.read_raw_file(study, source, file)
        document_rows = pq.read_table(paths.documents(scale, source, file) / "documents.parquet").to_pylist()
        digests[f"documents {source}/{file}"] = (
            f"{len(document_rows)} rows {digest([list(row.values()) for row in document_rows])}, version {rows.VERSION}"
        )
    for key in corpora:
        corpus = study.corpus(key)
        record = corpus.build()
        texts = [(document.id, document.text) for document in corpus.documents()]
        left_out = digest([list(counts.values()) for counts in record["files"]])
        digests[f"corpus {key}"] = f"{len(texts)} documents {digest(texts)}, counts {left_out}, version {build.VERSION}"
    for key in vocabularies:
        vocabulary = study.vocabulary(key)
        vocabulary.train()
        ids = vocabulary.tokenizer().get_vocab()
        digests[f"vocabulary {key}"] = f"{len(ids)} tokens {digest(sorted(ids.items()))}, version {learning.VERSION}"
    for key, model in models.items():
        for corpus in model.corpora:
            for split in tokens.SPLITS:
                packed = study.vocabulary(model.vocabulary).packed(study.corpus(corpus), split)
                digests[f"packed {corpus} by {model.vocabulary}, {split}"] = (
                    f"{len(packed.ids)} tokens {digest(packed.ids.tolist())}, "
                    f"starts {digest(packed.starts.tolist())}, version {tokens.VERSION}"
                )
        for split in tokens.SPLITS:
            batches = study.model(key).batches().parts[0] if split == "train" else study.model(key).held_out()
            for step in sorted({0, len(batches) // 2, len(batches) - 1}):
                arrays = batches[step, 0, 1]
                digests[f"batch {step} of {key}, {split}"] = ", ".join(
                    [f"{name} {digest(arrays[name].tolist())}" for name in sorted(arrays)]
                    + [f"version {study.model(key).plan.version}"]
                )
    return digests


@contextmanager
def made_up_study() -> Iterator[None]:
    """Write the outputs of scale smoke, which reads made-up/, into a temporary folder."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(paths, "output", Path(folder).joinpath):
        yield


def of_made_up_files() -> Digests:
    with made_up_study():
        return witness_examples("smoke") | witness_test_sentences("smoke")


def of_pretraining() -> Digests:
    with made_up_study():
        return witness_pretraining()


def of_scores() -> Digests:
    """Return digests of every dataset's metrics on the made-up test sets, for predictions that are partly wrong."""
    digests = {}
    with made_up_study():
        for key in registry.DATASETS:
            dataset = open_study("smoke").dataset(key)
            if dataset.punkt or not (splits := dataset.splits):
                continue
            examples = dataset.load(splits[-1])
            scores = dataset.score(examples, freeze_predictions(dataset.family, examples))
            rounded = {name: round(float(value), 6) for name, value in scores.items()}  # sums differ in the last bits
            version = f"{finetuning.VERSION}.{dataset.version}" if dataset.version > 1 else finetuning.VERSION
            digests[f"scores of {key}"] = f"{digest(rounded)}, version {version}"
    return digests


def freeze_predictions(family: str, examples: list[Instance]) -> list:
    """Return fixed predictions in the form that a family's metric takes, about a third of them wrong."""
    gold = [example.gold for example in examples]
    numbers = range(len(gold))
    match family:
        case "tagging" | "pico":  # tags moved by one word, or none, so that too few are found
            return [
                ["O"] * len(tags) if i % 5 == 0 else [*tags[-1:], *tags[:-1]] if i % 3 == 0 else list(tags)
                for i, tags in enumerate(gold)
            ]
        case "questions":  # for some, one letter first; then each span, with some text before it
            return [
                [Answer(0, 0, 1, 1.0)] * (i % 4 == 0)
                + [Answer(span.passage, max(0, span.start - i % 3), span.end, 1.0) for span in example.spans]
                for i, example in enumerate(examples)
            ]
        case "ranking":
            return [i * 37 % 101 / 101 for i in numbers]
        case "similarity":
            return [label + (i * 7 % 5 - 2) / 3 for i, label in zip(numbers, gold, strict=True)]
    return [gold[i - 1] if i % 3 == 0 else gold[i] for i in numbers]


def of_losses() -> Digests:
    """Return the losses of the first steps of pretraining, and of fine-tuning each kind of head.

    They are computed in float32 on one thread.
    """
    scale, model = "smoke", "pubmedbert"
    plan, load_protocol = params.load_pretraining(model, scale), Study.protocol
    short_plan = plan.model_copy(update={"phases": [plan.phases[0].model_copy(update={"steps": STEPS})]})
    changes = {"epochs": [1], "batch_size": [8], "steps": STEPS, "min_steps": None, "learning_rate": [1e-3], "folds": 1,
               "runs": 1, "first_on": None}  # fmt: skip
    with (
        made_up_study(),
        mock.patch.object(params, "load_pretraining", lambda *_: short_plan),
        mock.patch.object(Study, "protocol", lambda *words: load_protocol(*words).model_copy(update=changes)),
    ):
        dataset_texts.write_index(open_study(scale))
        for source, file in open_study(scale).corpus("pubmed-gu").files:
            documents.read_raw_file(open_study(scale), source, file)
        open_study(scale).corpus("pubmed-gu").build()
        open_study(scale).vocabulary("pubmed-uncased").train()
        logs = {"pretraining": (open_study(scale).model(model).pretrain()["log"], plan.version)}
        for dataset, protocol in HEADS:
            (run,) = open_study(scale).finetune(model, dataset, protocol)["runs"]
            logs[f"{dataset} under {protocol}"] = run["log"], finetuning.VERSION
    return {
        f"losses of {name}": " ".join(f"{row['loss']:.6f}" for row in log) + f", version {version}"
        for name, (log, version) in logs.items()
    }


def of_real_data(first: int | None = FIRST) -> Digests:
    digests = witness_examples("laptop", first)
    return digests if first else digests | witness_test_sentences("laptop")


STAGES: dict[str, Callable[[], Digests]] = {
    "record": witness_record,
    "made-up-examples": of_made_up_files,
    "pretraining": of_pretraining,
    "losses": of_losses,
    "scores": of_scores,
    "real-examples": of_real_data,
}
WHOLE = {"real-examples-whole": lambda: of_real_data(None)}


def read(stage: str) -> Digests:
    return json.loads((WITNESS / f"{stage}.json").read_text(encoding="utf-8"))


def write(stage: str, found: Digests) -> None:
    WITNESS.mkdir(exist_ok=True)
    (WITNESS / f"{stage}.json").write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")


def compare(before: Digests, now: Digests) -> list[str]:
    """Return a line for each place whose digest differs, is new, or is gone."""
    return [
        f"{place}: {before.get(place, 'not there')} -> {now.get(place, 'not there')}"
        for place in before | now
        if not agree(before.get(place), now.get(place))
    ]


def agree(before: str | None, now: str | None) -> bool:
    """Return whether two digests are equal; losses may differ by the rounding of another processor."""
    if before is None or now is None:
        return before == now
    losses = [[float(number) for number in LOSS.findall(one)] for one in (before, now)]
    return LOSS.sub("", before) == LOSS.sub("", now) and all(
        math.isclose(one, other, rel_tol=1e-4) for one, other in zip(*losses, strict=True)
    )


def list_forgotten(before: Digests, now: Digests) -> list[str]:
    """List the places whose numbers changed although the version of what makes them did not."""
    pattern = re.compile(r"(?<=version )[\d.]+$")
    return [
        place
        for place in before.keys() & now.keys()
        if not agree(before[place], now[place])
        and (old_version := pattern.findall(before[place]))
        and old_version == pattern.findall(now[place])
    ]


def main(words: Iterable[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stages", nargs="*", help=f"which: {', '.join(STAGES)}; none: all")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--other-files", action="store_true")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args(list(words))
    stages = STAGES | (WHOLE if options.all else {})
    for stage in options.stages:
        if stage not in stages:
            parser.error(f"no stage '{stage}': there are {', '.join(stages)}")
    differences = 0
    for stage in options.stages or stages:
        if stage.startswith("real") and not paths.real_data().is_dir():
            print(f"{stage}: not compared, no folder of real data: set STUDY_DATA")
            continue
        digests = stages[stage]()
        before = read(stage) if (WITNESS / f"{stage}.json").exists() else {}
        lines, forgotten = compare(before, digests), list_forgotten(before, digests)
        print(f"{stage}: {len(digests)} places, {len(lines)} differ")
        print("".join(f"  {line}\n" for line in lines), end="")
        if options.write and forgotten and not options.other_files:
            print(f"{stage}: not written: raise the version of what makes {', '.join(sorted(forgotten))}")
            differences += len(forgotten)
        elif options.write:
            write(stage, digests)
        else:
            differences += len(lines)
    return min(differences, 1)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except errors.StudyError as error:
        sys.exit(f"error: {error}")
