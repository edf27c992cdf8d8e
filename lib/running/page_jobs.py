"""Notebooks that take no key: what each makes, what makes it run again, and the jobs that it reads."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lib import provenance
from lib.benchmarks import baseline_scores, baselines, definitions, versions, word_classes
from lib.running.state import (
    budget,
    dataset_files,
    dump,
    dump_tables,
    judged,
    measured,
    printed,
    recorded_tables,
    vocabulary_files,
)
from lib.study import claims, contrasts, corpora, hardware, open_study, params, paths, published, vocabularies
from lib.study.claim_tests import CUT

if TYPE_CHECKING:
    from lib.study import Study

Keys = list[tuple[str, ...]]  # of the jobs of one stage, as in their receipts
Jobs = dict[str, Keys]  # by stage
GAINS_PAGE, BASELINE_PAGE = "05_what_pretraining_buys", "15_without_pretraining"
BESIDE = dict.fromkeys(("step-times", "inference-times"), "naseem-8")  # a table -> the table whose page makes it too


@dataclass(frozen=True)
class Page:
    """A notebook that takes no key."""

    makes: str  # a table
    watches: Callable[["Study"], object] = lambda study: []  # what else makes it run again, besides code and jobs
    # stage -> keys of the jobs that it reads. Two more names: `runs`, (model, dataset, protocol), read through the
    # fine-tuning jobs that make them, and `vocabularies`, of which those trained here are read
    reads: Callable[["Study"], Jobs] = lambda study: {}
    also: tuple[str, ...] = ()  # other tables that it makes

    @property
    def tables(self) -> tuple[str, ...]:
        return self.makes, *self.also


def each(keys: Iterable[str]) -> Keys:
    """Return each key as the keys of a job that has only this one."""
    return [(key,) for key in keys]


def split_tables(names: Iterable[str]) -> Jobs:
    """Return the jobs that make the named tables, registered or not: jobs of their own, or pages."""
    makers = {}  # a table's name -> the page that makes it
    for name, page in PAGES.items():
        makers |= dict.fromkeys(page.tables, name)
    names = [BESIDE.get(key, key) for key in names]
    notebooks = {key: table.notebook for key, table in params.load_tables().items() if key in names}
    pages = [notebooks.get(key, makers.get(key)) for key in names]
    return {
        "table": each(key for key, notebook in notebooks.items() if notebook not in PAGES),
        "page": each(page for page in pages if page in PAGES),
    }


def read_claimed(study: "Study") -> Jobs:
    """Return what claims are judged by: published tables of the scale, baselines, planned runs, vocabularies.

    With public weights no text is read: only scores and baselines.
    """
    if study.budget.weights == "released":
        table_jobs = split_tables(["baselines", *params.load_tables("scores", "curves")])
        return table_jobs | {"runs": claims.list_claim_runs(study)}
    registered = params.keys("tables")
    tables, vocabulary_keys = ["baselines", *registered], []
    for claim in claims.CLAIMS:
        tables += claim.test.tables
        vocabulary_keys += claim.test.vocabularies
    left_out = {*registered} - {*study.budget.tables} if study.budget.tables else set()
    return split_tables(table for table in dict.fromkeys(tables) if table not in left_out) | {
        "runs": [*claims.list_claim_runs(study), *study.budget.panel_runs()],
        "vocabularies": each(vocabulary_keys),
    }


def read_brief(study: "Study") -> Jobs:
    """Return what `read_claimed` does and the page of scores minus baselines."""
    claimed = read_claimed(study)
    return claimed | {"page": [*claimed["page"], (GAINS_PAGE,)]}


def read_words(study: "Study") -> Jobs:
    """Return the corpus of the word classes, if it is at hand."""
    return {"corpus": [] if study.corpus("pubmed").why_not else [("pubmed",)]}


def read_documents(study: "Study") -> Jobs:
    """Return the documents of every corpus that can be built."""
    documents = [file for key in params.keys("corpora") for file in study.corpus(key).files]
    return {"documents": list(dict.fromkeys(documents))}


def read_medical_terms(study: "Study") -> Jobs:
    """Return the vocabularies at hand, and the corpus that the terms are counted in."""
    return {
        "vocabularies": each(vocabulary.key for vocabulary in vocabularies.at_hand(study)),
        "corpus": [("pubmed",)],
    }


def read_amplified(study: "Study") -> Jobs:
    """Return the vocabularies that are learnt from amplified (repeated) corpora."""
    at_hand = vocabularies.at_hand(study)
    return {"vocabularies": each(vocabulary.key for vocabulary in at_hand if vocabulary.settings.amplify)}


PAGES = {
    "00_start_here": Page(
        "settings",
        lambda study: [budget(study), [params.keys(kind) for kind in params.KINDS], printed(), measured()],
    ),
    "01_results_in_brief": Page(
        "claims",
        lambda study: [versions.SETS, judged(), recorded_tables("weekend", "claims")],
        read_brief,
    ),
    "04_printed_numbers": Page("decisions", lambda study: [versions.SETS, printed()], read_claimed),
    GAINS_PAGE: Page("gains", lambda study: [versions.SETS, printed()], read_claimed),
    "11_corpus_sizes": Page(
        "corpora",
        lambda study: [
            [whole.settings.model_dump() for whole in corpora.list_whole(study)],
            dump_tables("corpora"),
            dump("cleaning"),
            dump("selections"),
            printed(),
        ],
        lambda study: {"corpus": each(corpus.key for corpus in corpora.list_whole(study))},
    ),
    "12_datasets": Page(
        "datasets",
        lambda study: [
            dataset_files(study),
            dump_tables("counts"),
            provenance.file_fingerprint(paths.PARAMS / "downloads.yaml"),
        ],
    ),
    "14_leaks": Page("leaks", dataset_files, read_documents),
    BASELINE_PAGE: Page(
        "baselines",
        lambda study: [
            baselines.VERSION,
            baseline_scores.VERSION,
            word_classes.VERSION,
            budget(study, "datasets"),
            dataset_files(study),
            printed(),
        ],
        read_words,
        also=("seen",),
    ),  # fmt: skip
    "21_medical_terms": Page(
        "tokens",
        lambda study: [dump("vocabularies"), dump_tables("terms"), vocabulary_files(study), judged()],
        read_medical_terms,
    ),  # fmt: skip
    "24_simultaneous_pretraining": Page("wada-figure-3", lambda study: judged(), read_amplified),
    "25_models_side_by_side": Page(
        "parameters",
        lambda study: [dump("models"), dump("vocabularies"), budget(open_study("paper")), judged()],
        lambda study: {"pretrain": each(study.budget.list_models())},
        also=("pretrained",),
    ),
    "26_own_data": Page("own-data"),
    "33_all_benchmarks": Page(
        "panels",
        lambda study: [budget(study, "panels"), printed()],
        lambda study: {"runs": study.budget.panel_runs(), "page": each([BASELINE_PAGE])},
        also=("seen-by-models",),
    ),
    "54_attention": Page(
        "gu-figure-3",
        lambda study: [dump("vocabularies", *CUT), vocabulary_files(study), judged()],
        lambda study: {"pretrain": each(contrasts.list_attended(study))},
    ),
    "71_bioalbert_samples": Page(
        "naseem-9",
        lambda study: [dataset_files(study), contrasts.list_contrast_runs(study)],
        lambda study: {"runs": contrasts.list_contrast_runs(study)},
    ),
    "90_audit": Page("audit", lambda study: [dump_tables("scores"), printed()]),
    "91_protocols": Page(
        "protocols",
        lambda study: [
            definitions.PAIRS,
            versions.SETS,
            dump_tables("scores"),
            dataset_files(study),
            printed(),
        ],
        lambda study: {"runs": published.list_compared(study)},
    ),  # fmt: skip
    "92_cost": Page(
        "cost",
        lambda study: [
            dump("models"),
            dump("vocabularies"),
            hardware.read_hardware().model_dump(),
            budget(open_study("paper")),
            printed(),
        ],
        lambda study: {"page": each(["25_models_side_by_side"] if study.budget.models else [])},
    ),  # fmt: skip
    "92_plan": Page(
        "plan",
        budget,
        lambda study: {"page": each(["25_models_side_by_side", "33_all_benchmarks", "01_results_in_brief"])},
    ),
    "94_lessons": Page(
        "lessons",
        lambda study: [dump("models"), dump("protocols"), recorded_tables("laptop", "claims")],
        lambda study: {"page": each(["01_results_in_brief", BASELINE_PAGE])},
    ),
    "95_integer_check": Page(
        "integers",
        lambda study: [
            versions.SETS,
            dump_tables("scores"),
            recorded_tables("laptop", "datasets", "leaks"),
            printed(),
        ],
        also=("ties",),
    ),
    "96_own_speed": Page("own-speed", lambda study: [measured()]),
}
