"""New text: the study's tagger against the pipeline of `transformers`, in words a second, on the same abstracts.

    STUDY_DATA=folder python -m benchmarks.tagging FOLDER [--abstracts N] [--repetitions N]

FOLDER holds a tagger of `evaluate --save` with a linear head, which both sides read in float32. The abstracts are those
of BC5CDR's test set, in PubTator form. Each side runs in a process of its own, both in turn, on every core of a machine
that should have nothing else to do, after a few abstracts that do not count; a ratio is that of two runs of one
repetition, shown are the median, the lowest and the highest.

The pipeline runs with aggregation_strategy="first" on the sentences that the study cuts, which is the same work, one at
a time as by default and in batches; and on whole abstracts with a `stride`, without which it leaves out what goes
beyond the length that the model takes. `same_entities`: F1 of its entities against the study's.

Writes its lines into outputs/record/benchmarks/tagging.csv.
"""

import argparse
import os
import statistics
import sys
import time
from itertools import islice
from pathlib import Path

from transformers import pipeline

from benchmarks.pretraining import describe_device, run_apart, write_lines
from lib import provenance
from lib.benchmarks import metrics, pubtator, standoff
from lib.errors import StudyError
from lib.finetuning import new_text, saved
from lib.places import real_data

SOURCE = "ner/bc5cdr-pubtator/CDR_TestSet.PubTator.txt"
WARM_UP = 4  # abstracts
BATCH = 16
STRIDE = 32  # tokens that two parts of a long text share


def run_ours(folder: Path, texts: list[str]) -> tuple[float, list[set]]:
    """Seconds, and the (start, end, type) of each text's entities."""
    model = saved.load_saved(folder)
    new_text.tag_texts(model, texts[:WARM_UP])
    begun = time.perf_counter()
    found = new_text.tag_texts(model, texts)
    return time.perf_counter() - begun, [{entity[:3] for entity in entities} for entities in found]


def run_pipeline(folder: Path, texts: list[str], by_sentence: bool, batch: int) -> tuple[float, list[set]]:
    """The same by the library."""
    options = {"aggregation_strategy": "first", "batch_size": batch} | ({} if by_sentence else {"stride": STRIDE})
    model = pipeline("token-classification", str(folder), device="cpu", **options)
    owners, parts = [], []
    for number, text in enumerate(texts):
        for start, end in standoff.find_sentences(text, standoff.LINE, "") if by_sentence else [(0, len(text))]:
            owners.append((number, start))
            parts.append(text[start:end])
    model(parts[:WARM_UP])
    begun = time.perf_counter()
    tagged = model(parts)
    seconds, found = time.perf_counter() - begun, [set() for _ in texts]
    for (number, at), entities in zip(owners, tagged, strict=True):
        found[number] |= {(at + one["start"], at + one["end"], one["entity_group"]) for one in entities}
    return seconds, found


PEERS = {  # by sentence, sequences in a batch
    "sentences": (True, 1),
    f"sentences, {BATCH} together": (True, BATCH),
    f"abstracts, stride {STRIDE}": (False, 1),
}


def measure(folder: Path, texts: list[str], repetitions: int) -> list[dict]:
    """A line for each way to run the pipeline."""
    words = sum(len(standoff.WORD.findall(text)) for text in texts)
    ours, peers = [], {name: [] for name in PEERS}
    for _ in range(repetitions):
        ours.append(run_apart(run_ours, folder, texts))
        for name, choice in PEERS.items():
            peers[name].append(run_apart(run_pipeline, folder, texts, *choice))
    lines = []
    for name, runs in peers.items():
        ratios = [peer / own for (own, _), (peer, _) in zip(ours, runs, strict=True)]
        lines.append({
            "what": f"{folder.resolve().name}, {len(texts)} abstracts; pipeline on {name}",
            "ours": round(words / statistics.median(seconds for seconds, _ in ours), 1),
            "peer": round(words / statistics.median(seconds for seconds, _ in runs), 1),
            "ratio": round(statistics.median(ratios), 2), "lowest": round(min(ratios), 2),
            "highest": round(max(ratios), 2), "repetitions": repetitions, "unit": "words/s",
            "same_entities": round(metrics.strict_spans(runs[0][1], ours[0][1])["f1"], 1),
            "device": describe_device(), "commit": provenance.commit(),
        })  # fmt: skip
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--abstracts", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=3)
    words = parser.parse_args()
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false"}
    texts = [abstract.text for abstract in islice(pubtator.read_abstracts(real_data() / SOURCE), words.abstracts)]
    lines = measure(words.folder, texts, words.repetitions)
    write_lines("tagging", lines)
    for line in lines:
        print(line)


if __name__ == "__main__":
    try:
        main()
    except StudyError as error:
        sys.exit(f"error: {error}")
