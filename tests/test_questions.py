"""Tests of questions answered by a span: where the spans are, and that passages of one question come together.

test_formats.py tests that every format is read as written, and the messages about damaged files.
"""

import hashlib
from collections import Counter
from functools import partial

import pytest
from conftest import each
from golden import golden, read_golden, squad, write

from lib.benchmarks import questions, registry
from lib.benchmarks.instances import Question, Span
from lib.errors import StudyError


def read(reader, folder, *contents: str, **options) -> list[Question]:
    files = [write(folder / (f"bad{i}" if i else "bad"), content) for i, content in enumerate(contents)]
    return reader(*files, **options)


read_bioasq = partial(read, questions.read_bioasq_squad)


def test_the_batch_of_a_bioasq_question_is_its_file(tmp_path):
    first, second = squad(("q1_000", "What?", "Here.", [])), squad(("q3:1", "Why?", "So.", None))
    assert read_bioasq(tmp_path, first, second) == [
        Question("q1", "What?", ("Here.",), (), (), "bad"),
        Question("q3", "Why?", ("So.",), (), (), "bad1"),
    ]


def test_golden_files_answer_the_questions_of_a_test(tmp_path):
    tests = squad(("q1_000", "What?", "Aspirin helps.", None), ("q2_000", "Where?", "Here.", None))
    gold = golden(
        ("q2", "Where?", ["x"], [["Oxford"]]), ("q1", "What?", ["y"], [["aspirin", "ASA"]]), ("q3", "?", [], ["z"])
    )
    examples = read_bioasq(tmp_path, tests, gold)
    assert examples == [
        Question("q1", "What?", ("Aspirin helps.",), ("aspirin", "ASA"), (Span(0, 0, 7),), "bad"),
        Question("q2", "Where?", ("Here.",), ("Oxford",), (), "bad"),
    ]
    assert questions.answerable(examples) == examples[:1]
    with pytest.raises(StudyError, match=r"^bad: data\[0\]\.paragraphs\[1\]\.qas\[0\]: not in the golden files"):
        read_bioasq(tmp_path, tests, golden(("q1", "What?", [], [["aspirin"]])))


@each(
    "exact, answers, spans",
    [
        ([["IL-2", "interleukin 2"]], ("IL-2", "interleukin 2"), ((0, 0, 4), (1, 4, 8))),  # not the IL-2 of IL-2R
        (["p53"], ("p53",), ()),  # in xp53 only
        ([["IL-2"], ["il-2 AND"]], ("IL-2", "il-2 AND"), ((0, 0, 4), (0, 0, 8), (1, 4, 8))),
        ([[" and ", "and", ""]], ("and",), ((0, 5, 8),)),
        ([["(1.5%)"]], ("(1.5%)",), ((1, 9, 15),)),
    ],
)
def test_answers_are_found_as_whole_words_in_any_case(tmp_path, exact, answers, spans):
    texts = ["IL-2 and IL-2R, xp53", "an, il-2 (1.5%)"]
    passages = squad(*((f"q_{number}", "What?", text, None) for number, text in enumerate(texts)))
    examples = read_bioasq(tmp_path, passages, golden(("q", "What?", [], exact)), left_out=(left_out := Counter()))
    assert left_out == {"blank answers": sum(not answer.strip() for answer in questions.flatten_answers(exact))}
    found = tuple(Span(*span) for span in sorted(spans))
    assert examples == [Question("q", "What?", tuple(texts), answers, found, "bad")]


def test_only_factoid_questions_of_golden_files_are_read(tmp_path):
    first = golden(("q1", "Is it?", ["A"], "yes", "yesno"), ("q2", "What?", [], ["A"]))
    second = golden(("q3", "Who?", ["B"], [["b"]]))
    assert read(read_golden, tmp_path, first, second) == [("q2", ("A",)), ("q3", ("b",))]


def test_a_question_in_two_files_is_refused(tmp_path):
    entry = squad(("q_1", "A?", "B", []))
    with pytest.raises(StudyError, match=r"^bad1: data\[0\]\.paragraphs\[0\]\.qas\[0\]: an id that came before"):
        read_bioasq(tmp_path, entry, entry)
    gold = golden(("q", "What?", [], ["x"]))
    with pytest.raises(StudyError, match=r"^bad1: questions\[0\]: an id that came before"):
        read(read_golden, tmp_path, gold, gold)


def test_real_tests_of_biobert_have_the_printed_counts(real_data):
    form = real_data / "qa/bioasq-factoid-biobert"
    sums = dict(reversed(line.split()) for line in (form / "SHA1.txt").read_text().splitlines() if line.strip())
    total, pairs, answerable = [], [], []
    for year in (4, 5, 6):
        tests = [form / f"BioASQ-test-factoid-{year}b-{batch}.json" for batch in range(1, 6)]
        assert all(hashlib.sha1(path.read_bytes()).hexdigest() == sums[f"*{path.name}"] for path in tests)
        gold = [form / f"{year}B{batch}_golden.json" for batch in range(1, 6)]
        biobert = questions.read_bioasq_squad(*tests, *gold)
        assert bool({q.id: q.answers for q in biobert} == dict(read_golden(*gold)))
        total.append(len(biobert))
        pairs.append(sum(len(q.passages) for q in biobert))
        answerable.append(len(questions.answerable(biobert)))
        dataset = registry.lookup(f"bioasq-{year}b-factoid").at(real_data)
        assert set(dataset.score(dataset.load("test"), [[] for _ in biobert]).values()) == {0}  # one has no answer
    assert total == [161, 150, 161]  # lee, table 3
    assert pairs == [652, 495, 525]
    assert answerable == [116, 118, 122]


def test_real_training_sets_and_squad_have_the_counts_of_their_sources(real_data):
    seven = real_data / "qa/bioasq-7b-biobert"
    train = questions.read_bioasq_squad(seven / "BioASQ-train-factoid-7b.json.gz")
    assert (len(train), sum(len(q.passages) for q in train), len(questions.answerable(train))) == (530, 4231, 530)
    test = questions.read_bioasq_squad(seven / "BioASQ-test-factoid-7b.json", seven / "7B_golden.json.gz")
    assert (len(test), sum(len(q.passages) for q in test), len(questions.answerable(test))) == (162, 512, 122)
    eight = real_data / "qa/bioasq-8b-factoid/dev.json"
    assert len(questions.read_squad(eight)) == 1809  # ozyurt, section 3.1
    assert len(questions.read_bioasq_squad(eight)) == 214
    dev = questions.read_squad(real_data / "qa/squad-v1.1-dev-derived/dev-v1.1.derived.json.gz")
    assert len(dev) == len(questions.answerable(dev)) == 10570
