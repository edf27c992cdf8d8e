"""Pairs of texts with a label or a score: similarity, inference, and questions with what may answer them."""

from collections.abc import Iterable
from pathlib import Path

from lib.benchmarks import questions
from lib.benchmarks.instances import Pair
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import AGAIN, read_columns, read_json_lines, read_lines

YES_NO = ("yes", "no")
YES_NO_MAYBE = ("yes", "no", "maybe")
INFERENCE = ("entailment", "contradiction", "neutral")
TOP_BIOSSES, TOP_MEDSTS = 4, 5  # the highest scores


def read_biosses(path: Path) -> list[Pair]:
    """Sentence pairs of BIOSSES in BLURB's form, each with a score of 0 to 4.

    TSV with the header pair_id, sent1, sent2, score. StudyError for a malformed line, a score out of range, a blank
    text, an id that comes twice. Source: Gu et al. 2021, section 2.3.4.
    """
    rows = read_columns(path, 4, "pair_id sent1 sent2 score")
    return collect(
        path, ((at, Pair(id, one, two, to_score(at, score, TOP_BIOSSES))) for at, (id, one, two, score) in rows)
    )


def read_medsts(path: Path) -> list[Pair]:
    """Sentence pairs of MedSTS (ClinicalSTS 2018), each with a score of 0 to 5.

    TSV as its makers give it, sentence1, sentence2, score without header; or as BLUE has it, more columns of which
    these are the last three, with a header. Ids are BLUE's column `index`, else running numbers from 1. Errors as in
    read_biosses. Source: Wang et al. 2020; Peng et al. 2019.
    """
    names = next(read_lines(path), (1, ""))[1].split("\t")
    headed = names[-3:] == ["sentence1", "sentence2", "score"]
    index = names.index("index") if "index" in names[:-3] and headed else None
    rows = enumerate(read_columns(path, len(names) if headed else 3, " ".join(names) if headed else ""), start=1)
    return collect(
        path,
        (
            (
                at,
                Pair(
                    str(number) if index is None else cells[index], *cells[-3:-1], to_score(at, cells[-1], TOP_MEDSTS)
                ),
            )
            for number, (at, cells) in rows
        ),
    )


def read_mednli(path: Path) -> list[Pair]:
    """Premise and hypothesis of MedNLI, with entailment, contradiction or neutral.

    JSON lines with pairID, sentence1, sentence2, gold_label. StudyError for a line of another shape, another label, a
    blank text, an id that comes twice. Source: Romanov and Shivade 2018.
    """
    keys = ("pairID", "sentence1", "sentence2", "gold_label")
    return collect(path, read_labelled_lines(path, keys, INFERENCE))


def read_pubmedqa(path: Path) -> list[Pair]:
    """Question and abstract without its conclusion of PubMedQA in BLURB's form, with yes, no or maybe.

    JSON lines with id (PMID), sentence1, sentence2, label; errors as in read_mednli. Source: Gu et al. 2021, section
    2.3.6.
    """
    return collect(path, read_labelled_lines(path, ("id", "sentence1", "sentence2", "label"), YES_NO_MAYBE))


def read_yesno(path: Path) -> list[Pair]:
    """Question and snippets of BioASQ in BLURB's form, with yes or no.

    TSV without header: id, question, snippets joined by a space, yes or no. StudyError for a malformed line, another
    label, a blank text, an id that comes twice. Source: Gu et al. 2021, section 2.3.6.
    """
    rows = read_columns(path, 4)
    return collect(path, ((at, Pair(id, one, two, one_of(at, label, YES_NO))) for at, (id, one, two, label) in rows))


def read_yesno_ideal(path: Path) -> list[Pair]:
    """Question and the expert's ideal answer of BioASQ 8b, with yes or no, as Bio-ELECTRA takes them.

    TSV with the header yesno_label (1 is yes, 0 is no), question, ideal_answer; ids are running numbers from 1. Errors
    as in read_yesno. Source: Ozyurt 2020, section 3.1.
    """
    words = {"1": "yes", "0": "no"}
    rows = enumerate(read_columns(path, 3, "yesno_label question ideal_answer"), start=1)
    return collect(
        path,
        ((at, Pair(str(i), one, two, words[one_of(at, label, words)])) for i, (at, (label, one, two)) in rows),
    )


def read_candidates(path: Path) -> list[Pair]:
    """Questions of BioASQ and sentences that may answer them, with 1 where one does, else 0; Bio-ELECTRA's reranker.

    TSV with the header label, question, answer_candidate. Ids are running numbers from 1, `group` is the running
    number of the question by its text. A sentence may stand twice under a question (73 times in the test set). Errors
    as in read_yesno. Source: Ozyurt 2020, section 3.1.
    """
    numbers: dict[str, str] = {}
    found = []
    for i, (at, (label, question, candidate)) in enumerate(read_columns(path, 3, "label question answer_candidate"), 1):
        group = numbers.setdefault(question, str(len(numbers) + 1))
        found.append((at, Pair(str(i), question, candidate, one_of(at, label, ("0", "1")), group)))
    return collect(path, found)


def read_labelled_lines(path: Path, keys: tuple[str, ...], known: Iterable[str]) -> Iterable[tuple[str, Pair]]:
    """Pairs of a file of JSON lines; `keys`: those of the id, the two texts and the label."""
    for at, record in read_json_lines(path):
        *texts, label = (questions.take(at, record, key) for key in keys)
        yield at, Pair(*texts, one_of(at, label, known))


def collect(path: Path, rows: Iterable[tuple[str, Pair]]) -> list[Pair]:
    """The pairs of a file; StudyError where there is none, and with its place for a blank text or a repeated id."""
    found: dict[str, Pair] = {}
    for at, pair in rows:
        if not pair.first.strip() or not pair.second.strip():
            raise StudyError(f"{at}: one of the two texts is blank; {AGAIN}")
        if not pair.id or pair.id in found:
            raise StudyError(f"{at}: an id that is empty or came before; {AGAIN}")
        found[pair.id] = pair
    if not found:
        raise StudyError(f"{show_path(path)}: no pairs in the file; {AGAIN}")
    return list(found.values())


def one_of(at: str, label: str, known: Iterable[str]) -> str:
    if label not in known:
        raise StudyError(f"{at}: expected the label {', '.join(known)}; {AGAIN}")
    return label


def to_score(at: str, text: str, top: int) -> float:
    try:
        score = float(text)
    except ValueError:
        score = -1.0
    if not 0 <= score <= top:
        raise StudyError(f"{at}: expected a score of 0 to {top}; {AGAIN}")
    return score
