"""Controls of a page that is open in JupyterLab: the button shows what the fields say; in batch there are none."""

import sys

import nbformat
import pytest
from nbclient import NotebookClient

from lib import progress
from lib.study import paths, widgets

VIEW, STATE = (f"application/vnd.jupyter.widget-{what}+json" for what in ("view", "state"))
CELLS = [
    """
from IPython.display import HTML, display
from lib.errors import StudyError
from lib.study import widgets

def show(text, name):
    if not text:
        raise StudyError("no sentence")
    print(text.upper(), name)
    display(HTML(f"<b>{text}</b>"))

box = widgets.ask(show, "the arm", ["one", "other"])
box""",
    "field, choice, button, output = box.children\nbutton.click()",
    'field.value, choice.value = "the knee", "other"\nbutton.click()',
    'field.value = ""\nbutton.click()',
]


def execute(cells: list[str]) -> nbformat.NotebookNode:
    """A notebook of these cells, executed in a kernel with the environment of this process."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": paths.ROOT}})
    return client.execute()


def read_output(notebook: nbformat.NotebookNode) -> list[str]:
    """What stands below the button, as text or HTML."""
    models = notebook.metadata.widgets[STATE].state.values()
    (output,) = (one.state for one in models if one.model_name == "OutputModel")
    return [one.get("text") or one.data["text/html"] for one in output.outputs]


@pytest.fixture
def environment(monkeypatch):
    """That of a kernel which no server and no run of the study started."""
    monkeypatch.delenv(widgets.SESSION, raising=False)
    monkeypatch.delenv(progress.FILE, raising=False)
    return monkeypatch


def test_the_button_shows_what_the_fields_say(environment):
    environment.setenv(widgets.SESSION, "notebooks/page.ipynb")
    said = [["THE ARM one\n", "<b>the arm</b>"], ["THE KNEE other\n", "<b>the knee</b>"], ["no sentence\n"]]
    for number, expected in enumerate(said, 2):
        notebook = execute(CELLS[:number])
        assert VIEW in notebook.cells[0].outputs[-1].data
        assert read_output(notebook) == expected


def test_in_batch_there_are_no_controls(environment):
    environment.setitem(sys.modules, "ipywidgets", None)  # importing it fails
    assert widgets.ask(print) is None
    environment.setenv(widgets.SESSION, "notebooks/page.ipynb")
    environment.setenv(progress.FILE, "running/page.progress")  # a run of the study that a notebook started
    assert widgets.ask(print) is None
    environment.delenv(progress.FILE)
    with pytest.raises(ImportError):
        widgets.ask(print)
