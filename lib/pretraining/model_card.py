"""The model card of a pretrained model."""


def write_card(title: str, record: dict, log: list[dict], note: str) -> str:
    """Return a model card in Markdown: the model, its text, training, loss and commit."""
    settings = record["settings"]
    steps = sum(phase["steps"] for phase in settings["phases"])
    loss = log[-1].get("held-out loss") if log else None
    objective = "replaced" if settings["architecture"] == "electra" else "masked"
    rows = {
        "text": ", ".join(settings["corpora"]) or "none",
        "continues": settings["initial"] or "no other model",
        "start": ", ".join(settings["start"]) or "random weights",
        "vocabulary": settings["vocabulary"],
        "objective": f"{objective} tokens, {settings['masking']} masking, pairs: {settings['pairs']}",
        "size": f"{record['parameters']:,} parameters",
        "trained on": f"{record['tokens']:,} tokens in {steps:,} steps",
        "cross-entropy of masked tokens": f"{loss:.3f} on held-out text of its corpora" if loss else "n/a",
        "cost": f"{record['seconds']:,} s on {record['device']}, {record['FLOPs']:.2e} FLOPs",
        "commit": record["commit"],
        "fingerprint": record["fingerprint"],
    }
    lines = [f"# {title}", "", "Made by a reproducibility study of five biomedical language models.", ""]
    lines += ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
    return "\n".join([*lines, *(["", note] if note else []), ""])
