"""The one exception written for users, and advice when memory runs out."""

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
WITHOUT_GPU_MEMORY = ("CUDA out of memory", "CUDA error: out of memory", "MPS backend out of memory")


class StudyError(Exception):
    """Bad input: the message names the file, line or record, what is wrong, and what to do."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows under a cell instead of a traceback."""
        return [f"error: {self}"]


def explain_error(text: str) -> str:
    """Return the text of an error, with advice added if GPU memory ran out, or replaced by advice if memory did."""
    if any(phrase in text for phrase in WITHOUT_GPU_MEMORY):
        return f"{text} (a smaller micro_batch or batch size needs less memory)"
    return TOO_LITTLE_MEMORY if any(phrase in text for phrase in WITHOUT_MEMORY) else text


def show_uncaught(kind: type[BaseException], error: BaseException, trace) -> None:
    """Print an uncaught error, as one line if memory ran out, even during imports; replaces sys.excepthook."""
    message = f"{kind.__name__}: {error}"
    if (explanation := explain_error(message)) != message:
        print(f"error: {explanation}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def unknown(kind: str, name: str, known: Iterable[str]) -> StudyError:
    """Return a StudyError for an unknown key, with the nearest known names."""
    known = sorted(known)
    suggestions = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(suggestions)}?" if suggestions else f"known: {', '.join(known) or 'none'}"
    return StudyError(f"unknown {kind} '{name}': {hint}")
