"""Two models that a page sets beside each other, a general and a biomedical one, as far as a scale has them."""

from lib.study import params

ATTENDED = "bert-general-pubmed", "pubmedbert"  # whose attention is shown: for BioBERT and PubMedBERT of gu's figure 3


def why_not_pretrained(model: str, scale: str) -> str:
    """Why a model is not among those that are pretrained at a scale in any case, or an empty string."""
    budget, settings = params.load("scales", scale), params.load("models", model)
    panels = {name for panel in budget.panels for name in panel.models}
    if settings.not_run:
        return settings.not_run
    if budget.compared is None or model in {*budget.compared, *budget.models, *panels}:
        return ""
    return f"outside the budget of scale '{scale}': {model} is not among its models"


def list_attended(scale: str) -> list[str]:
    """The models whose attention is shown at a scale: both or none."""
    return [] if any(why_not_pretrained(model, scale) for model in ATTENDED) else list(ATTENDED)
