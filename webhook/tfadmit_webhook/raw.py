"""Reading JSON objects of the API as they come: every field may be absent, null or of another type.

Kubernetes treats null as absent everywhere (clients do send it), so these readers do too. They
never copy and never complain; what is missing reads as empty. Nothing here knows a Kubernetes kind.
"""

from collections.abc import Mapping, Sequence
from typing import Any

JsonObject = Mapping[str, Any]
Path = tuple[str | int, ...]

_NOTHING: JsonObject = {}


def mapping(value: object) -> JsonObject:
    """Give the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else _NOTHING


def sequence(value: object) -> Sequence[Any]:
    """Give the value if it is an array, else an empty one."""
    return value if isinstance(value, list) else ()


def text(value: object) -> str:
    """Give the value if it is a string, else the empty one."""
    return value if isinstance(value, str) else ""


def count(value: object, *, default: int) -> int:
    """Give the value if it is a number of things, else the default."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return default


def at(document: object, path: Path) -> Any:  # noqa: ANN401 - JSON has any type
    """Follow a path of keys and indexes; None where it leads nowhere."""
    value = document
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def strings(value: object) -> dict[str, str]:
    """Give the entries of an object that have string values, as labels and annotations do."""
    return {key: item for key, item in mapping(value).items() if isinstance(item, str)}


def dotted(path: Path) -> str:
    """Write a path as people do in Kubernetes: `spec.containers[0].env`, `labels[a.b/c]`."""
    words = [f".{step}" if str(step).isidentifier() else f"[{step}]" for step in path]
    return "".join(words).lstrip(".")
