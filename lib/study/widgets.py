"""Controls on pages open in JupyterLab; in batch there are none."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from lib import progress
from lib.errors import StudyError

if TYPE_CHECKING:
    from ipywidgets import VBox

SESSION = "JPY_SESSION_NAME"  # environment variable that a Jupyter server sets for the kernel of a page it opens


def is_live() -> bool:
    """Return whether a person has the page open: a Jupyter server started its kernel, not a run of the study."""
    return SESSION in os.environ and progress.FILE not in os.environ


def ask_for_sentence(show: Callable[..., None], text: str = "", choices: Sequence[str] = ()) -> "VBox | None":
    """Return a field for a sentence, a dropdown of `choices` if there are any, and a button; None in batch.

    The button displays `show(text)`, or with choices `show(text, choice)`, or the message of a StudyError. The first
    choice is selected.
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
                show(field.value, choice.value) if choices else show(field.value)
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
