"""Registered corpora at a scale: the raw files of each, whether it can be built, and its documents."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from lib import artefacts, provenance
from lib.corpora import mesh
from lib.corpora.build import REASONS, VERSION, Choice, Rows, build_corpus, read_corpus
from lib.corpora.records import Document
from lib.errors import StudyError
from lib.study import documents, params, paths

if TYPE_CHECKING:
    from lib.study import Study

PROSE = {"title", "where", "differs"}  # fields of rules that only pages use


class Corpus(params.Registered):
    kind = "corpora"

    @property
    def folder(self) -> Path:
        return paths.corpus(self.study.scale, self.key)

    @property
    def full(self) -> bool:
        """Whether it is built from the papers' sources rather than samples."""
        return self.study.budget.text == "full"

    @property
    def sources(self) -> list[str]:
        """Its sources, in reading order."""
        return self.settings.sources if self.full else self.settings.samples

    @property
    def until(self) -> str:
        """The last day on which its citations entered PubMed; empty for samples, which have no cut-off."""
        return self.settings.until if self.full else ""

    @property
    def files(self) -> list[tuple[str, str]]:
        """The (source, file name) pairs in the data folder, in reading order."""
        return [(source, file) for source in self.sources for file in documents.list_raw_files(self.study, source)]

    @property
    def why_not(self) -> str:
        """Why it cannot be built, or an empty string."""
        return "" if self.files else f"no text at hand: {params.load('sources', self.sources[0]).missing}"

    @property
    def access(self) -> str:
        """`credentialed` if any of its sources is, at any scale, else `public`."""
        sources = (*self.settings.sources, *self.settings.samples)
        return "credentialed" if "credentialed" in {params.load("sources", key).access for key in sources} else "public"

    @property
    def recipe(self) -> dict:
        """All settings that determine its text."""
        settings = self.settings
        return {
            "cleaning": params.load("cleaning", settings.cleaning).model_dump(exclude=PROSE),
            "selection": describe_selection(settings.selection),
            "left out": {source: params.load("sources", source).leave_out for source, _ in self.files},
            "part": settings.part,
        } | ({"until": self.until} if self.until else {})

    def build(self) -> dict:
        """Write documents.parquet unless it is there already, and return the record, with counts by file."""
        settings, files = self.settings, self.files
        if not files:
            raise StudyError(f"corpus '{self.key}': {self.why_not}")
        rules = params.load("cleaning", settings.cleaning)
        rows = {(source, file): documents.rows_path(self.study, source, file) for source, file in files}
        identity = provenance.record(
            "corpora",
            VERSION,
            self.recipe,
            {f"{source}/{file}": provenance.file_fingerprint(path) for (source, file), path in rows.items()},
        )

        def write(new: Path) -> dict:
            inputs, path = [], new / "documents.parquet"
            for (source, file), rows_path in rows.items():
                record = artefacts.read_record(rows_path.parent)
                counted = {name: record[name] for name in ("read", "too long", "unknown headings")}
                left_out = params.load("sources", source).leave_out.get(file)
                inputs.append(Rows(rows_path, source, file, counted, left_out))
            counts = build_corpus(inputs, path, rules, choose_rule(settings.selection), settings.part, self.until)
            names = ["read", "kept", "words", "bytes", "unknown headings", *REASONS]
            totals = pd.DataFrame(counts)[names].sum()
            if not totals["kept"]:
                raise StudyError(f"corpus '{self.key}': nothing is left after cleaning")
            # Models and vocabularies are retrained when a corpus's text changes, not when only its making does.
            content = {"content": provenance.file_fingerprint(path)}
            return {"files": counts} | {name: int(total) for name, total in totals.items()} | content

        return artefacts.cached(self.folder, identity, write)

    @property
    def record(self) -> dict:
        """The counts made when it was built. Raises StudyError if it is not built."""
        record = artefacts.read_record(self.folder)
        if record is None:
            scale = self.study.scale
            raise StudyError(
                f"corpus '{self.key}' is not built at scale '{scale}': run ./run_all.sh {scale} {self.key}"
            )
        return record

    def documents(self) -> Iterator[Document]:
        """Yield the kept documents in order. Raises StudyError if the corpus is not built or damaged."""
        _ = self.record  # raises StudyError if it is not built
        yield from read_corpus(self.folder / "documents.parquet")


def describe_selection(selection: str | None) -> dict | None:
    """Return the rules of a registered selection, and of the selection that it is the complement of, if any."""
    if not selection:
        return None
    rules = params.load("selections", selection).model_dump(exclude=PROSE)
    complement = describe_selection(rules["complement_of"])
    return rules | {"complement": complement} if complement else rules


def choose_rule(selection: str | None) -> Choice | None:
    """Return the function that selects citations: by a registered selection, or by the complement of another one."""
    if not selection:
        return None
    rule = params.load("selections", selection)
    if rule.complement_of:
        other = choose_rule(rule.complement_of)
        return lambda trees, major: not other(trees, major)
    return partial(mesh.selects, rule)


def list_whole(study: "Study") -> list[Corpus]:
    """List the buildable registered corpora within the scale's budget that are not parts of others."""
    corpora = (study.corpus(key) for key in study.budget.shown_corpora or params.keys("corpora"))
    return [corpus for corpus in corpora if corpus.settings.part == 1 and not corpus.why_not]
