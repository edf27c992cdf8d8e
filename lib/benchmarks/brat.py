"""Tagged sentences from BRAT's standoff files: a text `x.txt`, and its annotations `x.ann`.

Source: https://brat.nlplab.org/standoff.html
"""

import re
from collections import Counter
from pathlib import Path

from lib.benchmarks import standoff
from lib.benchmarks.instances import Mention, Sentence
from lib.errors import StudyError
from lib.places import show_path
from lib.reading import read_lines, read_text

ID = re.compile(r"[TREAMN]\S*[0-9]|\*|#\S*")  # of a line; the first letter gives the kind of annotation
IN_PARTS = "entities in several parts"
ASIDE = re.compile(r"(?i)\..*|(?:readme|licen[cs]e|citation)(?:\.\w+)*|.*\.(?:md|pdf|conf|py|ya?ml)")  # not data
OTHERS = {  # first letter of a line -> kind of annotation
    "R": "relations", "*": "relations", "E": "events", "A": "attributes", "M": "attributes", "N": "concept ids",
    "#": "comments",
}  # fmt: skip


def read_brat(folder: Path, left_out: Counter | None = None) -> list[Sentence]:
    """Read the sentences of a folder's texts, sorted by name, each with its text's name as `document`.

    Hidden files are skipped, and so is a README.txt or the like without annotations (ASIDE).
    `left_out` counts entities in several parts, entities that overlap a longer one, and all annotations besides
    entities. Raises StudyError if a text has no annotations, annotations have no text, there is no text, a line has
    another form, or an entity is not at its offsets.
    """
    left_out = Counter() if left_out is None else left_out
    texts, annotations = ({path.stem: path for path in folder.glob(f"[!.]*{end}")} for end in (".txt", ".ann"))
    for name in sorted(texts.keys() ^ annotations.keys()):
        if name in annotations:
            raise StudyError(f"{show_path(annotations[name])}: no {name}.txt beside it")
        if not ASIDE.fullmatch(f"{name}.txt"):
            hint = "an empty file says that nothing is marked"
            raise StudyError(f"{show_path(texts[name])}: no {name}.ann beside it; {hint}")
        del texts[name]
    if not texts:
        raise StudyError(f"{show_path(folder)}: no .txt file in it")
    sentences = []
    for name in sorted(texts):
        text = read_text(texts[name])
        mentions = read_entities(annotations[name], text, left_out)
        try:
            sentences += standoff.tag_text(text, mentions, name, left_out=left_out)
        except StudyError as error:
            raise StudyError(f"{show_path(annotations[name])}: {error}") from None
    return sentences


def read_entities(path: Path, text: str, left_out: Counter) -> list[Mention]:
    """Read the entities of a text that are in one part; errors and `left_out` are as in read_brat."""
    mentions = []
    for number, line in read_lines(path):
        location = f"{show_path(path)}:{number}"
        if not line.strip():
            continue
        name, kind_and_spans, words = (*line.split("\t", 2), "", "")[:3]  # a line may have fewer cells
        if not ID.fullmatch(name):
            raise StudyError(f"{location}: expected a line of BRAT, which begins with T1 or {', '.join(OTHERS)}")
        if name[0] != "T":
            left_out[OTHERS[name[0]]] += 1
            continue
        if ";" in kind_and_spans:
            left_out[IN_PARTS] += 1
            continue
        try:
            kind, first, last = kind_and_spans.split()
        except ValueError:
            raise StudyError(f"{location}: expected 'T1<TAB>type start end<TAB>text'") from None
        mentions.append(Mention(name, kind, *standoff.find_span(location, text, first, last, words)))
    return mentions
