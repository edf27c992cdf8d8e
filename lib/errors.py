"""The one exception that a person is meant to read."""

import difflib
from collections.abc import Iterable


class StudyError(Exception):
    """Bad input: the message names the file, line or record, what is wrong, and what to do."""


def unknown(kind: str, name: str, known: Iterable[str]) -> StudyError:
    """A StudyError for a key that does not exist, with the nearest names that do."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    return StudyError(f"unknown {kind} '{name}': {hint}")
