"""Tests of controls on a page open in JupyterLab: the button shows what the fields say; in batch there are none."""

import re
import sys

import pytest

from lib import progress
from lib.errors import StudyError
from lib.study import pages

VIEW = "application/vnd.jupyter.widget-view+json"
PAGE = "notebooks/page.ipynb"


def show(text: str, name: str = "") -> None:
    if not text:
        raise StudyError("no sentence")
    print(text.upper(), name)


@pytest.fixture
def environment(monkeypatch):
    """Set the environment of a kernel started by no server and no run of the study; return `monkeypatch`."""
    monkeypatch.delenv(pages.SESSION, raising=False)
    monkeypatch.delenv(progress.FILE, raising=False)
    return monkeypatch


def test_the_button_shows_what_the_fields_say(environment, capsys):
    environment.setenv(pages.SESSION, PAGE)
    box = pages.ask_for_sentence(show, "the arm", ["one", "other"])
    assert VIEW in box._repr_mimebundle_()  # what JupyterLab renders
    field, choice, button, _ = box.children
    button.click()
    field.value, choice.value = "the knee", "other"
    button.click()
    field.value = ""
    button.click()
    lines = re.findall(r"[\w ]+(?=\n)", capsys.readouterr().out)  # without the codes that clear the output
    assert lines == ["THE ARM one", "THE KNEE other", "no sentence"] and not button.disabled
    field, button, _ = pages.ask_for_sentence(show).children  # without choices
    field.value = "leg"
    button.click()
    assert "LEG" in capsys.readouterr().out


def test_in_batch_there_are_no_controls(environment):
    environment.setitem(sys.modules, "ipywidgets", None)  # importing it fails
    assert pages.ask_for_sentence(print) is None
    environment.setenv(pages.SESSION, PAGE)
    environment.setenv(progress.FILE, "running/page.progress")  # a run of the study that a notebook started
    assert pages.ask_for_sentence(print) is None
    environment.delenv(progress.FILE)
    with pytest.raises(ImportError):
        pages.ask_for_sentence(print)


def test_a_choice_sets_the_parameter_and_the_page_keeps_its_tables_apart(environment):
    environment.setenv(pages.SESSION, PAGE)
    variables = {"scale": "mine", "table": "naseem-7", "models": []}
    scale, table, _ = pages.ask_for_parameters(variables, pages.list_choices(variables)).children
    assert {"mine", "smoke", "laptop"} <= {*scale.options} and table.options == ("naseem-7", "naseem-figure-2")
    table.value = "naseem-figure-2"
    assert variables == {"scale": "mine", "table": "naseem-figure-2", "models": []}
    assert pages.ask_for_parameters(variables, {}) is None
