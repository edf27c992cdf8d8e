"""YAML files, parsed, and checked against a schema."""

from pathlib import Path

import yaml
from pydantic import TypeAdapter, ValidationError

from lib.errors import StudyError
from lib.places import show_path


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # the same parser in C, where PyYAML has it
    """YAML that says nothing twice: PyYAML itself takes the last of two equal keys without a word."""

    def construct_mapping(self, node, deep=False):
        found = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        if twice := {key for key in found if found.count(key) > 1}:
            raise yaml.constructor.ConstructorError(None, None, f"{', '.join(sorted(twice))} twice", node.start_mark)
        return super().construct_mapping(node, deep)


def parse_yaml(path: Path):
    """What a YAML file holds; StudyError when it is not there or not YAML."""
    where = show_path(path)
    try:
        return yaml.load(path.read_text(encoding="utf-8"), Loader)
    except FileNotFoundError:
        raise StudyError(f"{where}: no such file") from None
    except yaml.YAMLError as error:
        raise StudyError(f"{where}: not valid YAML: {error}") from None


def read_yaml(path: Path, schema):
    """One checked YAML file; StudyError names the file, the field and what is wrong with it."""
    return check_settings(show_path(path), parse_yaml(path), schema)


def check_settings(where: str, content, schema):
    """Settings of a schema; StudyError names the place, the field and what is wrong with it."""
    try:
        return TypeAdapter(schema).validate_python(content)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'the file'}: {e['msg']}"
            + (f" (got {e['input']!r})" if e["type"] not in ("missing", "extra_forbidden") else "")
            for e in error.errors()
        )
        raise StudyError(f"{where}: {problems}") from None
