"""The one exception that a person is meant to read."""

import difflib
import sys
from collections.abc import Iterable

TOO_LITTLE_MEMORY = "too little memory: end other programs, or ask for fewer jobs at once (--cores 1)"
WITHOUT_MEMORY = (
    "MemoryError",
    "allocate memory",
    "enough memory",
    "out of memory",
    "failed to map segment",
    "bad_alloc",
)


class StudyError(Exception):
    """Bad input: the message names the file, line or record, what is wrong, and what to do."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows under a cell in place of a traceback."""
        return [f"error: {self}"]


def says_memory(text: str) -> bool:
    """Whether the words of an error, its name among them, are those of a lack of memory."""
    return any(words in text for words in WITHOUT_MEMORY)


def show_uncaught(kind: type[BaseException], error: BaseException, trace) -> None:
    """In place of sys.excepthook: one line where memory is what was lacking, also while packages are imported."""
    if says_memory(f"{kind.__name__}: {error}"):
        print(f"error: {TOO_LITTLE_MEMORY}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def unknown(kind: str, name: str, known: Iterable[str]) -> StudyError:
    """A StudyError for a key that does not exist, with the nearest names that do."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    return StudyError(f"unknown {kind} '{name}': {hint}")
