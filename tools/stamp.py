"""Give records that were made before stages had versions the identity that they have now; nothing is computed again.

    python tools/stamp.py [FOLDER ...]    folders of scales; none: all below outputs/

What has another name since is renamed: values of settings in all records that have an identity, keys of results.

Taken are records that were right at commit 41b8d68, whose code and readers are those of that commit
(tools/right-at-41b8d68.json): results, predictions, models and all that these are made from. The others are listed and
left as they are, to be made again. What was measured stays as it is.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lib import artefacts, provenance  # noqa: E402
from lib.benchmarks import registry  # noqa: E402
from lib.places import show_path  # noqa: E402
from lib.study import dataset_texts, open_study  # noqa: E402

RIGHT = json.loads((ROOT / "tools" / "right-at-41b8d68.json").read_text())
ADAMW = {"optimizer": "adamw", "betas": [0.9, 0.999], "clip": 1.0, "epsilon": 1e-6}  # of fine-tuning, at that commit
RENAMED = {"first piece": "first token", "masked pieces": "masked tokens", "replaced pieces": "replaced tokens",
           "piece counts": "token counts"}  # fmt: skip
RENAMED_KEYS = {"setting": "protocol"}  # of results
STAGES = {"test-sentences": "test sentences", "documents": "documents", "corpora": "corpora",
          "vocabularies": "vocabularies", "tokens": "tokens", "vectors": "word vectors",
          "models": "pretraining"}  # fmt: skip


def stamp(stage: str, record: dict, settings: dict, inputs: dict) -> dict:
    """A record with its new identity before all else that it holds."""
    kept = {name: value for name, value in record.items() if name not in ("fingerprint", "settings", "inputs")}
    return provenance.identify(stage, 1, rename_values(settings), inputs) | kept


def rename(record: dict) -> tuple[dict, str]:
    """A record whose settings have the names of today, or as it is and why."""
    parts = [record[name] for name in ("stage", "version", "settings", "inputs")]
    if record["fingerprint"] != provenance.fingerprint(*parts):
        return record, "its fingerprint is not that of its settings and inputs"
    settings = rename_values(record["settings"])
    if settings != record["settings"] and "first" in record["inputs"]:
        return record, "the settings of the set that it was fine-tuned on before are in a hash"
    identity = provenance.identify(record["stage"], record["version"], settings, record["inputs"])
    return identity | {name: value for name, value in record.items() if name not in identity}, ""


def rename_values(settings):
    if isinstance(settings, dict):
        return {name: rename_values(value) for name, value in settings.items()}
    if isinstance(settings, list):
        return [rename_values(value) for value in settings]
    return RENAMED.get(settings, settings) if isinstance(settings, str) else settings


def why_not(record: dict, code: str, reader: str = "") -> str:
    """Why a record was not right at that commit, or an empty string."""
    if record["fingerprint"] != provenance.fingerprint(record["settings"], record["inputs"]):
        return "its fingerprint is not that of its settings and inputs"
    if record["inputs"].get("code") != code or record["inputs"].get("reader", "") != reader:
        return "it was made by other code"
    return ""


def stamp_run(run: dict, dataset: str) -> tuple[dict, str]:
    """A run of fine-tuning with its new identity, or as it is and why."""
    if "stage" in run:
        return rename(run)
    if "inputs" not in run:
        return run, "it has no identity"  # of baselines
    if reason := why_not(run, RIGHT["fine-tuning"], RIGHT["readers"][dataset]):
        return run, reason
    inputs = {name: value for name, value in run["inputs"].items() if name != "code"}
    inputs["reader"] = registry.lookup(dataset).fingerprint_reader()
    return stamp("fine-tuning", run, run["settings"] | ADAMW | {"precision": precision_of(run)}, inputs), ""


def precision_of(record: dict) -> str:
    return record["device"].rpartition(", ")[2]


def stamp_folder(record: dict, stage: str, scale: str) -> tuple[dict, str]:
    """The record of a folder with its new identity, or as it is and why."""
    if "stage" in record:
        return rename(record)
    if reason := why_not(record, RIGHT[stage]):
        return record, reason
    settings = record["settings"]
    if stage == "pretraining":
        several = record["device"].partition(" processes of ")
        processes = int(several[0]) if several[1] else 1
        settings = settings | {"precision": precision_of(record), "processes": processes, "epsilon": 1e-6}
        settings |= {"made of": {"tokens": 1, "word vectors": 1}}
    if stage == "test sentences":
        at_hand = dataset_texts.tests_at_hand(open_study(scale))
        settings = {"readers": {key: registry.lookup(key).version for key in at_hand}}
    return stamp(stage, record, settings, {k: v for k, v in record["inputs"].items() if k != "code"}), ""


def stamp_results(path: Path) -> Iterable[str]:
    result = artefacts.read_json(path)
    result = {RENAMED_KEYS.get(name, name): value for name, value in result.items()}
    found = [stamp_run(run, result["dataset"]) for run in result["runs"]]
    artefacts.write_json(path, result | {"runs": [run for run, _ in found]})
    yield from {reason for _, reason in found if reason}


def stamp_predictions(path: Path) -> Iterable[str]:
    table = pq.read_table(path)
    record = json.loads(table.schema.metadata[b"record"])
    run, reason = stamp_run(record, path.stem.split("--")[1])
    if reason:
        yield reason
    elif run != record:
        with artefacts.whole_file(path) as temporary:
            pq.write_table(table.replace_schema_metadata({"record": json.dumps(run)}), temporary)


def stamp_all(folder: Path) -> int:
    """Stamp all records of a scale; prints those that are left, and returns how many."""
    left = 0
    for path in sorted(folder.glob("results/*.json")) + sorted(folder.glob("predictions/*.parquet")):
        for reason in (stamp_results if path.suffix == ".json" else stamp_predictions)(path):
            print(f"left: {show_path(path)}: {reason}")
            left += 1
    for name, stage in STAGES.items():
        for path in sorted(folder.glob(f"{name}/**/record.json")):
            record, reason = stamp_folder(artefacts.read_json(path), stage, folder.name)
            if reason:
                print(f"left: {show_path(path)}: {reason}")
                left += 1
            else:
                artefacts.write_record(path.parent, record)
    return left


if __name__ == "__main__":
    everywhere = sorted([*(ROOT / "outputs").glob("*/"), *(ROOT / "outputs/record").glob("*/")])
    for scale in map(Path, sys.argv[1:]) if sys.argv[1:] else everywhere:
        print(f"{scale.name}: {stamp_all(scale)} records left")
