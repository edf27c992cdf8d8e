"""Notebook output besides the results: versions, settings, rows of data, controls, the notice on made-up data."""

import ast
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd
from IPython import get_ipython
from IPython.display import HTML, Markdown, display

from lib import progress, provenance
from lib.benchmarks.instances import Instance, Sentence
from lib.errors import StudyError
from lib.places import show_path
from lib.study import open_study, params, paths, show
from lib.study.study import Study

if TYPE_CHECKING:
    from ipywidgets import VBox

SESSION = "JPY_SESSION_NAME"  # environment variable that a Jupyter server sets for the kernel of a page it opens
REGISTERED = {  # parameters of pages -> the kind of settings whose keys they take
    "scale": "scales", "corpus": "corpora", "vocabulary": "vocabularies", "model": "models", "protocol": "protocols"
}  # fmt: skip


def open_page(scale: str, own_data: bool = False) -> Study:
    """Open the study; show versions, device, commit and scale, and a notice if the data are made up.

    In JupyterLab, also show a dropdown for each parameter with registered values. `own_data`: all datasets of the page
    are the user's own. Raises StudyError if the notebook was given parameters that it does not have, as `papermill -p`
    allows.
    """
    variables = get_ipython().user_ns
    compare_parameters(variables.get("In", []))
    if is_live():
        display(ask_for_parameters(variables, list_choices(variables)))
    versions = ", ".join(f"{name} {version}" for name, version in provenance.versions().items())
    study = open_study(scale)
    display(Markdown(f"Scale **{study.budget.title}**{name_device()} · commit `{provenance.commit()}` · {versions}"))
    if study.budget.made_up:
        notice = f"**Made-up data.** {(paths.MADE_UP / 'README.md').read_text().strip()}"
        if own_data:
            notice = "**A trial.** The data are your own, the training lasts seconds."
        display(Markdown(f"> {notice} Its numbers are not findings."))
    return study


def compare_parameters(cells: list[str]) -> None:
    """Compare the cell that papermill injects with the parameter cell before it.

    Raises StudyError if a name is unknown or a type differs.
    """
    injected = next((cell for cell in cells if cell.startswith("# Parameters\n")), "")
    declared = {
        statement.target.id: statement.annotation.id
        for cell in cells[: cells.index(injected) if injected else 0]
        for statement in ast.parse(cell).body
        if isinstance(statement, ast.AnnAssign)
    }
    for statement in ast.parse(injected).body:
        params.check_parameter("this notebook", statement.targets[0].id, ast.literal_eval(statement.value), declared)


def list_choices(variables: dict) -> dict[str, list[str]]:
    """List the values of each page parameter: the keys of its kind; for a table, those that the page shows."""
    choices = {name: params.keys(kind) for name, kind in REGISTERED.items() if isinstance(variables.get(name), str)}
    if isinstance(variables.get("table"), str):
        page = params.load("tables", variables["table"]).notebook
        choices["table"] = [key for key, table in params.load_tables().items() if table.notebook == page]
    return choices


def is_live() -> bool:
    """Return whether a person has the page open: a Jupyter server started its kernel, not a run of the study."""
    return SESSION in os.environ and progress.FILE not in os.environ


def ask_for_sentence(respond: Callable[..., None], text: str = "", choices: Sequence[str] = ()) -> "VBox | None":
    """Return a field for a sentence, a dropdown of `choices` if there are any, and a button; None in batch.

    The button displays `respond(text)`, or with choices `respond(text, choice)`, or the message of a StudyError. The
    first choice is selected.
    """
    if not is_live():
        return None
    import ipywidgets  # imported here because only an open page needs it

    field = ipywidgets.Textarea(value=text, description="Sentence", layout={"width": "95%"})
    choice = ipywidgets.Dropdown(options=choices, description="Encoder")
    button, output = ipywidgets.Button(description="Show"), ipywidgets.Output()

    def redo(_) -> None:
        button.disabled = True
        output.clear_output()
        with output:
            try:
                respond(field.value, choice.value) if choices else respond(field.value)
            except StudyError as error:
                print(error)
        button.disabled = False

    button.on_click(redo)
    return ipywidgets.VBox([field, *([choice] if choices else []), button, output])


def ask_for_parameters(variables: dict, choices: Mapping[str, Sequence[str]]) -> "VBox | None":
    """Return a dropdown for each parameter, which sets it in the page's `variables`; None without choices."""
    if not choices:
        return None
    import ipywidgets

    def choose(change) -> None:
        variables[change["owner"].description] = change["new"]

    fields = [
        ipywidgets.Dropdown(options=sorted({*options, variables[name]}), value=variables[name], description=name)
        for name, options in choices.items()
    ]
    for field in fields:
        field.observe(choose, "value")
    hint = ipywidgets.HTML("Then, with this cell selected: Run ▸ Run Selected Cell and All Below.")
    return ipywidgets.VBox([*fields, hint])


def name_device() -> str:
    """Name the device on pages that have imported torch; other pages are spared that import."""
    torch = sys.modules.get("torch")
    if torch is None:
        return ""
    return f" · {torch.cuda.get_device_name() if torch.cuda.is_available() else 'CPU'}"


def show_settings(*parts: tuple[str, str], scale: str | None = None) -> HTML:
    """Show settings with the file each comes from; `parts` are (kind, key) pairs of params/.

    With `scale`, also show its budget.
    """
    parts = (*parts, ("scales", scale)) if scale else parts
    return show.table([row for kind, key in parts for row in params.explain(kind, key)])


def show_counts(rows) -> HTML:
    """Show the counts of documents read, left out by reason, and kept.

    Reasons that removed nothing are hidden, and so are MeSH headings missing from the tree if there are none.
    """
    from lib.corpora.build import REASONS  # here, so that other pages need not wait

    table = pd.DataFrame(rows)
    names = ("corpus", "source", "file", "read", *REASONS, "lines dropped", "kept", "words", "unknown headings")
    table = table[[name for name in names if name in table]]
    optional = table.columns.intersection([*REASONS, "lines dropped", "unknown headings"])
    zero = [name for name in optional if not table[name].any()]
    return show.table(table.drop(columns=zero))


def show_instance(instance: Instance, letters: int) -> tuple[str, str]:
    """Return an instance's text, with entities in brackets or cut to `letters` characters, and its label."""
    if isinstance(instance, Sentence):
        return show.bracket(instance.words, instance.tags), ""
    return " / ".join(instance.inputs)[:letters], str(instance.gold)


def show_made_up(what: str) -> HTML:
    """Show made-up text, labelled as such, in place of text that must not be shown."""
    return show.table([{f"{what} (made up, in place of the real data's own)": text} for text in show.list_made_up(3)])


def where(*files) -> Markdown:
    """Show where the notebook's results are: below outputs/<scale>/, or in the record."""
    return Markdown("Kept in: " + ", ".join(f"`{show_path(paths.find(path))}`" for path in files))
