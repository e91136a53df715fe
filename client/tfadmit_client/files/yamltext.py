"""YAML as kubectl reads it: text in, plain values and their places out.

kubectl reads YAML 1.1 by go.yaml.in/yaml/v2, which differs from PyYAML in its plain scalars: `y`
and `n` are booleans, times and base-60 numbers are strings, `08` is a number. Duplicate keys are
refused, as the API server does. Nothing here knows files or Kubernetes.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import yaml

from tfadmit_webhook import raw

_TAG = "tag:yaml.org,2002:"
# Escapes may name halves of a character (UTF-16); no text of Kubernetes can hold one.
_HALF = re.compile("[\ud800-\udfff]")
_TRUE = frozenset(("y", "yes", "true", "on"))
_BOOL = re.compile(
    r"[yYnN]|yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"
)
_INT = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NULL = re.compile(r"~|null|Null|NULL|")
# Floats from here on have no exact integer any more, so they stay floats.
_EXACT = 2**53
# Aliases of aliases multiply: a few lines can stand for more values than there is memory. The API
# server takes objects of 3 MiB, in which there is no room for so many.
_MAX_VALUES = 2_000_000
# No number of Kubernetes has more than 64 bits; int() itself stops at some thousands of digits.
_MAX_DIGITS = 100


class _Loader(yaml.SafeLoader):
    """Composes nodes only; the values are built here."""


_Loader.yaml_implicit_resolvers = {}
for _name, _pattern in (("bool", _BOOL), ("int", _INT), ("float", _FLOAT), ("null", _NULL)):
    _Loader.add_implicit_resolver(_TAG + _name, re.compile(f"(?:{_pattern.pattern})$"), None)
_Loader.add_implicit_resolver(_TAG + "merge", re.compile(r"<<$"), ["<"])


class _Words(_Loader):
    """The same, but numbers and keys stay as they are written: `1e-5`, `007`, the key `N`."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:  # noqa: ANN401 - its caller's
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        for key, _ in node.value:
            if key.tag == _TAG + "bool":
                key.tag = _TAG + "str"
        return node


_Words.yaml_implicit_resolvers = {
    first: kept
    for first, found in _Loader.yaml_implicit_resolvers.items()
    if (kept := [item for item in found if item[0] not in (_TAG + "int", _TAG + "float")])
}


def is_text(word: str) -> bool:
    """Whether kubectl reads a word without quotes as a string."""
    ours = any(pattern.fullmatch(word) for pattern in (_BOOL, _INT, _FLOAT, _NULL))
    return not ours and word != "<<"


class TextError(Exception):
    """Text that is no such YAML; `line` counts from 1."""

    def __init__(self, reason: str, *, line: int) -> None:
        super().__init__(reason)
        self.line = line


@dataclass(frozen=True, kw_only=True)
class Document:
    """One document of a stream, or one item of a list in it."""

    content: Any
    line: int
    place: "Place"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in a text a document stands: in which of the stream, and below which field of it."""

    ordinal: int = 0
    prefix: raw.Path = ()


def documents(text: str, *, numbers: bool = True) -> Iterator[Document]:
    """Read every document that is not empty; `items` of Kubernetes lists count as documents.

    Without `numbers` those, and all keys, are text as it is written.

    Raises:
        TextError: the text is no YAML.
    """
    try:
        for ordinal, node in enumerate(_nodes(text, _Loader if numbers else _Words)):
            if _size(node, known={}) > _MAX_VALUES:
                reason = f"aliases that stand for more than {_MAX_VALUES:,} values: write them out"
                raise TextError(reason, line=node.start_mark.line + 1)
            yield from _documents(node, Place(ordinal=ordinal))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise TextError(_reason(error), line=mark.line + 1 if mark else 1) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        reason = f"the character U+{int(error.character):04X} is not allowed"
        raise TextError(reason, line=line) from error
    except RecursionError as error:
        raise TextError("nested too deep", line=1) from error


@dataclass(frozen=True, kw_only=True)
class Position:
    """A place in a text; both count from 1, as editors do."""

    line: int
    column: int


def locate(text: str, place: Place, path: raw.Path) -> Position:
    """Find where a field of a document stands.

    A field that is not there is shown at the nearest parent that is. JSON is YAML, so this works
    for both.
    """
    return locator(text, place)(path)


def locator(text: str, place: Place) -> Callable[[raw.Path], Position]:
    """Give a function that finds fields of one document, which reads the text only once."""
    for ordinal, node in enumerate(_nodes(text)):
        if ordinal == place.ordinal:
            return lambda path: _descend(node, (*place.prefix, *path))
    raise ValueError(f"there is no document {place.ordinal}")


def _descend(node: yaml.Node, path: raw.Path) -> Position:
    mark = node.start_mark
    for step in path:
        found = _child(node, step)
        if found is None:
            break
        key, node = found
        mark = key.start_mark
    return Position(line=mark.line + 1, column=mark.column + 1)


def _child(node: yaml.Node, step: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Give the node at which a child is shown (its key), and the child."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step]
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value == step:
                return key, value
    return None


def _nodes(text: str, kind: type[_Loader] = _Loader) -> Iterator[yaml.Node]:
    loader = kind(text)
    try:
        while loader.check_node():
            if node := loader.get_node():
                yield node
    finally:
        loader.dispose()


def _size(node: yaml.Node, *, known: dict[int, int]) -> int:
    """Count the values that a node stands for; each node is looked at once."""
    if id(node) not in known:
        known[id(node)] = 1  # an alias that contains itself is told by `_value`
        parts: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            parts = node.value
        elif isinstance(node, yaml.MappingNode):
            parts = [value for _, value in node.value]
        known[id(node)] += sum(_size(part, known=known) for part in parts)
    return known[id(node)]


def _documents(node: yaml.Node, place: Place) -> Iterator[Document]:
    content = _value(node, above=())
    if content is None:
        return
    items = _items(node, content)
    if items is None:
        yield Document(content=content, line=node.start_mark.line + 1, place=place)
        return
    for index, item in enumerate(items):
        prefix = (*place.prefix, "items", index)
        for document in _documents(item, Place(ordinal=place.ordinal, prefix=prefix)):
            yield replace(document, content=typed(document.content, content))


def typed(item: Any, within: Any) -> Any:  # noqa: ANN401 - YAML has any type
    """Give an item of a `PodList` the kind that only the list states, as the API server does."""
    kind = str(within.get("kind")).removesuffix("List")
    if not isinstance(item, dict) or not kind or "kind" in item:
        return item
    return {"apiVersion": within.get("apiVersion"), "kind": kind, **item}


def _items(node: yaml.Node, content: object) -> list[yaml.Node] | None:
    """Give the nodes below `items` of a `kind: List` (or PodList, …), None for another object."""
    if not isinstance(content, dict) or not str(content.get("kind")).endswith("List"):
        return None
    found = [value for key, value in node.value if key.value == "items"]
    return found[0].value if found and isinstance(found[0], yaml.SequenceNode) else None


def _value(node: yaml.Node, *, above: tuple[int, ...]) -> Any:  # noqa: ANN401 - YAML has any type
    if id(node) in above:
        raise TextError("an alias that contains itself", line=node.start_mark.line + 1)
    below = (*above, id(node))
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, above=below)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, above=below) for item in node.value]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    raise TextError("neither a map, a list nor a scalar", line=node.start_mark.line + 1)


def _mapping(node: yaml.MappingNode, *, above: tuple[int, ...]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    own: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise TextError("a key must be a word, not a map or a list", line=line)
        if key_node.tag == _TAG + "merge":
            merged = {**_merge(value_node, above=above), **merged}
            continue
        key = _key(key_node)
        if key in lines:
            raise TextError(f"key {key!r} is there twice, first in line {lines[key]}", line=line)
        lines[key] = line
        own[key] = _value(value_node, above=above)
    return {**merged, **own}


def _merge(node: yaml.Node, *, above: tuple[int, ...]) -> dict[str, Any]:
    value = _value(node, above=above)
    sources = value if isinstance(value, list) else [value]
    if not all(isinstance(source, dict) for source in sources):
        raise TextError("<< must name a map, or a list of maps", line=node.start_mark.line + 1)
    # of several the first one wins
    return {key: item for source in reversed(sources) for key, item in source.items()}


def _key(node: yaml.ScalarNode) -> str:
    """Keys of JSON are strings; the conversion is that of sigs.k8s.io/yaml."""
    value = _scalar(node)
    if value is None:
        raise TextError("a key is empty", line=node.start_mark.line + 1)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _scalar(node: yaml.ScalarNode) -> str | int | float | None:
    text, tag = str(node.value), node.tag.removeprefix(_TAG)
    if _HALF.search(text):
        raise TextError(r"half of a character (\ud800 to \udfff)", line=node.start_mark.line + 1)
    if tag == "bool":
        return text.lower() in _TRUE
    if tag == "int":
        if len(text) > _MAX_DIGITS:
            raise TextError("a number of too many digits", line=node.start_mark.line + 1)
        return _int(text.replace("_", ""))
    if tag == "float":
        number = float(text)
        return int(number) if number.is_integer() and abs(number) < _EXACT else number
    if tag == "null":
        return None
    if tag in ("str", "merge", "binary", "timestamp"):
        return text
    raise TextError(f"unknown tag {node.tag}", line=node.start_mark.line + 1)


def _int(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    # Go reads 0777 as octal, Python refuses it
    octal = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    return sign * int(digits, 8 if octal else 0)


def _reason(error: yaml.MarkedYAMLError) -> str:
    words = [part for part in (error.context, error.problem) if part]
    reason = ", ".join(words) or "no valid YAML"
    return f"{reason} (indent with spaces, not with tabs)" if "'\\t'" in reason else reason
