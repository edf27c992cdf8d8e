"""New text: the study's tagger against the pipeline of `transformers`, in words a second, on the same abstracts.

    STUDY_DATA=folder python -m benchmarks.tagging FOLDER [--abstracts N] [--repetitions N]

FOLDER holds a tagger with a linear head that `evaluate --save` wrote; both sides load it in float32. The abstracts are
those of BC5CDR's test set, in PubTator form; the first few are tagged once before timing starts. benchmarks/paired.py
says how both sides run and what the numbers mean.

The pipeline runs with aggregation_strategy="first". On the study's sentences, which is the same work, it runs one at a
time (its default) and in batches. On whole abstracts it runs with a `stride`, because without one it leaves out text
beyond the model's maximum length. `same_entities`: F1 of its entities against the study's.

Writes its rows into outputs/record/benchmarks/tagging.csv.
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
    """Return the seconds taken, and each text's entities as (start, end, type)."""
    model = saved.load_saved(folder)
    new_text.tag_texts(model, texts[:WARM_UP])
    start = time.perf_counter()
    tagged = new_text.tag_texts(model, texts)
    return time.perf_counter() - start, [{entity[:3] for entity in entities} for entities in tagged]


def run_pipeline(folder: Path, texts: list[str], by_sentence: bool = True, batch: int = 1) -> tuple[float, list[set]]:
    """Return the same for the library's pipeline."""
    options = {"aggregation_strategy": "first", "batch_size": batch} | ({} if by_sentence else {"stride": STRIDE})
    model = pipeline("token-classification", str(folder), device="cpu", **options)
    owners, parts = [], []
    for number, text in enumerate(texts):
        for start, end in standoff.find_sentences(text, standoff.LINE, "") if by_sentence else [(0, len(text))]:
            owners.append((number, start))
            parts.append(text[start:end])
    model(parts[:WARM_UP])
    start_time = time.perf_counter()
    tagged = model(parts)
    seconds, spans = time.perf_counter() - start_time, [set() for _ in texts]
    for (number, offset), entities in zip(owners, tagged, strict=True):
        spans[number] |= {
            (offset + entity["start"], offset + entity["end"], entity["entity_group"]) for entity in entities
        }
    return seconds, spans


PEERS = {
    "sentences": run_pipeline,
    f"sentences, {BATCH} together": partial(run_pipeline, batch=BATCH),
    f"abstracts, stride {STRIDE}": partial(run_pipeline, by_sentence=False),
}


def measure(folder: Path, texts: list[str], repetitions: int) -> list[dict]:
    """Return a row for each way of running the pipeline."""
    word_count = sum(len(standoff.WORD.findall(text)) for text in texts)
    runs = {name: [] for name in ("ours", *PEERS)}
    for _ in range(repetitions):
        for name, function in {"ours": run_ours, **PEERS}.items():
            runs[name].append(paired.run_apart(function, folder, texts))
    speeds = {name: [word_count / seconds for seconds, _ in side_runs] for name, side_runs in runs.items()}
    spans = {name: side_runs[0][1] for name, side_runs in runs.items()}
    return [
        {"what": f"{folder.resolve().name}, {len(texts)} abstracts; pipeline on {name}"}
        | paired.compare(speeds["ours"], speeds[name], "words/s")
        | {"same_entities": round(metrics.strict_spans(spans[name], spans["ours"])["f1"], 1)}
        | paired.describe_machine()
        for name in PEERS
    ]


def main() -> None:
    parser = paired.make_parser(__doc__, abstracts=100, repetitions=3)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    texts = [abstract.text for abstract in islice(pubtator.read_abstracts(real_data() / SOURCE), options.abstracts)]
    paired.write_lines("tagging", measure(options.folder, texts, options.repetitions))


if __name__ == "__main__":
    paired.start(main)
