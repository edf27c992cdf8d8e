"""New text: the study's tagger against the pipeline of `transformers`, in words a second, on the same abstracts.

    STUDY_DATA=folder python -m benchmarks.tagging FOLDER [--abstracts N] [--repetitions N]

FOLDER holds a tagger of `evaluate --save` with a linear head, which both sides read in float32. The abstracts are those
of BC5CDR's test set, in PubTator form; a few of them come before those that count. How both sides run, and what the
numbers are: benchmarks/paired.py.

The pipeline runs with aggregation_strategy="first" on the sentences that the study cuts, which is the same work, one at
a time as by default and in batches; and on whole abstracts with a `stride`, without which it leaves out what goes
beyond the length that the model takes. `same_entities`: F1 of its entities against the study's.

Writes its lines into outputs/record/benchmarks/tagging.csv.
"""

import time
from functools import partial
from itertools import islice
from pathlib import Path

from transformers import pipeline

from benchmarks import paired
from lib.benchmarks import metrics, pubtator, standoff
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


def run_pipeline(folder: Path, texts: list[str], by_sentence: bool = True, batch: int = 1) -> tuple[float, list[set]]:
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


PEERS = {
    "sentences": run_pipeline,
    f"sentences, {BATCH} together": partial(run_pipeline, batch=BATCH),
    f"abstracts, stride {STRIDE}": partial(run_pipeline, by_sentence=False),
}


def measure(folder: Path, texts: list[str], repetitions: int) -> list[dict]:
    """A line for each way to run the pipeline."""
    words = sum(len(standoff.WORD.findall(text)) for text in texts)
    runs = {name: [] for name in ("ours", *PEERS)}
    for _ in range(repetitions):
        for name, function in {"ours": run_ours, **PEERS}.items():
            runs[name].append(paired.run_apart(function, folder, texts))
    speeds = {name: [words / seconds for seconds, _ in done] for name, done in runs.items()}
    found = {name: done[0][1] for name, done in runs.items()}
    return [
        {"what": f"{folder.resolve().name}, {len(texts)} abstracts; pipeline on {name}"}
        | paired.compare(speeds["ours"], speeds[name], "words/s")
        | {"same_entities": round(metrics.strict_spans(found[name], found["ours"])["f1"], 1)}
        | paired.describe_machine()
        for name in PEERS
    ]


def main() -> None:
    parser = paired.make_parser(__doc__, abstracts=100, repetitions=3)
    parser.add_argument("folder", type=Path)
    words = parser.parse_args()
    texts = [abstract.text for abstract in islice(pubtator.read_abstracts(real_data() / SOURCE), words.abstracts)]
    paired.write_lines("tagging", measure(words.folder, texts, words.repetitions))


if __name__ == "__main__":
    paired.start(main)
