"""Pairs of a general and a biomedical model that pages compare, as far as a scale has them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lib.study import params, published

if TYPE_CHECKING:
    from lib.study import Study

ATTENDED = "bert-general-pubmed", "pubmedbert"  # their attention is shown for BioBERT and PubMedBERT (gu's figure 3)


@dataclass(frozen=True)
class Comparison:
    """Two models, and the datasets on whose test instances they are compared under a protocol."""

    general: str
    biomedical: str
    protocol: str
    datasets: tuple[str, ...]


COMPARISONS = (  # the models of naseem's table 9, then their substitutes at scales without them
    Comparison("albert-base", "bioalbert-base1", "naseem",
               ("jnlpba-biobert", "share-clef-2013", "hoc-blue", "bc5cdr-disease", "bc5cdr-chem", "linnaeus",
                "ncbi-disease", "s800", "bc2gm")),
    Comparison("bert-general", "pubmedbert", "gu",
               ("jnlpba", "hoc", "bc5cdr-disease", "bc5cdr-chem", "ncbi-disease", "bc2gm")),
)  # fmt: skip


def why_not_pretrained(study: "Study", model: str) -> str:
    """Return why a model is not among those that a scale always pretrains, or an empty string."""
    budget = study.budget
    panels = {name for panel in budget.panels for name in panel.models}
    if why_not := params.why_no_weights(model, study.scale):
        return why_not
    if budget.compared is None or model in {*budget.compared, *budget.models, *panels}:
        return ""
    return f"{study.outside_budget}: {model} is not among its models"


def list_attended(study: "Study") -> list[str]:
    """List the models whose attention is shown at a scale: both or none."""
    return [] if any(why_not_pretrained(study, model) for model in ATTENDED) else list(ATTENDED)


def choose_comparison(study: "Study") -> Comparison | None:
    """Return the first of COMPARISONS that is possible at a scale, with its possible datasets, or None."""
    for named in COMPARISONS:
        asked = [params.Run(model=model, protocol=named.protocol) for model in (named.general, named.biomedical)]
        general, biomedical = (published.substitute_run(study, run) for run in asked)
        datasets = []
        for key in named.datasets:
            obstacles = (published.find_obstacle(study, r.model, [key], r.protocol) for r in (general, biomedical))
            if not any(obstacles):
                datasets.append(key)
        if datasets:
            return Comparison(general.model, biomedical.model, general.protocol, tuple(datasets))
    return None


def list_contrast_runs(study: "Study") -> list[params.RunKey]:
    """List model, dataset and protocol of every run whose predictions are compared."""
    comparison = choose_comparison(study)
    if comparison is None:
        return []
    pair = comparison.general, comparison.biomedical
    return [(model, key, comparison.protocol) for key in comparison.datasets for model in pair]
