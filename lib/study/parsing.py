"""YAML files, parsed and checked against a schema."""

from functools import cache
from pathlib import Path

import yaml
from pydantic import TypeAdapter, ValidationError

from lib.errors import StudyError
from lib.places import show_path


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # the same parser in C, if PyYAML has it
    """A loader that rejects duplicate keys; PyYAML itself silently takes the last of two."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        if duplicates := {key for key in keys if keys.count(key) > 1}:
            raise yaml.constructor.ConstructorError(
                None, None, f"{', '.join(sorted(duplicates))} twice", node.start_mark
            )
        return super().construct_mapping(node, deep)


@cache
def parse_text(path: Path, changed: int) -> tuple[yaml.Node | None, object]:
    """Parse a YAML file into nodes, which know their lines, and data.

    `changed`: the file's modification time, so that a changed file is parsed again.
    """
    loader = Loader(path.read_text(encoding="utf-8"))
    node = loader.get_single_node()
    return node, node and loader.construct_document(node)


def parse_yaml(path: Path):
    """Return the data of a YAML file, which is cached and must not be modified.

    Raises StudyError if the file is missing or not YAML.
    """
    try:
        return parse_text(path, path.stat().st_mtime_ns)[1]
    except FileNotFoundError:
        raise StudyError(f"{show_path(path)}: no such file") from None
    except yaml.YAMLError as error:
        raise StudyError(f"{show_path(path)}: not valid YAML: {error}") from None


def show_place(path: Path, *keys: str) -> str:
    """Name a place in a YAML file for messages: the file, the line of the last key, and the keys that lead there."""
    node, line = parse_text(path, path.stat().st_mtime_ns)[0], 1
    for key in keys:
        entries = node.value if isinstance(node, yaml.MappingNode) else []
        key_node, node = next((pair for pair in entries if pair[0].value == key), (None, None))
        line = key_node.start_mark.line + 1 if key_node else line
    return f"{show_path(path)}, line {line}, {', '.join(keys)}"


def read_yaml(path: Path, schema):
    """Read and check a YAML file. Raises StudyError that names the file, the field and the problem."""
    return check_settings(show_path(path), parse_yaml(path), schema)


def check_settings(place: str, content, schema):
    """Return settings checked against a schema. Raises StudyError that names the place, the field and the problem."""
    try:
        return TypeAdapter(schema).validate_python(content)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'the file'}: {problem['msg']}"
            + (f" (got {problem['input']!r})" if problem["type"] not in ("missing", "extra_forbidden") else "")
            for problem in error.errors()
        )
        raise StudyError(f"{place}: {problems}") from None
