"""Disorders in clinical notes from ShARe/CLEF eHealth 2013, task 1, which needs a data use agreement.

The release has the notes in `Task1TrainSetCorpus199/ALLREPORTS` and `Task1TestSetCorpus100/ALLREPORTS`, and their
annotations in `Task1TrainSetGOLD199knowtatorehost` (XML) and `Task1Gold_SN2012/Gold_SN2012` (lines). Source: Suominen
et al. 2013.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from lib.benchmarks import standoff
from lib.benchmarks.instances import Sentence
from lib.benchmarks.standoff import OFFSET, Annotation
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import index_files, open_bytes, parse_xml, read_lines, read_text

FOLDER = "ner/share-clef-2013"
TRAINING = f"{FOLDER}/Task1TrainSetCorpus199/ALLREPORTS", f"{FOLDER}/Task1TrainSetGOLD199knowtatorehost"
# Below the data folder. The user supplies both lists: BLUE's division (4628 and 1075 mentions) is not public.
FILES = {
    "train": (*TRAINING, f"{FOLDER}/train.txt"),
    "dev": (*TRAINING, f"{FOLDER}/dev.txt"),
    "test": (f"{FOLDER}/Task1TestSetCorpus100/ALLREPORTS", f"{FOLDER}/Task1Gold_SN2012/Gold_SN2012"),
}
KIND = "Disease_Disorder"
TAG_KIND = "Disorder"
FILE = re.compile(r"(.*?)(?:\.pipe\.txt|\.txt|\.txt\.knowtator\.xml)")  # of annotations, after the note's name
REMOVED = re.compile(r"\[\*\*.*?\*\*\]")  # a de-identified name or date
RULES = re.compile(r"\|{4}|___|~~")  # drawn lines
RawMention = tuple[str, str, list[str], list[str]]  # its place, type, and the starts and ends of its parts


def read_disorders(
    notes: Path, annotations: Path, names: Path | None = None, left_out: Counter | None = None
) -> list[Sentence]:
    """Read the sentences of a folder's notes, tagged B-Disorder and I-Disorder.

    Every part of a mention is tagged: the first word of its first part with B, all others with I, so that each mention
    counts once. Mentions that overlap a longer one have no tag. `names`: a file that lists the notes to read, one per
    line without .txt, because the release has no division into training and development. As in BLUE, de-identified text
    becomes PATTERN and drawn lines become blank. Raises StudyError as in read_marked_notes.
    """
    return [
        sentence
        for name, text, mentions in read_marked_notes(notes, annotations, names)
        for sentence in standoff.tag_text(blank(text), mentions, name, standoff.BLANK_LINE, left_out)
    ]


def read_marked_notes(
    notes: Path, annotations: Path, names: Path | None = None
) -> Iterator[tuple[str, str, list[Annotation]]]:
    """Yield the name without .txt, the text and the mentions of each note.

    A line of annotations is `note.txt||Disease_Disorder||CUI||start||end`, with a start and end for each further part,
    in characters of the note; the CUI may be `CUI-less`, and is not kept. A note without mentions has an empty file.
    XML is Knowtator's. Raises StudyError if there are no notes, a note has no annotations or is empty, annotations have
    no note, `names` lists an unknown note, a line has another form or type, offsets are outside the note, or parts
    overlap.
    """
    text_paths = {path.name.removesuffix(".txt"): path for path in sorted(notes.glob("*.txt"))}
    if not text_paths:
        raise StudyError(f"no .txt files in {show_path(notes)}; set STUDY_DATA to a folder that holds the release")
    note_names = {line.strip() for _, line in read_lines(names) if line.strip()} if names else {*text_paths}
    if unknown := note_names - text_paths.keys():  # not quoted, because a wrong file given as the list may hold text
        raise StudyError(f"{show_path(notes)}: no note for {len(unknown)} of {len(note_names)} names; check their list")
    files = index_files(annotations.glob("*"), FILE)
    if strays := sorted(files.keys() - text_paths.keys()):
        raise StudyError(f"{show_path(files[strays[0]])}: no note of this name in {show_path(notes)}")
    for name, text_path in text_paths.items():
        if name not in note_names:
            continue
        if name not in files:
            raise StudyError(f"{show_path(text_path)}: no annotations in {show_path(annotations)}")
        text, path = read_text(text_path), files[name]
        if not text.strip():
            raise StudyError(f"{show_path(text_path)}: empty file")
        mentions = read_knowtator(path) if path.suffix == ".xml" else read_pipes(path, name)
        yield name, text, [make_mention(len(text), *mention) for mention in mentions]


def read_pipes(path: Path, name: str) -> Iterator[RawMention]:
    """Yield the mentions in a file of lines. Errors are as in read_marked_notes."""
    for number, line in read_lines(path):
        location = f"{show_path(path)}:{number}"
        cells = line.split("||")
        has_pairs = len(cells) >= 5 and len(cells) % 2
        if not has_pairs or not cells[2] or cells[0] not in (f"{name}.txt", f"{name}.pipe.txt"):
            raise StudyError(f"{location}: expected the note's name, a type, a CUI and pairs of offsets")
        yield location, cells[1], cells[3::2], cells[4::2]


def read_knowtator(path: Path) -> Iterator[RawMention]:
    """Yield the mentions in a Knowtator XML file. Errors are as in read_marked_notes."""
    with open_bytes(path) as file:
        root = parse_xml(show_path(path), file.read())
    classes = {mention.get("id"): mention for mention in root.iter("classMention")}
    for annotation in root.iter("annotation"):
        location = f"{show_path(path)}:{annotation.sourceline}"
        mention = classes.get(annotation.xpath("string(mention[1]/@id)"))
        if mention is None:
            raise StudyError(f"{location}: an annotation of no class")
        starts, ends = ([span.get(edge, "") for span in annotation.iter("span")] for edge in ("start", "end"))
        yield location, mention.xpath("string(mentionClass[1]/@id)"), starts, ends


def make_mention(length: int, place: str, kind: str, starts: list[str], ends: list[str]) -> Annotation:
    """Return a mention in a note of this length. Raises StudyError as in read_marked_notes."""
    if kind != KIND or not starts or not all(map(OFFSET.fullmatch, [*starts, *ends])):
        raise StudyError(f"{place}: expected the type {KIND} and pairs of offsets")
    spans = tuple(sorted(zip(map(int, starts), map(int, ends), strict=True)))
    edges = list(chain.from_iterable(spans))
    has_empty = any(start == end for start, end in spans)
    if has_empty or edges != sorted(edges) or edges[-1] > length:
        raise StudyError(f"{place}: offsets outside the note or parts that overlap")
    return Annotation(TAG_KIND, spans)


def blank(text: str) -> str:
    """Return a note with de-identified text as the word PATTERN and drawn lines as spaces, at the same offsets."""
    text = REMOVED.sub(lambda match: "PATTERN".rjust(len(match[0]))[-len(match[0]) :], text)
    return RULES.sub(lambda match: " " * len(match[0]), text)
