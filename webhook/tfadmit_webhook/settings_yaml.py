"""From YAML text to plain values, with every fault of the notation at once and its line.

Stricter than YAML 1.1, because settings are short and a silent misreading is expensive: a key
stands once, `on`, `off`, `yes` and `no` are text (`TFA001: off` means the level), and so are dates
and `010`. Nothing here knows which settings there are (`settings_file` does). No I/O.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from tfadmit_webhook import raw

_PREFIX = "tag:yaml.org,2002:"
_TAGS = frozenset(_PREFIX + name for name in ("map", "seq", "str", "int", "float", "bool", "null"))
# Settings are seven levels deep.
_MAX_DEPTH = 20
# Aliases of aliases multiply: a few lines can stand for more values than there is memory.
_MAX_VALUES = 100_000


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is wrong at one place of the settings."""

    path: str
    message: str

    def __str__(self) -> str:
        """Write the fault in one line."""
        return f"{self.path}: {self.message}" if self.path else self.message


class _Loader(yaml.SafeLoader):
    """Plain scalars as in YAML 1.2's core schema, without octal numbers, infinity and NaN."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 - the name and form that PyYAML reads


for _name, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
):
    _Loader.add_implicit_resolver(_PREFIX + _name, re.compile(f"(?:{_pattern})$"), list(_first))


def load(text: str) -> dict[str, Any] | list[Fault]:
    """Read one YAML document that is a mapping; an empty one is an empty mapping."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None or node.tag == _PREFIX + "null":
            return {}
        if not isinstance(node, yaml.MappingNode):
            return [Fault(path="", message="the settings must be a mapping of names to values")]
        if faults := _multiplied(node) or list(_faults(node, path=(), depth=0)):
            return faults
        values: dict[str, Any] = loader.construct_document(node)
    except yaml.YAMLError as error:
        return [Fault(path="", message=f"no readable YAML: {_sentence(error)}")]
    except (RecursionError, ValueError) as error:  # ValueError: a number of thousands of digits
        words = "it is nested too deep" if isinstance(error, RecursionError) else error
        return [Fault(path="", message=f"no readable YAML: {words}")]
    return values


def _multiplied(node: yaml.Node) -> list[Fault]:
    if _size(node, known={}) <= _MAX_VALUES:
        return []
    words = f"its aliases stand for more than {_MAX_VALUES:,} values: write them out"
    return [Fault(path="", message=f"no readable YAML: {words}")]


def _size(node: yaml.Node, *, known: dict[int, int]) -> int:
    """Count the values that a node stands for; each node is looked at once."""
    if id(node) not in known:
        known[id(node)] = _MAX_VALUES + 1  # for an alias that contains itself
        parts: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            parts = node.value
        elif isinstance(node, yaml.MappingNode):
            parts = [value for _, value in node.value]
        known[id(node)] = 1 + sum(_size(part, known=known) for part in parts)
    return known[id(node)]


def _faults(node: yaml.Node, *, path: raw.Path, depth: int) -> Iterator[Fault]:
    where = raw.dotted(path)
    if depth > _MAX_DEPTH:
        yield Fault(path=where, message="is nested too deep")
    elif node.tag not in _TAGS:
        yield Fault(path=where, message=f"has the tag {node.tag}: write a plain value")
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _faults(item, path=(*path, index), depth=depth + 1)
    elif isinstance(node, yaml.MappingNode):
        yield from _mapping_faults(node, path=path, depth=depth)


def _mapping_faults(node: yaml.MappingNode, *, path: raw.Path, depth: int) -> Iterator[Fault]:
    lines: dict[str, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if key.tag != _PREFIX + "str":
            message = f"the key in line {line} must be text: write it in quotes"
            yield Fault(path=raw.dotted(path), message=message)
            continue
        inner = (*path, str(key.value))
        if key.value in lines:
            message = f"stands twice, in lines {lines[key.value]} and {line}: keep one"
            yield Fault(path=raw.dotted(inner), message=message)
        lines.setdefault(key.value, line)
        yield from _faults(value, path=inner, depth=depth + 1)


def _sentence(error: yaml.YAMLError) -> str:
    """Say what PyYAML found in one line."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        mark = error.problem_mark
        return f"{error.problem} in line {mark.line + 1}, column {mark.column + 1}"
    return " ".join(str(error).split())
