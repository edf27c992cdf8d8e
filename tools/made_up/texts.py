"""Made-up text pairs, documents and questions in the real formats; see language.py."""

import csv
import io
import json
import random
from collections.abc import Iterable
from pathlib import Path

from lib.benchmarks.hallmarks import HALLMARKS
from tools.made_up.files import write_lines, write_tar, write_text
from tools.made_up.language import JAPANESE, MEDICAL, NOTICE, make_text

SIZE = 30  # instances in a split
BATCHES = range(1, 6)
VERBS = {"yes": "relieves", "no": "worsens", "maybe": "was given against"}
# What a document of a hallmark or category says, so that its label can be learnt.
SIGNS = {
    "Activating invasion and metastasis": "spread to the liver",
    "Avoiding immune destruction": "hid from lymphocytes",
    "Cellular energetics": "burnt more glucose",
    "Enabling replicative immortality": "divided without end",
    "Evading growth suppressors": "ignored the brake",
    "Genomic instability and mutation": "broke their chromosomes",
    "Inducing angiogenesis": "grew new vessels",
    "Resisting cell death": "did not die",
    "Sustaining proliferative signaling": "signalled to divide",
    "Tumor promoting inflammation": "drew in neutrophils",
}
CATEGORIES = {"感染症": "発熱と咳", "循環器": "胸の痛み", "神経": "手のしびれ"}
JMED = {  # tag, question, and options, each with the words that make it right
    "crade": ("disease", "以下の症例報告において、「発疹」がADE（有害事象）である可能性は？",
              {"無関係（ADEでない）": "以前からの", "ADEの可能性は低い": "おそらく別の",
               "おそらくADEである": "投薬後の", "確実にADEである": "投薬のたびの"}),
    "rrtnm": ("N", "以下の読影レポートにはリンパ節転移がありますか？",
              {"転移を認めない": "小さい", "一つの転移を認める": "腫大した", "多数の転移を認める": "多発する"}),
    "smdis": ("fever", "SNSで以下の投稿をした本人または周囲の人間は、1日以内に発熱でしたか？",
              {"発熱である": "熱が出た", "発熱でない": "元気な"}),
}  # fmt: skip
BIOSSES_HEADER = "sentence_id sentence_1 sentence_2 annotator_a annotator_b annotator_c annotator_d annotator_e"
MEDSTS_HEADER = "index genre filename year old_index source1 source2 sentence1 sentence2 score"


def write(folder: Path, rng: random.Random, names: dict[str, list[str]]) -> None:
    """Write every file of these formats below a data folder; the same state of `rng` gives the same bytes."""
    write_similarity(folder, rng, names)
    write_inference(folder, rng, names)
    write_yesno(folder / "qa", rng, names)
    write_candidates(folder / "qa/bioasq-reranker", rng, names)
    write_hallmarks(folder / "doccls/hoc", rng, names)
    write_japanese(folder / "doccls", rng)
    write_factoid(folder / "qa", rng, names)


def write_similarity(folder: Path, rng: random.Random, names: dict) -> None:
    """Write BIOSSES and MedSTS; the second sentence is the first again, the first with another, or another."""
    rows, votes = {}, []
    for number in range(1, 3 * SIZE + 1):
        first, second, score = make_pair(rng, names, number)
        annotators = [min(4, max(0, score + rng.choice([-1, 0, 0, 0, 1]))) for _ in range(5)]
        votes.append([number, first, second, *annotators])
        rows[number] = [number, first, second, sum(annotators) / 5]
    write_table(folder / "sts/biosses/annotation_pairs_scores.tsv", BIOSSES_HEADER, votes)
    for split, numbers in splits(range(1, 3 * SIZE + 1)):
        table = [rows[number] for number in numbers]
        write_table(folder / f"sts/biosses/blurb/{split}.tsv", "pair_id sent1 sent2 score", table)
    for split, numbers in splits(range(3 * SIZE)):
        table = [[number, *["-"] * 6, *make_pair(rng, names, number)] for number in numbers]
        write_table(folder / f"sts/medsts/{split}.tsv", MEDSTS_HEADER, table)


def write_inference(folder: Path, rng: random.Random, names: dict) -> None:
    claims = {"entailment": "has", "contradiction": "does not have", "neutral": "once had"}
    for split, numbers in splits(range(3 * SIZE)):
        records = []
        for number in numbers:
            disease, label = rng.choice(names["disease"]), rng.choice(list(claims))
            premise = f"Patient {number} suffers from {disease} since {rng.randint(2, 60)} days."
            records.append({"pairID": f"made-up-{number}", "gold_label": label, "sentence1": premise,
                            "sentence2": f"The patient {claims[label]} {disease}."})  # fmt: skip
        write_lines(folder / f"nli/mednli/mli_{split}_v1.jsonl", map(json.dumps, records))


def write_yesno(folder: Path, rng: random.Random, names: dict) -> None:
    """Write PubMedQA and BioASQ's yes/no questions; the verb of the text gives the answer."""
    original = {}
    for split, numbers in splits(range(40_000_000, 40_000_000 + 3 * SIZE)):
        lines = []
        for pmid in map(str, numbers):
            question, contexts, label = ask(rng, names, tuple(VERBS))
            original[pmid] = {"QUESTION": question, "CONTEXTS": contexts, "final_decision": label}
            record = {"id": pmid, "sentence1": question, "sentence2": " ".join(contexts), "label": label}
            lines.append(json.dumps(record))
        write_lines(folder / f"pubmedqa/blurb/{split}.jsonl", lines)
    write_json(folder / "pubmedqa/ori_pqal.json.gz", original)
    for split, numbers in splits(range(3 * SIZE)):
        rows = [(make_id(rng), *ask(rng, names, ("yes", "no"))) for _ in numbers]
        table = [[id, question, " ".join(contexts), label] for id, question, contexts, label in rows]
        write_table(folder / f"bioasq-7b-yesno-blurb/{split}.tsv", "", table)
    for split in ("train", "test"):
        questions = [ask(rng, names, ("yes", "no")) for _ in range(SIZE)]
        table = [[int(label == "yes"), question, contexts[0]] for question, contexts, label in questions]
        write_table(folder / f"bioasq-8b-yesno/{split}.tsv", "yesno_label question ideal_answer", table)


def write_candidates(folder: Path, rng: random.Random, names: dict) -> None:
    for split in ("train", "test"):
        rows = []
        for number in range(SIZE // 3):
            drug, right_position = rng.choice(names["drug"]), rng.randrange(5)
            for position in range(5):
                candidate = f"Note {number}.{position}: {drug} relieves {rng.choice(names['disease'])}."
                rows.append([int(position == right_position), f"What is relieved by {drug} in trial {number}?",
                             candidate if position == right_position else say(rng, names, position)])  # fmt: skip
        write_table(folder / f"{split}.tsv.gz", "label question answer_candidate", rows)


def write_hallmarks(folder: Path, rng: random.Random, names: dict) -> None:
    """Write Hallmarks of Cancer as the corpus, as lists of its files, and as BLURB's tables."""
    files = {"README.md": NOTICE}
    for split, pmids in splits(range(50_000_000, 50_000_000 + 3 * SIZE)):
        table = []
        for pmid in pmids:
            annotated = [annotate(rng, names, pmid + i) for i in range(rng.randint(2, 5))]
            files[f"text/{pmid}.txt"] = "".join(f"{sentence}\n" for sentence, _ in annotated)
            labels = ("AND".join(f"{name}--Detail" for name in hallmarks) for _, hallmarks in annotated)
            files[f"labels/{pmid}.txt"] = "".join(f"<{label or ' '}" for label in labels)
            for position, (sentence, hallmarks) in enumerate(annotated):
                flags = ",".join(f"{number}_{int(name in hallmarks)}" for number, name in enumerate(HALLMARKS))
                table.append([flags, sentence, f"{pmid}_s{position}"])
        write_table(folder / f"blurb/{split}.tsv{'.gz' if split == 'train' else ''}", "labels sentence index", table)
        write_lines(folder / f"splits/{split}_pmid.tsv", [",".join(f"{pmid}.txt" for pmid in pmids)])
    write_tar(folder / "hoc-corpus.tar.gz", dict(sorted(files.items())))


def write_japanese(folder: Path, rng: random.Random) -> None:
    """Write DocClsJp and the three datasets of JMED-LLM, whole and cut."""
    rows = [[f"doc-{number}", f"第{number}例。" + "".join(rng.choice(JAPANESE).format(rng.randint(1, 99))
             for _ in range(3)) + f"{CATEGORIES[label]}がある。", label]
            for number, label in enumerate(rng.choices(list(CATEGORIES), k=3 * SIZE))]  # fmt: skip
    write_csv(folder / "docclsjp/docclsjp.csv", ["id", "text", "label"], rows)
    for key, (tag, question, options) in JMED.items():
        letters = "ABCDE"[: len(options)]
        rows = []
        for number in range(2 * SIZE):
            letter, option = rng.choice(list(zip(letters, options, strict=True)))
            document = f"第{number}例。\n{options[option]}所見が{rng.randint(1, 99)}日間続いた。"
            rows.append([tag, f"{question}\n「{document}」", *options, letter])
        header = ["tag", "question", *(f"option{letter}" for letter in letters), "answer"]
        write_csv(folder / f"jmed-llm/{key}.csv", header, rows[:SIZE])
        suffix = "" if key == "rrtnm" else ".gz"
        write_csv(folder / f"jmed-llm/all/{key.upper()}.csv{suffix}", header, rows)


def write_factoid(folder: Path, rng: random.Random, names: dict) -> None:
    """Write SQuAD, and BioASQ's factoid questions in its format with the golden files of the tests."""
    write_json(folder / "squad-v1.1/train-v1.1.json", to_squad(make_entries(rng, names, "{}")))
    write_json(folder / "squad-v1.1-dev-derived/dev-v1.1.derived.json.gz", to_squad(make_entries(rng, names, "{}")))
    for split in ("train", "dev"):
        write_json(folder / f"bioasq-8b-factoid/{split}.json", to_squad(make_entries(rng, names, ":{}")))
    for year in (4, 5, 6):
        biobert = folder / "bioasq-factoid-biobert"
        write_json(biobert / f"BioASQ-train-factoid-{year}b.json", to_squad(make_entries(rng, names)))
        for batch in BATCHES:
            entries = make_entries(rng, names, size=10)
            write_json(biobert / f"BioASQ-test-factoid-{year}b-{batch}.json", to_squad(entries, answers=False))
            write_json(biobert / f"{year}B{batch}_golden.json", to_golden(rng, names, entries))
    bioasq_7b = folder / "bioasq-7b-biobert"
    write_json(bioasq_7b / "BioASQ-train-factoid-7b.json.gz", to_squad(make_entries(rng, names)))
    entries = make_entries(rng, names)
    write_json(bioasq_7b / "BioASQ-test-factoid-7b.json", to_squad(entries, answers=False))
    write_json(bioasq_7b / "7B_golden.json.gz", to_golden(rng, names, entries))


def make_entries(rng: random.Random, names: dict, form: str = "_{:03}", size: int = SIZE) -> list[dict]:
    """Make questions about what relieved a disease, each with two passages. `form`: ending of a passage's id."""
    entries = []
    for number in range(size):
        id, disease, drug = make_id(rng), rng.choice(names["disease"]), rng.choice(names["drug"])
        for passage in range(2):
            context = f"{say(rng, names, number)} In case {number}.{passage} {disease} was relieved by {drug} at last."
            entries.append({"id": id + form.format(passage),
                            "question": f"What relieved {disease} in case {number}?", "context": context,
                            "answer": drug})  # fmt: skip
    return entries


def to_squad(entries: list[dict], answers: bool = True) -> dict:
    paragraphs = []
    for entry in entries:
        question = {"id": entry["id"], "question": entry["question"]}
        if answers:
            start = entry["context"].rindex(f"relieved by {entry['answer']} at") + len("relieved by ")
            question["answers"] = [{"text": entry["answer"], "answer_start": start}]
        paragraphs.append({"context": entry["context"], "qas": [question]})
    return {"version": "made up", "data": [{"title": "made up", "paragraphs": paragraphs}]}


def to_golden(rng: random.Random, names: dict, entries: list[dict]) -> dict:
    """Return factoid questions in BioASQ's official format, with some yes/no questions added."""
    questions: dict[str, dict] = {}
    for entry in entries:
        question = questions.setdefault(
            entry["id"].split("_")[0],
            {"id": entry["id"].split("_")[0], "type": "factoid", "body": entry["question"], "snippets": [],
             "exact_answer": [[entry["answer"].upper(), f"{entry['answer']} salt"]]},
        )  # fmt: skip
        question["snippets"].append({"text": entry["context"]})
    for _ in range(10):
        question, contexts, label = ask(rng, names, ("yes", "no"))
        snippets = [{"text": text} for text in contexts]
        record = {"id": make_id(rng), "type": "yesno", "body": question, "snippets": snippets, "exact_answer": label}
        questions[record["id"]] = record
    return {"questions": list(questions.values())}


def say(rng: random.Random, names: dict, number: int) -> str:
    return f"In report {number}: {make_text(rng, MEDICAL, names, 1)}"


def make_pair(rng: random.Random, names: dict, number: int) -> tuple[str, str, int]:
    """Make two sentences and return them with their similarity, 0 to 4."""
    first, other = say(rng, names, number), say(rng, names, number)
    second, score = rng.choice([(first, 4), (f"{first[:-1]}, {other[0].lower()}{other[1:]}", 2), (other, 0)])
    return first, second, score


def ask(rng: random.Random, names: dict, labels: tuple[str, ...]) -> tuple[str, list[str], str]:
    """Make a yes/no question and return it with two texts and the answer that the first one gives."""
    drug, disease, label = rng.choice(names["drug"]), rng.choice(names["disease"]), rng.choice(labels)
    number = rng.randint(1, 9999)
    text = f"In cohort {number} {drug} {VERBS[label]} {disease}."
    return f"Does {drug} relieve {disease} in cohort {number}?", [text, say(rng, names, number)], label


def annotate(rng: random.Random, names: dict, number: int) -> tuple[str, list[str]]:
    """Make a sentence and return it with its hallmarks: often none, at most two."""
    hallmarks = rng.sample(list(HALLMARKS), rng.choice([0, 0, 1, 1, 2]))
    signs = " and ".join(SIGNS[name] for name in hallmarks) or "were counted"
    return f"In sample {number} cells under {rng.choice(names['drug'])} {signs} .", hallmarks


def make_id(rng: random.Random) -> str:
    return f"{rng.getrandbits(96):024x}"


def splits(numbers: range) -> list[tuple[str, range]]:
    return [(split, numbers[i * SIZE : (i + 1) * SIZE]) for i, split in enumerate(("train", "dev", "test"))]


def write_table(path: Path, header: str, rows: Iterable[list]) -> None:
    lines = ["\t".join(map(str, row)) for row in rows]
    write_lines(path, ["\t".join(header.split()), *lines] if header else lines)


def write_csv(path: Path, header: list[str], rows: list[list[str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    write_text(path, text.getvalue())


def write_json(path: Path, content: dict) -> None:
    write_text(path, json.dumps(content, ensure_ascii=False, indent=1))
