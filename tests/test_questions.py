"""Questions to be answered with a span: spans are where the answers stand, passages of a question come together."""

import gzip
import hashlib
import json
import random
from collections import Counter
from functools import partial

import pytest
from conftest import each
from hypothesis import given, settings
from hypothesis import strategies as st

from lib.benchmarks import questions
from lib.benchmarks.instances import Question, Span
from lib.errors import StudyError
from lib.made_up import smoke_language, smoke_texts

FEW = settings(max_examples=25, deadline=None, derandomize=True)
SECRET = "Zebrafish"  # stands in every bad file; no message may quote it


def squad(*entries: tuple) -> str:
    """A file in SQuAD's format of (id, question, context, answers or None, each a text and its offset)."""
    paragraphs = []
    for id, question, context, answers in entries:
        asked = {"id": id, "question": question}
        if answers is not None:
            asked["answers"] = [{"text": text, "answer_start": start} for text, start in answers]
        paragraphs.append({"context": context, "qas": [asked]})
    return json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": paragraphs}]})


def golden(*entries: tuple, kind: str = "factoid") -> str:
    """A golden file of (id, question, snippets, exact answer)."""
    return json.dumps({"questions": [
        {"id": id, "type": kind, "body": body, "snippets": [{"text": text} for text in snippets], "exact_answer": exact}
        for id, body, snippets, exact in entries
    ]})  # fmt: skip


def read(reader, folder, *contents: str | bytes, **options) -> list[Question]:
    files = [folder / (f"bad{i}" if i else "bad") for i in range(len(contents))]
    for path, content in zip(files, contents, strict=True):
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return reader(*files, **options)


read_squad = partial(read, questions.read_squad)
read_bioasq = partial(read, questions.read_bioasq_squad)
read_golden = partial(read, questions.read_golden)


def test_squad_is_read_entry_by_entry(tmp_path):
    content = squad(
        ("a", "Who?", "Ann saw Bob.", [("Bob", 8), ("Bob.", 8), ("Bob", 8)]),
        ("b", "Who saw?", "Ann saw Bob.", [("Ann", 0)]),
    )
    expected = [
        Question("a", "Who?", ("Ann saw Bob.",), ("Bob", "Bob."), (Span(0, 8, 11), Span(0, 8, 12))),
        Question("b", "Who saw?", ("Ann saw Bob.",), ("Ann",), (Span(0, 0, 3),)),
    ]
    assert read_squad(tmp_path, content) == expected
    assert read_squad(tmp_path, gzip.compress(content.encode())) == expected


def test_passages_of_a_bioasq_question_come_together_in_the_order_of_their_numbers(tmp_path):
    first = squad(
        ("q1_002", "What?", "It is aspirin.", [("aspirin", 6)]),
        ("q2_001", "Where?", "In Oxford.", [("Oxford", 3)]),
        ("q1_001", "What?", "Aspirin, or aspirin?", [("aspirin", 12)]),
        ("q1_010", "What?", "An oxide.", []),
    )
    second = squad(("q3:1", "Why?", "So.", None))
    assert read_bioasq(tmp_path, first, second) == [
        Question("q1", "What?", ("Aspirin, or aspirin?", "It is aspirin.", "An oxide."), ("aspirin",),
                 (Span(0, 12, 19), Span(1, 6, 13)), "bad"),
        Question("q2", "Where?", ("In Oxford.",), ("Oxford",), (Span(0, 3, 9),), "bad"),
        Question("q3", "Why?", ("So.",), (), (), "bad1"),  # the batch is the file
    ]  # fmt: skip


def test_golden_files_answer_the_questions_of_a_test(tmp_path):
    tests = squad(("q1_000", "What?", "Aspirin helps.", None), ("q2_000", "Where?", "Here.", None))
    gold = golden(
        ("q2", "Where?", ["x"], [["Oxford"]]), ("q1", "What?", ["y"], [["aspirin", "ASA"]]), ("q3", "?", [], ["z"])
    )
    found = read_bioasq(tmp_path, tests, gold)
    assert found == [
        Question("q1", "What?", ("Aspirin helps.",), ("aspirin", "ASA"), (Span(0, 0, 7),), "bad"),
        Question("q2", "Where?", ("Here.",), ("Oxford",), (), "bad"),
    ]
    assert questions.answerable(found) == found[:1]
    with pytest.raises(StudyError, match=r"^bad: data\[0\]\.paragraphs\[1\]\.qas\[0\]: not in the golden files"):
        read_bioasq(tmp_path, tests, golden(("q1", "What?", [], [["aspirin"]])))


@pytest.mark.parametrize(
    "exact, answers, spans",
    [
        ([["IL-2", "interleukin 2"]], ("IL-2", "interleukin 2"), ((0, 0, 4), (1, 4, 8))),  # not the IL-2 of IL-2R
        (["p53"], ("p53",), ()),  # in xp53 only
        ("il-2r", ("il-2r",), ((0, 9, 14),)),
        ([["IL-2"], ["il-2 AND"]], ("IL-2", "il-2 AND"), ((0, 0, 4), (0, 0, 8), (1, 4, 8))),
        ([[" and ", "and", ""]], ("and",), ((0, 5, 8),)),
        ([[" "]], (), ()),
        ([["(1.5%)"]], ("(1.5%)",), ((1, 9, 15),)),
    ],
)
def test_answers_are_found_as_whole_words_in_any_case(tmp_path, exact, answers, spans):
    texts = ["IL-2 and IL-2R, xp53", "an, il-2 (1.5%)"]
    found = read_golden(tmp_path, golden(("q", "What?", texts, exact)), left_out=(left_out := Counter()))
    assert left_out == {"blank answers": sum(not one.strip() for one in questions.flatten(exact))}
    assert found == [Question("q", "What?", tuple(texts), answers, tuple(Span(*span) for span in sorted(spans)))]


def test_only_factoid_questions_of_golden_files_are_read(tmp_path):
    content = json.loads(golden(("q1", "Is it?", ["A"], "yes"), kind="yesno"))
    content["questions"].append({"id": "q2", "type": "factoid", "body": "What?", "exact_answer": ["A"]})
    other = golden(("q3", "Who?", ["B"], [["b"]]))
    assert read_golden(tmp_path, json.dumps(content), other) == [
        Question("q2", "What?", (), ("A",), ()),  # without snippets, so it cannot be answered
        Question("q3", "Who?", ("B",), ("b",), (Span(0, 0, 1),)),
    ]


P = "bad: data[0].paragraphs[0]"  # of the first context
FIRST = ("q_1", "A?", SECRET, [(SECRET, 0)])
BAD = [
    (read_squad, "", "bad: Invalid JSON: EOF"),
    (read_squad, f'{{"data": ["{SECRET}', "bad: Invalid JSON: EOF"),
    (read_squad, "[" * 100_000, "bad: Invalid JSON: recursion limit"),
    (read_squad, "caf\xe9".encode("latin-1"), "bad:1: not UTF-8"),
    (read_squad, gzip.compress(squad(FIRST).encode(), mtime=0)[:-9], "bad: cut off or damaged"),
    (read_squad, f'["{SECRET}"]', "bad: Input should be an object"),
    (read_squad, f'{{"data": "{SECRET}"}}', "bad: data: Input should be a valid array"),
    (read_squad, f'{{"data": ["{SECRET}"]}}', "bad: data[0]: Input should be an object"),
    (read_squad, '{"data": []}', "bad: no questions"),
    (read_squad, '{"data": [{"paragraphs": [{"context": "A"}]}]}', P + ".qas: Field required"),
    (read_squad, squad(("a", SECRET, ["B"], [])), P + ".context: Input should be"),
    (read_squad, squad((7, SECRET, "B", [])), P + ".qas[0].id: Input should be"),
    (read_squad, squad(("a", " ", SECRET, [])), P + ".qas[0].question: String should match"),
    (read_squad, squad(("a", "A?", SECRET, [])), P + ".qas[0]: no answers"),
    (read_squad, squad(("a", "A?", SECRET, None)), P + ".qas[0]: no answers"),
    (read_squad, squad(FIRST, FIRST), "bad: data[0].paragraphs[1].qas[0]: an id that came before"),
    (read_squad, squad(("a", "A?", SECRET, [(SECRET, 1)])), P + ": qas[0]: an answer is"),
    (read_squad, squad(("a", "A?", SECRET, [(SECRET[-3:], -3)])), P + ": qas[0]: an answer is"),
    (read_squad, squad(("a", "A?", SECRET, [("", 0)])), P + ".qas[0].answers[0].text: String should have"),
    (read_squad, squad(("a", "A?", SECRET, [(SECRET, "0")])), P + ".qas[0].answers[0].answer_start: Input should be"),
    (read_bioasq, squad((SECRET, "A?", "B", None)), P + ".qas[0]: expected an id such as"),
    (read_bioasq, squad(FIRST, ("q_001", "A?", SECRET, None)), "bad: data[0].paragraphs[1].qas[0]: an id that came"),
    (read_bioasq, squad(FIRST, ("q_2", "B?", SECRET, [])), "bad: data[0].paragraphs[1].qas[0]: another question"),
    (read_golden, f'["{SECRET}"]', "bad: Input should be an object"),
    (read_golden, '{"questions": []}', "bad: no questions"),
    (read_golden, golden(("q", SECRET, [], ["x"]), kind=SECRET), "bad: questions[0].type: Input should be 'yesno'"),
    (read_golden, golden(("", SECRET, [], ["x"])), "bad: questions[0].id: String should match"),
    (read_golden, golden(("q", SECRET, [5], ["x"])), "bad: questions[0].snippets[0].text: Input should be"),
    (read_golden, golden(("q", SECRET, [], [])), "bad: questions[0]: expected texts under exact_answer"),
    (read_golden, golden(("q", SECRET, [], None)), "bad: questions[0].exact_answer[0]: Input should be"),
    (read_golden, golden(("q", SECRET, [], [[[SECRET]]])), "bad: questions[0].exact_answer[0]: Input should be"),
    (read_golden, golden(("q", "A?", [], ["x"]), ("q", SECRET, [], ["x"])), "bad: questions[1]: an id that came"),
]  # fmt: skip


@each("reader, content, message", BAD)
def test_names_the_place_of_what_is_wrong_and_quotes_nothing(tmp_path, reader, content, message):
    with pytest.raises(StudyError) as error:
        reader(tmp_path, content)
    assert str(error.value).startswith(message)
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


def test_refuses_a_question_that_comes_in_two_files(tmp_path):
    with pytest.raises(StudyError, match=r"^bad1: data\[0\]\.paragraphs\[0\]\.qas\[0\]: an id that came before"):
        read_bioasq(tmp_path, squad(FIRST), squad(FIRST))
    gold = golden(("q", "What?", [], ["x"]))
    with pytest.raises(StudyError, match=r"^bad1: questions\[0\]: an id that came before"):
        read_golden(tmp_path, gold, gold)


TEXTS = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=30).filter(str.strip)
SPANS = st.tuples(st.integers(0, 29), st.integers(1, 30))


@FEW
@given(st.lists(st.tuples(TEXTS, st.lists(st.tuples(TEXTS, SPANS), min_size=1, max_size=3)), min_size=1, max_size=5))
def test_what_is_written_is_read_again(tmp_path_factory, rows):
    folder, entries, expected, single = tmp_path_factory.mktemp("written"), [], [], []
    for i, (question, passages) in enumerate(rows):
        spans, answers = [], []
        for number, (context, (start, length)) in enumerate(passages):
            start %= len(context)
            answers.append(context[start : start + length])
            spans.append(Span(number, start, start + len(answers[-1])))
            entries.append((f"q{i}_{number:03}", question, context, [(answers[-1], start)]))
            own = (Span(0, *spans[-1][1:]),)
            single.append(Question(entries[-1][0], question, (context,), (answers[-1],), own))
        contexts = tuple(context for context, _ in passages)
        expected.append(Question(f"q{i}", question, contexts, tuple(dict.fromkeys(answers)), tuple(spans), "bad"))
    assert read_bioasq(folder, squad(*entries)) == expected
    assert read_squad(folder, squad(*entries)) == single
    assert questions.answerable(expected) == expected


@FEW
@given(
    st.lists(
        st.tuples(TEXTS, st.lists(TEXTS, max_size=3), st.lists(TEXTS, min_size=1, max_size=3)), min_size=1, max_size=5
    )
)
def test_golden_files_are_read_as_written_and_spans_hold_answers(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("golden")
    entries = [(f"q{i}", body, snippets, [answers]) for i, (body, snippets, answers) in enumerate(rows)]
    found = read_golden(folder, golden(*entries))
    for question, (body, snippets, answers) in zip(found, rows, strict=True):
        assert (question.question, question.passages) == (body, tuple(snippets))
        assert question.answers == tuple(dict.fromkeys(map(str.strip, answers)))
        for passage, start, end in question.spans:
            assert len(question.passages[passage][start:end]) in {len(answer) for answer in question.answers}
        whole = {i for i, text in enumerate(snippets) if text.strip() in question.answers}
        assert whole <= {span.passage for span in question.spans}


GOOD = {
    "squad": (read_squad, squad(("a", "Who?", "Ann saw Bob.", [("Bob", 8)]), ("b", "Who?", "Ann", [("Ann", 0)]))),
    "bioasq": (read_bioasq, squad(("a_1", "Who?", "Ann saw Bob.", [("Bob", 8)]), ("a_2", "Who?", "Ann", None))),
    "golden": (read_golden, golden(("q", "What?", ["A b", "C"], [["b"]]), ("r", "Who?", ["D"], ["E"]))),
}


@settings(FEW, max_examples=60)
@given(st.sampled_from(sorted(GOOD)), st.data())
def test_a_cut_or_spoilt_file_gives_questions_or_a_study_error(tmp_path_factory, name, data):
    reader, content = GOOD[name]
    content = gzip.compress(content.encode(), mtime=0) if data.draw(st.booleans()) else content.encode()
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    patch = data.draw(st.sampled_from([b"null", b"[]", b"{}", b"1"]) | st.binary(max_size=5))
    spoilt = data.draw(st.sampled_from([content[:end], content[:start] + patch + content[end:]]))
    try:
        found = reader(tmp_path_factory.mktemp("spoilt"), spoilt)
    except StudyError as error:
        assert str(error).startswith("bad")
    else:
        assert all(isinstance(question, Question) and question.question for question in found)


def test_made_up_files_are_the_same_each_time_and_can_be_read(tmp_path):
    for folder in ("one", "two"):
        smoke_texts.write(tmp_path / folder, random.Random(1), smoke_language.Lexicon(1).names)
    files = {path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()}
    assert files == {path.relative_to(tmp_path / "two") for path in (tmp_path / "two").rglob("*") if path.is_file()}
    assert all((tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes() for file in files)
    qa = tmp_path / "one/qa"
    for name in ("squad-v1.1/train-v1.1.json", "squad-v1.1-dev-derived/dev-v1.1.derived.json.gz",
                 "bioasq-8b-factoid/train.json", "bioasq-8b-factoid/dev.json"):  # fmt: skip
        assert len(questions.read_squad(qa / name)) == 60
    form = qa / "bioasq-factoid-biobert"
    for year in (4, 5, 6):
        train = questions.read_bioasq_squad(form / f"BioASQ-train-factoid-{year}b.json")
        assert len(questions.answerable(train)) == 30
        tests = [form / f"BioASQ-test-factoid-{year}b-{batch}.json" for batch in range(1, 6)]
        gold = [form / f"{year}B{batch}_golden.json" for batch in range(1, 6)]
        assert [q.answers for q in questions.read_bioasq_squad(*tests)] == 50 * [()]
        assert len(questions.answerable(questions.read_bioasq_squad(*tests, *gold))) == 50
        assert len(questions.answerable(questions.read_golden(*gold))) == 50
    assert len(questions.read_bioasq_squad(qa / "bioasq-7b-biobert/BioASQ-train-factoid-7b.json.gz")) == 30


def test_real_tests_of_biobert_have_the_printed_counts(real_data):
    form = real_data / "qa/bioasq-factoid-biobert"
    sums = dict(reversed(line.split()) for line in (form / "SHA1.txt").read_text().splitlines() if line.strip())
    total, pairs, found = [], [], []
    for year in (4, 5, 6):
        tests = [form / f"BioASQ-test-factoid-{year}b-{batch}.json" for batch in range(1, 6)]
        assert all(hashlib.sha1(path.read_bytes()).hexdigest() == sums[f"*{path.name}"] for path in tests)
        gold = [form / f"{year}B{batch}_golden.json" for batch in range(1, 6)]
        asked, official = questions.read_bioasq_squad(*tests, *gold), questions.read_golden(*gold)
        assert bool({q.id: q.answers for q in asked} == {q.id: q.answers for q in official})
        total.append(len(asked))
        pairs.append(sum(len(q.passages) for q in asked))
        found.append((len(questions.answerable(asked)), len(questions.answerable(official))))
    assert total == [161, 150, 161]  # lee, table 3
    assert pairs == [652, 495, 525]
    assert found == [(116, 114), (118, 115), (122, 119)]  # by BioBERT's abstracts, by the official snippets


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
