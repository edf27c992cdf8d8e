"""The registered corpora at a scale: of which raw files each is made, whether it can be, and its documents."""

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

PROSE = {"title", "where", "differs"}  # of rules, on pages alone


class Corpus(params.Registered):
    kind = "corpora"

    @property
    def folder(self) -> Path:
        return paths.corpus(self.study.scale, self.key)

    @property
    def full(self) -> bool:
        """Whether it is made of the papers' sources, not of samples."""
        return self.study.budget.text == "full"

    @property
    def sources(self) -> list[str]:
        """The sources that it is made of, in the order in which they are read."""
        return self.settings.sources if self.full else self.settings.samples

    @property
    def until(self) -> str:
        """The last day on which its citations entered PubMed; empty: samples have no cut."""
        return self.settings.until if self.full else ""

    @property
    def files(self) -> list[tuple[str, str]]:
        """The (source, file name) pairs that are in the data folder, in the order in which they are read."""
        return [(source, file) for source in self.sources for file in documents.list_raw_files(self.study, source)]

    @property
    def why_not(self) -> str:
        """Why it cannot be built, or an empty string when it can."""
        return "" if self.files else f"no text at hand: {params.load('sources', self.sources[0]).missing}"

    @property
    def access(self) -> str:
        """`credentialed` when any of its sources is, at any scale, else `public`."""
        named = (*self.settings.sources, *self.settings.samples)
        return "credentialed" if "credentialed" in {params.load("sources", one).access for one in named} else "public"

    @property
    def recipe(self) -> dict:
        """All settings that its text follows from."""
        settings = self.settings
        return {
            "cleaning": params.load("cleaning", settings.cleaning).model_dump(exclude=PROSE),
            "selection": describe_selection(settings.selection),
            "left out": {source: params.load("sources", source).leave_out for source, _ in self.files},
            "part": settings.part,
        } | ({"until": self.until} if self.until else {})

    def build(self) -> dict:
        """Write documents.parquet unless it is there already; returns the record, with counts by file."""
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
            made, path = [], new / "documents.parquet"
            for (source, file), of in rows.items():
                record, left_out = artefacts.read_record(of.parent), params.load("sources", source).leave_out.get(file)
                counted = record["read"], record["too long"], record["unknown headings"]
                made.append(Rows(of, source, file, *counted, left_out))
            counts = build_corpus(made, path, rules, choose_rule(settings.selection), settings.part, self.until)
            names = ["read", "kept", "words", "bytes", "unknown headings", *REASONS]
            totals = pd.DataFrame(counts)[names].sum()
            if not totals["kept"]:
                raise StudyError(f"corpus '{self.key}': nothing is left after cleaning")
            # What is trained on a corpus is trained again when its text changes, and not when only its making does.
            content = {"content": provenance.file_fingerprint(path)}
            return {"files": counts} | {name: int(total) for name, total in totals.items()} | content

        return artefacts.cached(self.folder, identity, write)

    @property
    def record(self) -> dict:
        """What building it counted; StudyError when it is not built."""
        record = artefacts.read_record(self.folder)
        if record is None:
            scale = self.study.scale
            raise StudyError(
                f"corpus '{self.key}' is not built at scale '{scale}': run ./run_all.sh {scale} {self.key}"
            )
        return record

    def documents(self) -> Iterator[Document]:
        """The kept documents, in order; StudyError when it is not built or damaged."""
        _ = self.record  # StudyError when it is not built
        yield from read_corpus(self.folder / "documents.parquet")


def describe_selection(selection: str | None) -> dict | None:
    """The rules of a registered selection, with those of the one whose complement it is."""
    if not selection:
        return None
    rules = params.load("selections", selection).model_dump(exclude=PROSE)
    of = describe_selection(rules["complement_of"])
    return rules | {"complement": of} if of else rules


def choose_rule(selection: str | None) -> Choice | None:
    """What decides whether a citation is chosen: a registered selection, or all that another one does not choose."""
    if not selection:
        return None
    rule = params.load("selections", selection)
    if rule.complement_of:
        other = choose_rule(rule.complement_of)
        return lambda trees, major: not other(trees, major)
    return partial(mesh.selects, rule)


def list_whole(study: "Study") -> list[Corpus]:
    """The registered corpora within the scale's budget that are not a part of another, and can be built."""
    found = (study.corpus(key) for key in study.budget.shown_corpora or params.keys("corpora"))
    return [corpus for corpus in found if corpus.settings.part == 1 and not corpus.why_not]
