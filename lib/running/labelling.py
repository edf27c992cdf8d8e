"""The commands that label new text with a saved model: ./run_all.sh tag and classify."""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tqdm import tqdm

from lib import artefacts
from lib.errors import StudyError
from lib.places import show_path
from lib.study import paths

if TYPE_CHECKING:  # importing torch takes seconds
    from lib.finetuning.formats import NewText
    from lib.finetuning.new_text import Entity
    from lib.finetuning.saved import Saved

WINDOW = 400_000  # characters that are read, sorted by length and predicted together
TO_MAKE = "./run_all.sh evaluate --model ENCODER --datasets ncbi-disease --save FOLDER makes one in FOLDER/ncbi-disease"
FORMS = {"tag": ("jsonl", "tsv", "brat", "pubtator"), "classify": ("jsonl", "tsv")}
HELP = {
    "tag": """\
Finds the entities of new text with a saved tagger: characters, type and probability.

input   a document a line; JSON lines with "text" and perhaps "id" (.jsonl, or lines from a pipe that begin so);
        .csv or .tsv with a column text; PubTator (PMID|t|title, PMID|a|abstract); a folder of .txt files, a document
        each; .gz may follow a name; without a file, standard input
output  jsonl     {"id", "text", "entities": [{"start", "end", "type", "text", "probability"}]}
        tsv       an entity a line: id, start, end, type, text, probability
        brat      an .ann and a .txt file for each document, in the folder -o; probabilities are notes
        pubtator  the text with its mentions, without probabilities; the first line of a text is its title
        Offsets count characters of the text as given, in PubTator of title, line end and abstract.""",
    "classify": """\
Classifies new texts, or pairs of texts, with a model that `evaluate --save` kept.

input   a text a line; JSON lines with "text", of pairs "text2", perhaps "id"; .csv or .tsv with these columns;
        PubTator; a folder of .txt files; .gz may follow a name; without a file, standard input. The text of a relation
        holds its two mentions as the model was trained: dummies such as @GENE$, or [E1] ... [/E1] and [E2] ... [/E2].
output  jsonl     {"id", "text", "label", "probabilities"}; "labels" where a text may have several, "number" for scores
        tsv       a text a line: id, label, labels or number, then each probability""",
}


def run_labelling(words: list[str]) -> int:
    """Run `tag` or `classify` with the rest of the command line; return the exit status."""
    command, *words = words
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(f"run_all.sh {command}", description=HELP[command], formatter_class=formatter)
    tagger_help = ", or one with several taggers in it; default: model/tagger" if command == "tag" else ""
    folder_help = "; for brat, the folder" if command == "tag" else ""
    parser.add_argument("files", nargs="*", metavar="file", help="text; - or none: standard input")
    parser.add_argument("--model", metavar="FOLDER", help=f"a folder that evaluate --save has made{tagger_help}")
    parser.add_argument("--format", choices=FORMS[command], help="default: that of -o by its name, else jsonl")
    parser.add_argument("-o", "--output", metavar="PATH", help=f"the file to write{folder_help}")
    options = parser.parse_intermixed_args(words)
    try:
        with tempfile.TemporaryDirectory(prefix="study-") as folder:
            label(command, options, Path(folder))
    except BrokenPipeError:  # for example from `| head`
        sys.stdout = None  # or Python would try to write the rest on exit
    except OSError as error:
        raise StudyError(f"{show_path(Path(error.filename or 'output'))}: {error.strerror}") from None
    except KeyboardInterrupt:
        print("\nstopped; no file was written", file=sys.stderr)
        return 130
    return 0


def label(command: str, options: argparse.Namespace, scratch: Path) -> None:
    """Read all input once to check it, then once more to label it. `scratch`: a folder for copies of pipes."""
    output = Path(os.path.expanduser(options.output)) if options.output else None
    suffix = output.suffix[1:] if output else ""
    form = options.format or (suffix if suffix in ("jsonl", "tsv") else "jsonl")
    folders = find_models(command, options.model)
    files = [find_input(file, scratch) for file in options.files or ["-"]]
    check_output(form, output, files)
    from lib.finetuning import new_text, saved  # imported here because they take seconds

    models = [saved.load_saved(folder) for folder in folders]
    for model in models:
        new_text.check_task(model, command)
    count = 0
    for document in read_inputs(files):
        count += 1
        if command == "classify":
            make_document_instance(models[0], document)
    hidden = True if output is None and sys.stdout.isatty() else None  # None: hidden unless stderr is a terminal
    predict = tag_window if command == "tag" else classify_window
    windows = follow(read_inputs(files), tqdm(total=count, desc=command, unit="text", disable=hidden))
    predictions = (pair for window in windows for pair in zip(window, predict(models, window), strict=True))
    if form == "brat":
        write_folder(output, predictions)
    else:
        header, write = choose_writer(command, form, models[0])
        with open_output(output) as file:
            file.write(header)
            for document, prediction in predictions:
                file.write(write(document, prediction))


def find_models(command: str, word: str | None) -> list[Path]:
    """Return the folders of the requested models. Raises StudyError if there are none."""
    folder = Path(os.path.expanduser(word)) if word else paths.ROOT / "model"
    if command == "classify" and not word:
        raise StudyError(f"say with which model: --model FOLDER; {TO_MAKE}".replace("ncbi-disease", "hoc"))
    if not word and not folder.is_dir():
        raise StudyError(f"say with which tagger: --model FOLDER; {TO_MAKE}")
    if command == "tag" and folder.is_dir() and not (folder / "record.json").exists():
        taggers = [path.parent for path in sorted(folder.glob("*/record.json")) if is_tagger(path.parent)]
        if not taggers:
            raise StudyError(f"{show_path(folder)}: no tagger in it; {TO_MAKE}")
        return taggers
    return [folder]


def is_tagger(folder: Path) -> bool:
    """Return whether a folder holds a saved model that finds entities."""
    record = artefacts.read_record(folder)
    task = record.get("task") if record.get("stage") == "saved model" else None
    return bool(task) and task["dataset"]["family"] in ("tagging", "pico")


def find_input(word: str, scratch: Path) -> Path:
    """Return the path of an input; for standard input and pipes that of a copy, because they are read twice."""
    path = Path(os.path.expanduser(word))
    if word == "-":
        if sys.stdin.isatty():
            print("text from the terminal, to Ctrl-D:", file=sys.stderr)
        return copy_stream(sys.stdin.buffer, scratch, "standard input")
    if path.is_fifo():
        with open(path, "rb") as pipe:
            return copy_stream(pipe, scratch, path.name)
    return path


def copy_stream(stream: BinaryIO, scratch: Path, name: str) -> Path:
    """Copy a stream to a file of this name, in a folder of its own."""
    path = Path(tempfile.mkdtemp(dir=scratch), name)
    with open(path, "wb") as file:
        shutil.copyfileobj(stream, file)
    return path


def check_output(form: str, output: Path | None, files: list[Path]) -> None:
    """Raise StudyError unless the output can be written without overwriting the input or a filled BRAT folder."""
    if form == "brat":
        if output is None:
            raise StudyError("brat is a file for each document: name a folder with -o")
        if output.is_file() or (output.is_dir() and any(output.iterdir())):
            raise StudyError(f"{show_path(output)}: something lies there; name a new folder with -o")
    elif output is not None and output.is_dir():
        raise StudyError(f"{show_path(output)}: a folder; name a file with -o, or take --format brat")
    elif output is not None and output.suffix.lower() == ".gz":
        raise StudyError(f"{show_path(output)}: the output is not compressed; name a file without .gz with -o")
    elif output is not None and any(
        file.exists() and output.resolve() == file.resolve()
        for file in chain(files, *(folder.glob("*.txt") for folder in files))
    ):
        raise StudyError(f"{show_path(output)}: the input; name another file with -o")


def read_inputs(files: list[Path]) -> Iterator["NewText"]:
    """Yield the documents of all files in turn.

    With several files, the file's name precedes ids that are only numbers of lines or records.
    """
    from lib.finetuning import formats

    for name, file in name_inputs(files).items():
        for document in formats.read_input(file):
            numbered = len(files) > 1 and document.numbered
            yield document._replace(id=f"{name}-{document.id}") if numbered else document


def name_inputs(files: list[Path]) -> dict[str, Path]:
    """Return the files by a name that no two share: the stem, with a number if an earlier file has that name."""
    named = {}
    for file in files:
        name, number = file.stem, 1
        while name in named:
            number += 1
            name = f"{file.stem}_{number}"
        named[name] = file
    return named


def follow(documents: Iterable["NewText"], bar: tqdm) -> Iterator[list["NewText"]]:
    """Yield documents in windows of about WINDOW characters, advancing the bar after each; close it at the end."""
    window, size = [], 0
    with bar:
        for document in documents:
            window.append(document)
            size += len(document.text) + len(document.second or "")
            if size >= WINDOW:
                yield window
                bar.update(len(window))
                window, size = [], 0
        if window:
            yield window
            bar.update(len(window))


def tag_window(models: list["Saved"], window: list["NewText"]) -> list[list["Entity"]]:
    """Return the entities of each document, of all taggers in the order of the text."""
    from lib.finetuning import new_text

    by_model = [new_text.tag_texts(model, [document.text for document in window]) for model in models]
    return [sorted(sum(entities, [])) for entities in zip(*by_model, strict=True)]


def classify_window(models: list["Saved"], window: list["NewText"]) -> list[dict]:
    """Return the classifier's prediction for each document."""
    from lib.finetuning import new_text

    instances = [make_document_instance(models[0], document) for document in window]
    return new_text.classify_instances(models[0], instances)


def make_document_instance(model: "Saved", document: "NewText"):
    """Return the classifier's input for a document. Raises StudyError with the document's place."""
    from lib.finetuning import new_text

    try:
        return new_text.make_instance(model, document.text, document.second)
    except StudyError as error:
        raise StudyError(f"{document.where}: {error}") from None


def choose_writer(command: str, form: str, model: "Saved") -> tuple[str, Callable[..., str]]:
    """Return the header of a format (empty if it has none) and the function that writes a document."""
    from lib.finetuning import formats

    if command == "tag":
        header = formats.to_cells("id", *formats.FIELDS) if form == "tsv" else ""
        writers = {"jsonl": formats.write_json_line, "tsv": formats.write_rows, "pubtator": formats.write_pubtator}
        return header, writers[form]
    column = {"number": "number", "labels": "labels", "class": "label"}[model.task.target]
    header = formats.to_cells("id", column, *model.task.names) if form == "tsv" else ""
    return header, formats.write_judged if form == "jsonl" else formats.write_judged_row


@contextmanager
def open_output(path: Path | None) -> Iterator:
    """Yield standard output, or a file that gets its name only once it is complete."""
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    with artefacts.whole_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as file:
        yield file


def write_folder(folder: Path, predictions: Iterable[tuple["NewText", list]]) -> None:
    """Write each text with its .ann file, as in BRAT; the folder appears only once it is complete.

    Raises StudyError if an id cannot name a file, or occurs twice.
    """
    from lib.finetuning import formats

    with artefacts.whole_folder(folder) as temporary:
        for document, entities in predictions:
            text_path = temporary / f"{document.id}.txt"
            if text_path.parent != temporary or text_path.exists():
                raise StudyError(f"{document.where}: the id {document.id!r} is no name of a file, or comes twice")
            text_path.write_text(document.text, encoding="utf-8", newline="")
            (temporary / f"{document.id}.ann").write_text(formats.write_brat(document, entities), encoding="utf-8")
