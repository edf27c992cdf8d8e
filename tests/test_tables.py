"""Tables of pairs and documents: every format read as written, what is wrong named by its place and never quoted."""

import csv
import gzip
import io
import json
import random
from collections import Counter
from statistics import fmean

import pytest
from conftest import each
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.benchmarks import tables
from lib.benchmarks.datasets import take_fold
from lib.benchmarks.instances import Labelled, Pair
from lib.errors import StudyError
from lib.made_up import smoke_language, smoke_texts
from lib.reading import find_file

FEW = settings(max_examples=25, deadline=None, derandomize=True)
SECRET = "Zebrafish"  # stands in every bad file; no message may quote it

BIOSSES = "pair_id\tsent1\tsent2\tscore\n"
BLUE = "index\tgenre\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
IDEAL = "yesno_label\tquestion\tideal_answer\n"
CANDIDATES = "label\tquestion\tanswer_candidate\n"
JMED = (
    'tag,question,optionA,optionB,answer\nfever,"Asked?\n「One.\nTwo.」",hot,"not, hot",B\nM,"Why?\n「Three」",x,y,A\n'
)


def nli(**changes) -> str:
    record = {"pairID": "p1", "sentence1": "A", "sentence2": "B", "gold_label": "neutral", "annotator": 3} | changes
    return json.dumps(record) + "\n"


def pubmedqa(**changes) -> str:
    return json.dumps({"id": "1", "sentence1": "A?", "sentence2": "B.", "label": "maybe"} | changes) + "\n"


GOOD = {
    "biosses": (
        tables.read_biosses,
        BIOSSES + "9\tA b.\tC d.\t2.4\n3\tE.\tF.\t0.0\n",
        [Pair("9", "A b.", "C d.", 2.4), Pair("3", "E.", "F.", 0.0)],
    ),
    "medsts": (tables.read_medsts, "A\tB\t3.5 \nC\tD\t5\n", [Pair("1", "A", "B", 3.5), Pair("2", "C", "D", 5.0)]),
    "medsts-blue": (tables.read_medsts, BLUE + "0\tx\t-\t-\tA\tB\t1\n", [Pair("0", "A", "B", 1.0)]),
    "medsts-headed": (tables.read_medsts, "sentence1\tsentence2\tscore\nA\tB\t1\n", [Pair("1", "A", "B", 1.0)]),
    "mednli": (tables.read_mednli, nli(), [Pair("p1", "A", "B", "neutral")]),
    "pubmedqa": (tables.read_pubmedqa, pubmedqa(), [Pair("1", "A?", "B.", "maybe")]),
    "yesno": (tables.read_yesno, "q1\tA?\tB\tno\nq2\tA?\tB\tyes\n",
              [Pair("q1", "A?", "B", "no"), Pair("q2", "A?", "B", "yes")]),
    "yesno-ideal": (tables.read_yesno_ideal, IDEAL + "1\tA?\tB\n0\tC?\tD\n",
                    [Pair("1", "A?", "B", "yes"), Pair("2", "C?", "D", "no")]),
    "candidates": (tables.read_candidates, CANDIDATES + "0\tA?\tB\n1\tC?\tD\n1\tA?\tB\n",
                   [Pair("1", "A?", "B", "0", "1"), Pair("2", "C?", "D", "1", "2"), Pair("3", "A?", "B", "1", "1")]),
    "docclsjp": (
        tables.read_docclsjp,
        'id,text,label,notes\na,"熱、咳\n「疹」",感染症,\nb,胸の痛み,循環器,-\n',
        [Labelled("a", ("熱、咳\n「疹」",), ("感染症",)), Labelled("b", ("胸の痛み",), ("循環器",))],
    ),
    "jmed": (
        tables.read_jmed,
        JMED,
        [Labelled("1", ("Asked?", "One.\nTwo."), ("not, hot",)), Labelled("2", ("Why?", "Three"), ("x",))],
    ),
}  # fmt: skip
BAD = [
    (tables.read_biosses, f"{BIOSSES}1\t{SECRET}\tB\n", "bad:2: expected 4 columns, found 3"),
    (tables.read_biosses, f"{BIOSSES}1\tA\tB\t1\n1\t{SECRET}\tB\t2\n", "bad:3: an id that is empty or came before"),
    (tables.read_biosses, f"{BIOSSES}1\t \t{SECRET}\t1\n", "bad:2: one of the two texts is blank"),
    (tables.read_biosses, f"{BIOSSES}1\tA\tB\t{SECRET}\n", "bad:2: expected a score of 0 to 4"),
    (tables.read_biosses, f"{BIOSSES}1\t{SECRET}\tB\t4.1\n", "bad:2: expected a score of 0 to 4"),
    (tables.read_biosses, f"{BIOSSES}1\t{SECRET}\tB\tnan\n", "bad:2: expected a score of 0 to 4"),
    (tables.read_biosses, f"{SECRET}\tb\tc\td\n", "bad:1: expected the header pair_id, sent1, sent2, score"),
    (tables.read_biosses, BIOSSES, "bad: no rows in the file"),
    (tables.read_medsts, f"A\tB\t1\n{SECRET}\tB\n", "bad:2: expected 3 columns, found 2"),
    (tables.read_medsts, f"{SECRET}\tB\t5.5\n", "bad:1: expected a score of 0 to 5"),
    (tables.read_medsts, f"{BLUE}0\tx\t-\t-\tA\tB\t1\n0\tx\t-\t-\t{SECRET}\tB\t1\n", "bad:3: an id that"),
    (tables.read_mednli, nli(gold_label=SECRET), "bad:1: expected the label entailment, contradiction, neutral"),
    (tables.read_mednli, nli(sentence2=["B", SECRET]), "bad:1: expected a text under sentence2"),
    (tables.read_mednli, f'{{"pairID": "{SECRET}', "bad:1: not JSON"),
    (tables.read_mednli, f'["{SECRET}"]\n', "bad:1: not a JSON object"),
    (tables.read_mednli, nli() + nli(sentence1=SECRET), "bad:2: an id that is empty or came before"),
    (tables.read_pubmedqa, pubmedqa(label=SECRET), "bad:1: expected the label yes, no, maybe"),
    (tables.read_pubmedqa, pubmedqa(id=7, sentence1=SECRET), "bad:1: expected a text under id"),
    (tables.read_yesno, f"q1\t{SECRET}\tB\tmaybe\n", "bad:1: expected the label yes, no"),
    (tables.read_yesno_ideal, f"{IDEAL}yes\t{SECRET}\tB\n", "bad:2: expected the label 1, 0"),
    (tables.read_candidates, f"{CANDIDATES}2\t{SECRET}\tB\n", "bad:2: expected the label 0, 1"),
    (tables.read_docclsjp, "", "bad: no rows"),
    (tables.read_docclsjp, "id,text,label\n", "bad: no rows"),
    (tables.read_docclsjp, f"id,label\n1,{SECRET}\n", "bad:1: expected the columns id, text, label"),
    (tables.read_docclsjp, f"id,text,text,label\n1,{SECRET},b,c\n", "bad:1: expected the columns"),
    (tables.read_docclsjp, f"id,text,label\n1,{SECRET}\n", "bad:2: expected 3 columns, found 2"),
    (tables.read_docclsjp, f'id,text,label\n1,"{SECRET}\n', "bad:2: not CSV"),
    (tables.read_docclsjp, f'id,text,label\n1,"{SECRET}"x,b\n', "bad:2: not CSV"),
    (tables.read_docclsjp, f"id,text,label\n1,a,b\n1,{SECRET},b\n", "bad:3: an id that is empty or came before"),
    (tables.read_docclsjp, f"id,text,label\n1, ,{SECRET}\n", "bad:2: a blank text or label"),
    (tables.read_docclsjp, gzip.compress(b"id,text,label\n1,a,b\n" * 9, mtime=0)[:-8], "bad: cut off or damaged"),
    (tables.read_jmed, f"tag,question,answer\nx,{SECRET},A\n", "bad:1: expected the columns tag, question"),
    (tables.read_jmed, JMED.replace("」", ""), "bad:4: expected a question over a document"),
    (tables.read_jmed, JMED.replace(",B\n", f",{SECRET}\n"), "bad:4: expected a question over a document"),
    (tables.read_jmed, JMED.replace("x,y,A", f",{SECRET},A"), "bad:6: expected a question over a document"),
]
READERS = {name: reader for name, (reader, *_) in GOOD.items()}
TEXTS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)
UNQUOTED = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="「」"), min_size=1, max_size=20)


@pytest.mark.parametrize("name", GOOD)
def test_reads_every_format(tmp_path, name):
    reader, content, expected = GOOD[name]
    for path, data in ((tmp_path / "plain", content.encode()), (tmp_path / "packed", gzip.compress(content.encode()))):
        path.write_bytes(data)
        assert reader(path) == expected


@each("reader, content, message", BAD)
def test_names_the_place_of_what_is_wrong_and_quotes_nothing(tmp_path, reader, content, message):
    path = tmp_path / "bad"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(StudyError) as error:
        reader(path)
    assert str(error.value).startswith(message)
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


@each("name", GOOD)
@each("content", [b"", b"caf\xe9\tb\tc\td\n", gzip.compress(b"A\tB\t1\n" * 99, mtime=0)[:-9]])
def test_refuses_empty_files_other_encodings_and_cut_archives(tmp_path, name, content):
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(StudyError, match="^bad"):
        READERS[name](path)


@settings(FEW, max_examples=60)
@given(st.sampled_from(sorted(GOOD)), st.data())
def test_a_cut_or_spoilt_file_gives_instances_or_a_study_error(tmp_path_factory, name, data):
    reader, content, expected = GOOD[name]
    content = gzip.compress(content.encode(), mtime=0) if data.draw(st.booleans()) else content.encode()
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    spoilt = data.draw(
        st.sampled_from([content[:end], content[:start] + data.draw(st.binary(max_size=9)) + content[end:]])
    )
    path = tmp_path_factory.mktemp("spoilt") / "bad"
    path.write_bytes(spoilt)
    try:
        found = reader(path)
    except StudyError as error:
        assert str(error).startswith("bad")
    else:
        assert found and all(isinstance(one, Pair) or one.sentences for one in found)
        assert spoilt != content or found == expected


@FEW
@given(st.lists(st.tuples(TEXTS, TEXTS, st.integers(0, 40)), min_size=1, max_size=9))
def test_what_is_written_is_read_again(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("written")
    scored = [Pair(str(i), one, two, n / 10) for i, (one, two, n) in enumerate(rows, 1)]
    table = "".join(f"{p.id}\t{p.first}\t{p.second}\t{p.label}\n" for p in scored)
    official = "".join(f"{p.first}\t{p.second}\t{p.label}\n" for p in scored)
    labelled = [Pair(p.id, p.first, p.second, tables.YES_NO[n % 2]) for p, (_, _, n) in zip(scored, rows, strict=True)]
    lines = [json.dumps({"id": p.id, "sentence1": p.first, "sentence2": p.second, "label": p.label}) for p in labelled]
    ideal = "".join(f"{int(p.label == 'yes')}\t{p.first}\t{p.second}\n" for p in labelled)
    inferred = [Pair(p.id, p.first, p.second, "entailment") for p in labelled]
    claims = [nli(pairID=p.id, sentence1=p.first, sentence2=p.second, gold_label=p.label) for p in inferred]
    for reader, content, expected in (
        (tables.read_biosses, BIOSSES + table, scored),
        (tables.read_medsts, official, scored),
        (tables.read_yesno, table_of(labelled), labelled),
        (tables.read_yesno_ideal, IDEAL + ideal, labelled),
        (tables.read_pubmedqa, "\n".join(lines), labelled),
        (tables.read_mednli, "".join(claims), inferred),
    ):
        (folder / "file").write_text(content, encoding="utf-8")
        found = reader(folder / "file")
        assert found == expected


@FEW
@given(st.lists(st.tuples(UNQUOTED, st.lists(UNQUOTED, min_size=1, max_size=3), UNQUOTED), min_size=1, max_size=9))
def test_csv_is_read_as_written(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("csv")
    labelled = [Labelled(str(i), ("\n".join(lines),), (label,)) for i, (_, lines, label) in enumerate(rows, 1)]
    asked = [Labelled(d.id, (row[0], d.sentences[0]), d.labels) for d, row in zip(labelled, rows, strict=True)]
    content = to_csv(["id", "text", "label"], [[d.id, *d.sentences, *d.labels] for d in labelled])
    (folder / "table").write_text(content, encoding="utf-8", newline="")
    assert tables.read_docclsjp(folder / "table") == labelled
    table = [["t", f"{d.sentences[0]}\n「{d.sentences[1]}」", "other", *d.labels, "B"] for d in asked]
    content = to_csv(["tag", "question", "optionA", "optionB", "answer"], table)
    (folder / "table").write_text(content, encoding="utf-8", newline="")
    assert tables.read_jmed(folder / "table") == asked


def to_csv(header: list[str], rows: list[list[str]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([header, *rows])
    return text.getvalue()


def table_of(labelled: list[Pair]) -> str:
    return "".join(f"{p.id}\t{p.first}\t{p.second}\t{p.label}\n" for p in labelled)


@FEW
@given(st.lists(st.tuples(st.sampled_from("01"), st.sampled_from("ABC"), TEXTS), min_size=1, max_size=12))
def test_candidates_are_grouped_by_their_question(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("candidates") / "test.tsv"
    path.write_text(CANDIDATES + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    found = tables.read_candidates(path)
    assert [(pair.label, pair.first, pair.second) for pair in found] == rows
    assert len({pair.group for pair in found}) == len({question for _, question, _ in rows})
    assert len({(pair.group, pair.first) for pair in found}) == len({pair.group for pair in found})


def read_votes(path) -> dict[str, dict]:
    """The pairs of BIOSSES by id, with the mean of its five annotators' scores."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {
        row["sentence_id"]: row | {"mean": fmean(float(row[f"annotator_{one}"]) for one in "abcde")} for row in rows
    }


def read_pubmedqa_original(path) -> set[Pair]:
    """All questions of PubMedQA in its makers' form, contexts joined by a space."""
    records = json.loads(gzip.decompress(path.read_bytes()))
    return {Pair(id, r["QUESTION"], " ".join(r["CONTEXTS"]), r["final_decision"]) for id, r in records.items()}


def test_made_up_files_have_every_label_in_every_split(tmp_path):
    smoke_texts.write(tmp_path, random.Random(1), smoke_language.Lexicon(1).names)
    votes = read_votes(tmp_path / "sts/biosses/annotation_pairs_scores.tsv")
    whole = read_pubmedqa_original(tmp_path / "qa/pubmedqa/ori_pqal.json.gz")
    for split in ("train", "dev", "test"):
        scored = tables.read_biosses(tmp_path / f"sts/biosses/blurb/{split}.tsv")
        assert len(scored) == 30 and all(votes[pair.id]["mean"] == pytest.approx(pair.label) for pair in scored)
        assert len(tables.read_medsts(tmp_path / f"sts/medsts/{split}.tsv")) == 30
        inferred = tables.read_mednli(tmp_path / f"nli/mednli/mli_{split}_v1.jsonl")
        assert {pair.label for pair in inferred} == set(tables.INFERENCE)
        asked = tables.read_pubmedqa(tmp_path / f"qa/pubmedqa/blurb/{split}.jsonl")
        assert {pair.label for pair in asked} == set(tables.YES_NO_MAYBE) and set(asked) <= whole
        asked = tables.read_yesno(tmp_path / f"qa/bioasq-7b-yesno-blurb/{split}.tsv")
        assert {pair.label for pair in asked} == set(tables.YES_NO)
    for split in ("train", "test"):
        assert len(tables.read_yesno_ideal(tmp_path / f"qa/bioasq-8b-yesno/{split}.tsv")) == 30
        ranked = tables.read_candidates(tmp_path / f"qa/bioasq-reranker/{split}.tsv.gz")
        assert Counter(pair.group for pair in ranked if pair.label == "1") == {str(i): 1 for i in range(1, 11)}
    documents = tables.read_docclsjp(tmp_path / "doccls/docclsjp/docclsjp.csv")
    assert {label for d in documents for label in d.labels} == set(smoke_texts.CATEGORIES)
    for key, (_, _, options) in smoke_texts.JMED.items():
        documents = tables.read_jmed(find_file(tmp_path / f"doccls/jmed-llm/all/{key.upper()}.csv"))
        assert {label for d in documents for label in d.labels} == set(options)
        assert len(take_fold(documents, "test", 1)) == 12
        assert tables.read_jmed(tmp_path / f"doccls/jmed-llm/{key}.csv") == documents[:30]


def test_real_similarity_sets_have_the_printed_counts(real_data):
    rows = read_votes(real_data / "sts/biosses/annotation_pairs_scores.tsv")
    splits = [tables.read_biosses(real_data / f"sts/biosses/blurb/{split}.tsv") for split in ("train", "dev", "test")]
    assert [len(split) for split in splits] == [64, 16, 20]  # gu, table 3
    found = [pair for split in splits for pair in split]
    assert {pair.id: pair.label for pair in found} == pytest.approx({id: row["mean"] for id, row in rows.items()})
    assert len(rows) == 100
    assert all(rows[pair.id]["sentence_2"].split() == pair.second.split() for pair in found)


def test_real_questions_have_the_printed_counts(real_data):
    whole = read_pubmedqa_original(real_data / "qa/pubmedqa/ori_pqal.json.gz")
    folder = real_data / "qa/pubmedqa"
    splits = [tables.read_pubmedqa(folder / f"blurb/{split}.jsonl") for split in ("train", "dev", "test")]
    assert [len(split) for split in splits] == [450, 50, 500]  # gu, table 3
    assert set().union(*splits) == whole and len(whole) == 1000
    truth = json.loads((folder / "test_ground_truth.json").read_text())
    assert bool({pair.id: pair.label for pair in splits[2]} == truth)
    folder = real_data / "qa/bioasq-7b-yesno-blurb"
    splits = [tables.read_yesno(folder / f"{split}.tsv") for split in ("train", "dev", "test")]
    assert [len(split) for split in splits] == [670, 75, 140]  # gu, table 3
    assert [sum(pair.label == "yes" for pair in split) for split in splits] == [552, 62, 94]
    for name, split in zip(("train", "dev", "test"), splits, strict=True):
        ids = (folder / f"splits/{name}_id.tsv").read_text().strip().split(",")
        assert len(ids) == len({pair.id for pair in split} & set(ids))
    (official,) = read_golden(real_data / "qa/bioasq-7b-biobert", "7B_golden.json.gz")
    assert bool({(q["id"], q["exact_answer"]) for q in official} == {(pair.id, pair.label) for pair in splits[2]})
    files = read_golden(real_data / "qa/bioasq-factoid-biobert", "*_golden.json")
    assert len(files) == 15 and sum(map(len, files)) == len({q["id"] for found in files for q in found}) == 393


def read_golden(folder, pattern: str) -> list[list[dict]]:
    """The yes/no questions of each of BioASQ's golden files."""
    texts = [path.read_bytes() for path in sorted(folder.glob(pattern))]
    files = [json.loads(gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text) for text in texts]
    return [[q for q in file["questions"] if q["type"] == "yesno"] for file in files]



def test_real_sets_of_bio_electra_have_the_printed_counts(real_data):
    splits = [tables.read_yesno_ideal(real_data / f"qa/bioasq-8b-yesno/{split}.tsv") for split in ("train", "test")]
    assert [len(split) for split in splits] == [728, 128]  # ozyurt, section 3.1
    assert [sum(pair.label == "yes" for pair in split) for split in splits] == [579, 102]
    ranked = tables.read_candidates(real_data / "qa/bioasq-reranker/test.tsv.gz")
    assert len(ranked) == 9064  # ozyurt, section 3.1
    assert len({pair.group for pair in ranked}) == len({pair.group for pair in ranked if pair.label == "1"}) == 100
    assert sum(pair.label == "1" for pair in ranked) == 117
    assert len(ranked) - len({(pair.group, pair.second) for pair in ranked}) == 73


def test_real_japanese_sets_have_the_counts_of_their_source(real_data):
    folder = real_data / "doccls/jmed-llm"
    for key, size, labels in (("CRADE", 1630, 8), ("RRTNM", 324, 11), ("SMDIS", 15360, 16)):
        documents = tables.read_jmed(find_file(folder / f"all/{key}.csv"))
        assert (len(documents), len({d.labels for d in documents})) == (size, labels)
        assert len(tables.read_jmed(folder / f"{key.lower()}.csv")) == 100
