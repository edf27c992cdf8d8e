"""Derived corpus files, made from pinned public files where nobody has to copy them."""

from collections.abc import Callable
from fnmatch import fnmatch
from pathlib import Path

from lib import artefacts, repositories
from lib.corpora import made, readers
from lib.errors import StudyError
from lib.places import show_path
from lib.study import params


def make(path: Path, entry, data: Path, check: Callable[[Path], None], reachable: bool = True) -> None:
    """Write the file of an entry of the manifest (downloads.Made) that has a conversion, below the data folder.

    Whole and such that `check` does not refuse it, or not there and a StudyError. The public files stay in `raw/`,
    and with those that are there a file is made where their host is not `reachable`.
    """
    ids, keys = set(), set()
    for other in entry.without:
        if not (data / other).exists():
            raise StudyError(f"{show_path(path)}: needs {other}: make that first")
        for document in readers.READERS[reader_of(other)](data / other):
            ids.add(document.id)
            keys.add(made.find_key(document.text))
    files = (
        (f"{origin.repository}/{name}", content)
        for origin in entry.origins
        for name, content in repositories.read_files(data / "raw", origin, reachable)
    )
    records = made.CONVERSIONS[entry.conversion](files)
    if entry.path.endswith(".tsv.gz"):
        records = made.choose_citations(records, ids - {""}, keys - {""})
    if entry.part_words:
        records = made.take_part(records, entry.part, entry.part_words)
    with artefacts.whole_file(path) as temporary:
        try:
            made.write_records(records, temporary, entry.path)
        except (KeyError, ValueError, TypeError, SyntaxError) as error:  # SyntaxError: lxml's, of XML
            raise StudyError(f"{show_path(path)}: a public file has another form ({error!r:.100})") from None
        check(temporary)


def reader_of(path: str) -> str:
    """The reader of the first source that reads a file of that name."""
    sources = [params.load("sources", key) for key in params.keys("sources")]
    return next(source.reader for source in sources if fnmatch(path, source.files))
