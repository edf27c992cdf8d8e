"""Questions answered by a span of text: SQuAD's format, BioASQ in that format, and BioASQ's golden files."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationError, model_validator

from lib.benchmarks.instances import Answer, Question, Span
from lib.benchmarks.tabular import collect
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import read_text

ENTRY = re.compile(r"(.+)[_:]([0-9]{1,6})")  # question and passage number in an id: BioBERT writes _001, Bio-ELECTRA :1
Filled = Annotated[str, StringConstraints(pattern=r"\S")]


class Checked(BaseModel):
    """A JSON object whose errors quote none of it, because the text may be restricted. Unknown keys are ignored."""

    model_config = ConfigDict(hide_input_in_errors=True, strict=True, frozen=True)


class SquadAnswer(Checked):
    text: Annotated[str, StringConstraints(min_length=1)]
    answer_start: int  # characters from 0


class AskedContext(Checked):
    """A question about one context."""

    id: Filled
    question: Filled
    answers: list[SquadAnswer] = []


class Paragraph(Checked):
    context: Filled
    qas: list[AskedContext]

    @model_validator(mode="after")
    def check_offsets(self):
        for number, entry in enumerate(self.qas):
            for answer in entry.answers:
                if answer.answer_start < 0 or not self.context.startswith(answer.text, answer.answer_start):
                    raise ValueError(f"qas[{number}]: an answer is not at its offset in the context")
        return self


class Article(Checked):
    paragraphs: list[Paragraph]


def flatten_answers(answers) -> list:
    """List the texts of an exact answer: a text, a list of texts, or a list of lists of synonyms; null gives none."""
    answer_list = answers if isinstance(answers, list) else [] if answers is None else [answers]
    return [text for answer in answer_list for text in (answer if isinstance(answer, list) else [answer])]


class GoldenQuestion(Checked):
    id: Filled
    type: Literal["yesno", "factoid", "list", "summary"]
    body: Filled
    exact_answer: Annotated[list[str], BeforeValidator(flatten_answers)] = []

    @model_validator(mode="after")
    def check_answer(self):
        if self.type == "factoid" and not self.exact_answer:
            raise ValueError("expected texts under exact_answer")
        return self


class QuestionFile(Checked):
    """A file of either form: SQuAD's has `data`, a golden file has `questions`."""

    data: list[Article] = []
    questions: list[GoldenQuestion] = []


def read_squad(path: Path) -> list[Question]:
    """Read SQuAD v1.1 or a dataset in its format, one question per entry, with the ids of the file.

    Raises StudyError if the JSON has another shape, a text is blank, an id is repeated, an entry has no answers, or an
    answer is not at its offset. Source: Rajpurkar et al. 2016.
    """

    def questions() -> Iterator[tuple[str, Question]]:
        for location, entry, context in list_contexts(path, parse_questions(path)):
            if not entry.answers:
                raise StudyError(f"{location}: no answers")
            yield location, merge(entry.id, [(entry, context)])

    return collect(path, questions())


def read_bioasq_squad(*files: Path, left_out: Counter | None = None) -> list[Question]:
    """Read BioASQ's factoid questions in SQuAD's format, merging the entries of a question's passages.

    An entry's id is `<question>_<passage number>`; a passage that holds an answer twice appears twice. Test files have
    no answers. If `files` include the golden files of the same questions, the answers come from them, and the spans are
    all places where an answer occurs in a passage; otherwise there are none. Raises StudyError if the JSON has another
    shape, a text is blank, an answer is not at its offset, an id is repeated or has no passage number, the entries of a
    question are worded differently, or the golden files lack a question. Source: Lee et al. 2020, section 3.3.
    """
    contents = {path: parse_questions(path) for path in files}
    golden_answers = collect_golden(contents, left_out)
    questions: dict[str, dict[int, tuple[AskedContext, str]]] = {}
    batches: dict[str, str] = {}
    for path, content in contents.items():
        for location, entry, context in list_contexts(path, content):
            match = ENTRY.fullmatch(entry.id)
            if not match:
                raise StudyError(f"{location}: expected an id such as 56c073fcef6e394741000020_000")
            if golden_answers and match[1] not in golden_answers:
                raise StudyError(f"{location}: not in the golden files; give those of the same batch")
            entries = questions.setdefault(match[1], {})
            if int(match[2]) in entries:
                raise StudyError(f"{location}: an id that came before")
            if any(other.question != entry.question for other, _ in entries.values()):
                raise StudyError(f"{location}: another question under an id that came before")
            entries[int(match[2])] = entry, context
            batches[match[1]] = path.name
    return [
        merge(id, [entry for _, entry in sorted(entries.items())], batches[id], golden_answers.get(id))
        for id, entries in questions.items()
    ]


def collect_golden(contents: dict[Path, QuestionFile], left_out: Counter | None = None) -> dict[str, tuple[str, ...]]:
    """Return the answers of the factoid questions in BioASQ's golden files, by id; any synonym of an answer is right.

    Blank answers are dropped; 571e4523bb137a4b0c00000c of the fifth batch of 4b has no others. Raises StudyError if an
    id is repeated. Source: BioASQ's format of task b, phase B.
    """
    factoids: dict[str, tuple[str, ...]] = {}
    for path, content in contents.items():
        for number, question in enumerate(content.questions):
            if question.type != "factoid":
                continue
            if question.id in factoids:
                raise StudyError(f"{show_path(path)}: questions[{number}]: an id that came before")
            answers = [answer.strip() for answer in question.exact_answer]
            factoids[question.id] = tuple(dict.fromkeys(filter(None, answers)))
            if left_out is not None:
                left_out["blank answers"] += answers.count("")
    return factoids


def answerable(questions: Iterable[Question]) -> list[Question]:
    """Return the questions with an answer in a passage.

    The others are left out of training and count as wrong in a test (lee, 3.3).
    """
    return [question for question in questions if question.spans]


def read_answers(question: Question, answers: Iterable[Answer]) -> list[str]:
    """Return the texts of answers, in order."""
    return [question.passages[answer.passage][answer.start : answer.end].strip() for answer in answers]


def find_spans(passages: Iterable[str], answers: Iterable[str]) -> tuple[Span, ...]:
    """Return where answers occur in passages as whole words, ignoring case."""
    patterns = [re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)", re.IGNORECASE) for answer in answers]
    spans = {
        Span(number, match.start(), match.end())
        for number, passage in enumerate(passages)
        for pattern in patterns
        for match in pattern.finditer(passage)
    }
    return tuple(sorted(spans))


def parse_questions(path: Path) -> QuestionFile:
    """Parse a file of either form. Raises StudyError, in one line with the place, if it has another form."""
    try:
        content = QuestionFile.model_validate_json(read_text(path))
    except ValidationError as error:
        first_error = error.errors(include_input=False, include_url=False)[0]
        field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first_error["loc"]).lstrip(".")
        message = first_error["msg"].removeprefix("Value error, ")
        raise StudyError(f"{show_path(path)}: {field + ': ' if field else ''}{message}") from None
    if not content.questions and not any(paragraph.qas for article in content.data for paragraph in article.paragraphs):
        raise StudyError(f"{show_path(path)}: no questions under data or questions")
    return content


def list_contexts(path: Path, content: QuestionFile) -> Iterator[tuple[str, AskedContext, str]]:
    """Yield the entries of a file in SQuAD's format, each with its place and its context."""
    for article_number, article in enumerate(content.data):
        for paragraph_number, paragraph in enumerate(article.paragraphs):
            for entry_number, entry in enumerate(paragraph.qas):
                yield (
                    f"{show_path(path)}: data[{article_number}].paragraphs[{paragraph_number}].qas[{entry_number}]",
                    entry,
                    paragraph.context,
                )


def merge(
    id: str, entries: list[tuple[AskedContext, str]], batch: str = "", golden: tuple[str, ...] | None = None
) -> Question:
    """Merge entries, one per passage, into one question; answers and spans are in order and without duplicates.

    `golden`: answers to take, with all places where they occur, instead of those of the entries.
    """
    question, passages = entries[0][0].question, tuple(context for _, context in entries)
    if golden is not None:
        return Question(id, question, passages, golden, find_spans(passages, golden), batch)
    spans = [
        Span(number, answer.answer_start, answer.answer_start + len(answer.text))
        for number, (entry, _) in enumerate(entries)
        for answer in entry.answers
    ]
    answers = dict.fromkeys(answer.text for entry, _ in entries for answer in entry.answers)
    return Question(id, question, passages, tuple(answers), tuple(dict.fromkeys(spans)), batch)
