"""Concepts and relations in clinical notes from the i2b2/VA 2010 release, which needs a data use agreement.

The training folders are `concept_assertion_relation_training_data/beth` and `.../partners`, each with `txt/`,
`concept/` and `rel/`. The test folders are `test_data`, with texts in it or in its `txt/`, and
`reference_standard_for_test_data`, with `concepts/` and `rel/`. The readers take all folders of a split together. A
document has three files: `x.txt`, `x.con`, `x.rel`. Source: Uzuner et al. 2011.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from lib.benchmarks.instances import Mention, Relation, Sentence
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import index_files, read_lines

TYPES = ("problem", "test", "treatment")
LABELS = ("TrIP", "TrWP", "TrCP", "TrAP", "TrNAP", "TeRP", "TeCP", "PIP")
NO_RELATION = "false"  # BLUE's name for it
WORD = re.compile(r"^(?=\s)|\S+")  # a space at the beginning of a line gives an empty first word
PLACE = r'c="(.*)" ([0-9]{1,6}):([0-9]{1,6}) ([0-9]{1,6}):([0-9]{1,6})'
CONCEPT = re.compile(PLACE + r'\|\|t="([a-z]+)"')
RELATION = re.compile(PLACE + r'\|\|r="([A-Za-z]+)"\|\|' + PLACE)
Place = tuple[int, int, int]  # a concept's line, first word and last word, counted from 0


@dataclass(frozen=True, slots=True)
class Note:
    """A document: its lines, the (start, end) of each line's words in characters, and its annotations by place.

    `concepts`: offsets are in characters of the line; an id is `l` and the line number in x.con, from 0. `relations`:
    the labels of two concepts, in the order of x.rel.
    """

    name: str
    lines: list[str]
    words: list[list[tuple[int, int]]]
    concepts: dict[Place, Mention]
    relations: dict[frozenset[Place], list[str]]


def read_concepts(*folders: Path) -> list[Sentence]:
    """Read the lines of notes as sentences, tagged with the types problem, test and treatment.

    In x.txt each line is a sentence, and spaces separate words. Lines of x.con are `c="text" line:word
    line:word||t="type"`: lines count from 1 and words from 0, the last word is included, and the text is in lower case.
    A note without concepts has an empty x.con. Raises StudyError if a file is missing, a text is empty, a line has
    another form, place or text, concepts overlap, or two folders have a file of the same name.
    """
    return [sentence for note in read_concept_notes(folders, relations=False) for sentence in tag_note(note)]


def read_relations(*folders: Path) -> list[Relation]:
    """Read the pairs of concepts in one line, labelled with their relations in x.rel, or with `false`.

    Lines of x.rel are `c=...||r="TrAP"||c=...`, each c as in x.con; the order of the two means nothing. A pair with
    several relations yields an instance for each, with a number after its id. As in BLUE's code, pairs that no label
    can relate are included (test and treatment, two treatments, two tests). Raises StudyError as in read_concepts, and
    if a label is unknown, or a relation has an unknown concept or concepts of two lines. Concepts may overlap. Source:
    Peng et al. 2019 (BLUE), blue/bert/create_i2b2_bert.py.
    """
    return [relation for note in read_concept_notes(folders) for relation in pair_concepts(note)]


def read_concept_notes(folders: tuple[Path, ...], relations: bool = True) -> Iterator[Note]:
    """Yield the documents of folders, sorted by name. Raises StudyError as in read_concepts."""
    kinds = [gather_files(folders, ".txt", "txt", "."), gather_files(folders, ".con", "concept", "concepts")]
    if relations:
        kinds.append(gather_files(folders, ".rel", "rel"))
    for name in sorted(set().union(*kinds)):
        if not all(name in files for files in kinds):
            raise StudyError(f"{', '.join(map(show_path, folders))}: {name} lacks one of .txt, .con and .rel")
        text, concepts, *related = (files[name] for files in kinds)
        lines = [line for _, line in read_lines(text)]
        if not any(line.strip() for line in lines):
            raise StudyError(f"{show_path(text)}: empty file")
        words = [[word.span() for word in WORD.finditer(line)] for line in lines]
        note = Note(name, lines, words, {}, {})
        add_concepts(note, concepts)
        for path in related:
            add_relations(note, path)
        yield note


def gather_files(folders: tuple[Path, ...], end: str, *subfolders: str) -> dict[str, Path]:
    """Return the files with a suffix, keyed by name without it; a folder's come from the first subfolder that has any.

    Raises StudyError if there are none, or two of one name.
    """
    paths = []
    for folder in folders:
        files = (list((folder / name).glob(f"*{end}")) for name in subfolders)
        paths += next(filter(None, files), [])
    if not paths:
        folder_names = ", ".join(map(show_path, folders))
        raise StudyError(f"no {end} files in {folder_names}; set STUDY_DATA to a folder that holds the release")
    return index_files(paths, re.compile(f"(.*){re.escape(end)}"))


def add_concepts(note: Note, path: Path) -> None:
    """Add the concepts of a .con file to a note."""
    for number, location, match in match_lines(path, CONCEPT, TYPES, "a concept of type"):
        place = find_words_at(location, note, match.groups()[:5])
        if place in note.concepts:
            raise StudyError(f"{location}: the concept is on an earlier line too")
        line, first, last = place
        words = note.words[line]
        note.concepts[place] = Mention(f"l{number - 1}", match[6].upper(), words[first][0], words[last][1])


def add_relations(note: Note, path: Path) -> None:
    """Add the relations of a .rel file to a note, which must already have its concepts."""
    for _, location, match in match_lines(path, RELATION, LABELS, "a relation of label"):
        first_place = find_words_at(location, note, match.groups()[:5])
        second_place = find_words_at(location, note, match.groups()[6:])
        both_known = first_place in note.concepts and second_place in note.concepts
        if not both_known or first_place[0] != second_place[0] or first_place == second_place:
            raise StudyError(f"{location}: expected two concepts of one line of the text")
        note.relations.setdefault(frozenset((first_place, second_place)), []).append(match[6])


def match_lines(
    path: Path, form: re.Pattern, names: tuple[str, ...], what: str
) -> Iterator[tuple[int, str, re.Match[str]]]:
    """Yield the number, `file:line` and match of each line. Raises StudyError for another form or an unknown name."""
    for number, line in read_lines(path):
        location = f"{show_path(path)}:{number}"
        match = form.fullmatch(line.strip())
        if not match or match[6] not in names:
            raise StudyError(f"{location}: expected {what} {', '.join(names)}")
        yield number, location, match


def find_words_at(place: str, note: Note, cells: tuple[str, ...]) -> Place:
    """Return the place that `text line:word line:word` points at. Raises StudyError if the text is not there."""
    concept_text, *numbers = cells
    line, first, line_again, last = map(int, numbers)
    words = []
    if line == line_again and 1 <= line <= len(note.lines):
        spans = note.words[line - 1][first : last + 1]
        words = [note.lines[line - 1][start:end].lower() for start, end in spans]
    if not words or len(words) <= last - first or words != concept_text.lower().split():
        raise StudyError(f"{place}: words {first} to {last} of line {line} are not the concept's text")
    return line - 1, first, last


def tag_note(note: Note) -> Iterator[Sentence]:
    """Yield the non-blank lines of a note with BIO tags. Raises StudyError if concepts overlap."""
    tags = [["O"] * len(words) for words in note.words]
    for (line_number, first, last), concept in note.concepts.items():
        line_tags, kind = tags[line_number], concept.kind.lower()
        if set(line_tags[first : last + 1]) != {"O"}:
            raise StudyError(f"{note.name}.con: concept {concept.id} overlaps another; leave one of them out")
        line_tags[first : last + 1] = [f"B-{kind}", *[f"I-{kind}"] * (last - first)]
    for line, spans, line_tags in zip(note.lines, note.words, tags, strict=True):
        words = [line[start:end] for start, end in spans]
        if words[:1] == [""]:
            words, line_tags = words[1:], line_tags[1:]
        if words:
            yield Sentence(words, line_tags, note.name)


def pair_concepts(note: Note) -> Iterator[Relation]:
    """Yield the pairs of a note's concepts, as in read_relations."""
    for places in combinations(sorted(note.concepts), 2):
        (line, *_), (other_line, *_) = places
        if line != other_line:
            continue
        first, second = (note.concepts[place] for place in places)
        for number, label in enumerate(note.relations.get(frozenset(places), [NO_RELATION])):
            id = f"{note.name}.{first.id}.{second.id}" + (f".{number}" if number else "")
            yield Relation(id, note.lines[line], first, second, label, document=note.name)
