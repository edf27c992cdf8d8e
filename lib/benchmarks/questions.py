"""Questions to be answered with a span of a text: SQuAD's format, BioASQ in it, BioASQ's golden files."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from lib.benchmarks.instances import Answer, Question, Span
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import AGAIN, read_json

KINDS = {str: "a text", list: "a list", int: "a number", dict: "an object"}
TYPES = ("yesno", "factoid", "list", "summary")
ENTRY = re.compile(r"(.+)[_:]([0-9]{1,6})")  # question and passage in an id: BioBERT writes _001, Bio-ELECTRA :1


class Entry(NamedTuple):
    """A question asked of one context, with its answers there, as SQuAD's format has it."""

    at: str  # its place in the file
    id: str
    question: str
    context: str
    answers: tuple[tuple[str, int], ...]  # text and first character


def read_squad(path: Path) -> list[Question]:
    """Questions of SQuAD v1.1 or of a set in its format, one an entry; ids as in the file.

    JSON: data > paragraphs > context and qas > id, question, answers > text, answer_start (characters from 0).
    StudyError for JSON of another shape, a blank text, an id that comes twice, an entry without answers, an answer
    that is not at its offset. Source: Rajpurkar et al. 2016.
    """
    found = {}
    for entry in squad_entries(show_path(path), read_json(path)):
        if entry.id in found:
            raise StudyError(f"{entry.at}: an id that came before; {AGAIN}")
        if not entry.answers:
            raise StudyError(f"{entry.at}: no answers; {AGAIN}")
        found[entry.id] = merge(entry.id, [entry])
    return list(found.values())


def read_bioasq_squad(*files: Path) -> list[Question]:
    """Factoid questions of BioASQ in SQuAD's format, one for the entries of all its passages.

    An entry's id is `<question>_<number of the passage>`; a passage that holds an answer twice comes twice. The test
    files have no answers: with the golden files of the same questions among the paths, answers and spans are theirs,
    by the rule of read_golden; without, there are none. StudyError as in read_squad, and for an id without a number,
    entries of a question that ask another, a question that the golden files lack. Source: Lee et al. 2020, section 3.3.
    """
    entries: dict[str, dict[int, Entry]] = {}
    batches: dict[str, str] = {}
    golden: dict[str, Question] = {}
    for path in files:
        name, content = show_path(path), read_json(path)
        if isinstance(content, dict) and "questions" in content:
            golden |= {question.id: question for question in read_golden(path)}
            continue
        for entry in squad_entries(name, content):
            parts = ENTRY.fullmatch(entry.id)
            if not parts:
                raise StudyError(f"{entry.at}: expected an id such as 56c073fcef6e394741000020_000; {AGAIN}")
            others = entries.setdefault(parts[1], {})
            if int(parts[2]) in others:
                raise StudyError(f"{entry.at}: an id that came before; {AGAIN}")
            if any(other.question != entry.question for other in others.values()):
                raise StudyError(f"{entry.at}: another question under an id that came before; {AGAIN}")
            others[int(parts[2])] = entry
            batches[parts[1]] = path.name
    if golden and not entries.keys() <= golden.keys():
        lacking = next(id for id in entries if id not in golden)
        raise StudyError(f"{entries[lacking].popitem()[1].at}: not in the golden files; give those of the same batch")
    found = [
        replace(merge(id, [entry for _, entry in sorted(others.items())]), batch=batches[id])
        for id, others in entries.items()
    ]
    if not golden:
        return found
    return [replace(q, answers=(answers := golden[q.id].answers), spans=find_spans(q.passages, answers)) for q in found]


def read_golden(*files: Path) -> list[Question]:
    """Factoid questions of BioASQ's golden files; the passages are the snippets, any synonym of an answer is right.

    JSON: questions > id, type, body, snippets > text, exact_answer (a list of lists of synonyms, or of answers).
    Spans are all places where an answer stands as whole words, upper or lower case alike, from left to right; none
    when it cannot be answered from its snippets. A blank answer is none: 571e4523bb137a4b0c00000c of the fifth batch
    of 4b has no other. StudyError for JSON of another shape, an unknown type, an id that comes twice. Source: BioASQ's
    format of task b, phase B.
    """
    found = {}
    for path in files:
        for at, question in golden_questions(path, "factoid"):
            passages = golden_passages(at, question)
            answers = tuple(dict.fromkeys(filter(None, map(str.strip, flatten(at, question.get("exact_answer"))))))
            if question["id"] in found:
                raise StudyError(f"{at}: an id that came before; {AGAIN}")
            spans = find_spans(passages, answers)
            found[question["id"]] = Question(question["id"], question["body"], passages, answers, spans)
    return list(found.values())


def answerable(questions: Iterable[Question]) -> list[Question]:
    """The questions with an answer in a passage; the others are left out of training and wrong in a test (lee, 3.3)."""
    return [question for question in questions if question.spans]


def read_answers(question: Question, answers: Iterable[Answer]) -> list[str]:
    """The texts of answers, in order."""
    return [question.passages[answer.passage][answer.start : answer.end].strip() for answer in answers]


def find_spans(passages: Iterable[str], answers: Iterable[str]) -> tuple[Span, ...]:
    """Where answers stand in passages as whole words, upper or lower case alike."""
    patterns = [re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)", re.IGNORECASE) for answer in answers]
    found = {
        Span(number, match.start(), match.end())
        for number, passage in enumerate(passages)
        for pattern in patterns
        for match in pattern.finditer(passage)
    }
    return tuple(sorted(found))


def merge(id: str, entries: list[Entry]) -> Question:
    """One question of its entries, a passage each; answers and spans without repetition, in order."""
    spans = [
        Span(number, start, start + len(text)) for number, entry in enumerate(entries) for text, start in entry.answers
    ]
    answers = dict.fromkeys(text for entry in entries for text, _ in entry.answers)
    passages = tuple(entry.context for entry in entries)
    return Question(id, entries[0].question, passages, tuple(answers), tuple(dict.fromkeys(spans)))


def squad_entries(name: str, content) -> Iterator[Entry]:
    """The entries of a file in SQuAD's format; StudyError for another shape or an answer that is not at its offset."""
    number = 0
    for a, article in enumerate(take(name, content, "data", list), start=1):
        for p, paragraph in enumerate(take(f"{name}: article {a}", article, "paragraphs", list), start=1):
            at = f"{name}: article {a}, paragraph {p}"
            context = take(at, paragraph, "context")
            for number, entry in enumerate(take(at, paragraph, "qas", list), start=1):
                place = f"{at}, entry {number}"
                id, question = take(place, entry, "id"), take(place, entry, "question")
                if not (id and question.strip() and context.strip()):
                    raise StudyError(f"{place}: an empty id or a blank text; {AGAIN}")
                yield Entry(place, id, question, context, squad_answers(place, entry, context))
    if not number:
        raise StudyError(f"{name}: no questions in the file; {AGAIN}")


def squad_answers(at: str, entry: dict, context: str) -> tuple[tuple[str, int], ...]:
    answers = []
    for answer in take(at, entry, "answers", list) if "answers" in entry else []:
        text, start = take(at, answer, "text"), take(at, answer, "answer_start", int)
        if not text or start < 0 or not context.startswith(text, start):
            raise StudyError(f"{at}: an answer is not at its offset in the context; {AGAIN}")
        answers.append((text, start))
    return tuple(answers)


def golden_questions(path: Path, kind: str) -> Iterator[tuple[str, dict]]:
    """The questions of one type in a golden file, each with its place; StudyError for JSON of another shape."""
    questions = take(show_path(path), read_json(path), "questions", list)
    if not questions:
        raise StudyError(f"{show_path(path)}: no questions in the file; {AGAIN}")
    for number, question in enumerate(questions, start=1):
        at = f"{show_path(path)}: question {number}"
        if take(at, question, "type") not in TYPES:
            raise StudyError(f"{at}: expected the type {', '.join(TYPES)}; {AGAIN}")
        if not (take(at, question, "id") and take(at, question, "body").strip()):
            raise StudyError(f"{at}: an empty id or a blank question; {AGAIN}")
        if question["type"] == kind:
            yield at, question


def golden_passages(at: str, question: dict) -> tuple[str, ...]:
    """The texts of the snippets of a golden question, in order; none where it has no key for them."""
    snippets = take(at, question, "snippets", list) if "snippets" in question else []
    return tuple(take(at, snippet, "text") for snippet in snippets)


def flatten(at: str, answers) -> list[str]:
    """The texts of an exact answer: a text, a list of texts, or a list of lists of texts."""
    found = []
    for answer in answers if isinstance(answers, list) else [answers]:
        found += answer if isinstance(answer, list) else [answer]
    if not found or not all(isinstance(answer, str) for answer in found):
        raise StudyError(f"{at}: expected texts under exact_answer; {AGAIN}")
    return found


def take(at: str, record, key: str, kind: type = str):
    """A value of a JSON object; StudyError when there is none, or one of another type."""
    value = record.get(key) if isinstance(record, dict) else None
    if not isinstance(value, kind):
        raise StudyError(f"{at}: expected {KINDS[kind]} under {key}; {AGAIN}")
    return value
