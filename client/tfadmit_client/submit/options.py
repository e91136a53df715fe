"""The options of `tfadmit run`, as text: the same for flags, files and the Python function.

Here is which options there are and how three sources of them become one. What a text means is
read in `words`; nothing is judged here.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from tfadmit_client import fault
from tfadmit_webhook import raw

Placement = Literal["spread", "pack"]
# What a file may say besides the fields below.
_COMMAND: Final = "command"
_FLAGS: Final = ("chief", "evaluator")
_LISTS: Final = ("data", "env")
_NUMBERS: Final = ("workers", "ps")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a user asks for. None stands for what was not said."""

    command: tuple[str, ...] = ()
    name: str | None = None
    workers: str | None = None
    ps: str | None = None
    chief: bool | None = None
    evaluator: bool | None = None
    cpu: str | None = None
    memory: str | None = None
    gpu: str | None = None
    image: str | None = None
    code: str | None = None
    data: tuple[str, ...] = ()
    output: str | None = None
    env: tuple[str, ...] = ()
    deadline: str | None = None
    runtime: str | None = None
    patch: Mapping[str, Any] | None = None
    queue: str | None = None
    gpu_type: str | None = None
    placement: Placement | None = None


NAMES: Final = tuple(field.name.replace("_", "-") for field in dataclasses.fields(Options))


def merged(*, over: Options, under: Options) -> Options:
    """Give the options of `over`, and those of `under` where it says nothing.

    Lists are one option: what is said above replaces the whole list below.
    """
    said = {
        field.name: value
        for field in dataclasses.fields(Options)
        if (value := getattr(over, field.name)) not in (None, ())
    }
    return dataclasses.replace(under, **said)


def from_mapping(content: object, *, source: str) -> Options:
    """Read options from a file's content, or from the annotation of an earlier run.

    Raises:
        ClientError: with every mistake in it, one a line.
    """
    if not isinstance(content, dict):
        raise fault.ClientError(
            f"{source}: must be a mapping of option names, as in `workers: 4` and `command: "
            "[python, train.py]`"
        )
    found: dict[str, Any] = {}
    mistakes: list[str] = []
    for key, value in content.items():
        try:
            found |= {} if value is None else _entry(str(key), value)
        except fault.ClientError as error:  # noqa: PERF203 - every mistake at once
            mistakes.append(f"{source}: {error}")
    if mistakes:
        raise fault.ClientError("\n".join(mistakes))
    return Options(**found)


def to_mapping(options: Options) -> dict[str, Any]:
    """Write options so that `from_mapping` gives them back; what was not said is left out."""
    values = {
        field.name.replace("_", "-"): getattr(options, field.name)
        for field in dataclasses.fields(Options)
    }
    placement = values.pop("placement")
    if placement:
        values[placement] = True
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in values.items()
        if value not in (None, ())
    }


def _entry(key: str, value: object) -> dict[str, Any]:
    name = key.replace("-", "_")
    if key in ("spread", "pack"):
        return {"placement": key} if _boolean(key, value) else {}
    if key == "placement" or key not in NAMES:
        raise fault.ClientError(f"there is no option {key!r}: use {_known()}")
    if name == _COMMAND or name in _LISTS:
        return {name: _list(key, value)}
    if name in _FLAGS:
        return {name: _boolean(key, value)}
    if name == "patch":
        if not isinstance(value, dict):
            raise fault.ClientError("`patch` must be a mapping of fields of a pod's spec")
        return {name: raw.mapping(value)}
    return {name: _scalar(key, value)}


def _list(key: str, value: object) -> tuple[str, ...]:
    if isinstance(value, dict) and key != _COMMAND:
        value = [f"{name}={_scalar(f'{key}: {name}', item)}" for name, item in value.items()]
    if isinstance(value, str) and key != _COMMAND:
        value = [value]
    if not isinstance(value, list):
        example = "[python, train.py]" if key == _COMMAND else "[NAME=VALUE]"
        raise fault.ClientError(f"`{key}` must be a list, as in `{key}: {example}`")
    return tuple(_scalar(key, item) for item in value)


def _scalar(key: str, value: object) -> str:
    if isinstance(value, bool):
        raise fault.ClientError(
            f'`{key}` is a yes or no to YAML, and not text: put it in quotes, as in `"true"`'
        )
    if not isinstance(value, (str, int, float)):
        shown = {"dict": "a mapping", "list": "a list"}.get(type(value).__name__, "nothing")
        raise fault.ClientError(f'`{key}` has {shown}: write text, as in "…"')
    return str(value)


def _boolean(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise fault.ClientError(f"`{key}` is {value!r}: write `{key}: true`, or leave it out")
    return value


def _known() -> str:
    return ", ".join(sorted({*NAMES, "spread", "pack"} - {"placement"}))
