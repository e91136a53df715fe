"""Fields with a value of the wrong type: what is expected, and what stands there. Pure."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tfadmit_webhook import raw

_MAX_INT32 = 2**31 - 1
_SHOWN = 60


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something for which an object cannot be used."""

    path: raw.Path
    message: str


@dataclass(frozen=True, kw_only=True)
class Want:
    """What a field must be."""

    what: str
    check: Callable[[object], bool]


def one_of(*words: str) -> Want:
    """Expect one of these words; the empty one stands for the default."""
    shown = ", ".join(word for word in words if word)
    return Want(what=f"one of {shown}", check=lambda value: value in words)


def is_count(value: object) -> bool:
    """Whether a value is a number of things, as the API has it."""
    return raw.count(value, default=-1) >= 0 and raw.count(value, default=0) <= _MAX_INT32


def wrong(
    content: raw.JsonObject, wanted: Mapping[raw.Path, Want], *, at: raw.Path = ()
) -> Iterator[Fault]:
    """Find fields that are stated and are not what they must be."""
    for path, want in wanted.items():
        value = raw.at(content, path)
        if value is not None and not want.check(value):
            shown = json.dumps(value, default=str)
            shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
            yield Fault(path=(*at, *path), message=f"is {shown}; it must be {want.what}")


def size(content: raw.JsonObject) -> int:
    """How many bytes an object has as JSON."""
    text = json.dumps(content, separators=(",", ":"), default=str, ensure_ascii=False)
    return len(text.encode(errors="replace"))
