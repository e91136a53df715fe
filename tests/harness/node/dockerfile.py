"""What a Dockerfile asks for, as far as those of this repository go. Pure: text in, values out.

An instruction that is not known here is refused: a recipe that is half understood would be built
into another image than the one that users get.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# The rest of an instruction goes on in the next line; comments may stand between the lines.
_COMMENT = re.compile(r"^\s*#.*\n", re.MULTILINE)
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_SETTINGS = frozenset({"ENV", "USER", "EXPOSE", "ENTRYPOINT", "CMD", "WORKDIR"})
_STEPS = frozenset({"RUN", "COPY"})


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One instruction of a stage: ``RUN --mount=… pip install …``."""

    name: str
    options: Mapping[str, str]
    text: str

    @property
    def is_step(self) -> bool:
        """Whether it changes files."""
        return self.name in _STEPS


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One FROM, and what follows it."""

    name: str
    base: str
    instructions: Sequence[Instruction]


class UnknownError(ValueError):
    """The file says something that is not known here."""


def parse(text: str, *, arguments: Mapping[str, str] | None = None) -> list[Stage]:
    """The stages, with `--build-arg` values in place of the defaults before the first FROM."""
    values: dict[str, str] = {}
    stages: list[tuple[str, str, list[Instruction]]] = []
    for line in _lines(text):
        word, _, rest = line.partition(" ")
        name = word.upper()
        if name == "ARG" and not stages:
            argument, _, default = rest.partition("=")
            values[argument] = (arguments or {}).get(argument, default)
        elif name == "FROM":
            base, *alias = expand(rest, values).split()
            stages.append((alias[1] if alias else str(len(stages)), base, []))
        elif name in _STEPS | _SETTINGS and stages:
            stages[-1][2].append(_instruction(name, rest.strip()))
        else:
            raise UnknownError(f"not known here: {line}")
    return [
        Stage(name=name, base=base, instructions=instructions)
        for name, base, instructions in stages
    ]


def expand(text: str, values: Mapping[str, str]) -> str:
    """The text with ``$NAME`` and ``${NAME}`` replaced."""
    return _VARIABLE.sub(lambda match: values.get(match[1] or match[2], ""), text)


def words(text: str) -> list[str]:
    """The words of an instruction in either form: JSON, or a command line."""
    if text.startswith("["):
        return [str(word) for word in json.loads(text)]
    return shlex.split(text)


def _lines(text: str) -> list[str]:
    joined = _COMMENT.sub("", text).replace("\\\n", " ")
    return [" ".join(line.split()) for line in joined.splitlines() if line.strip()]


def _instruction(name: str, rest: str) -> Instruction:
    options = {}
    while rest.startswith("--"):
        option, _, rest = rest.partition(" ")
        key, _, value = option[2:].partition("=")
        options[key] = value
    return Instruction(name=name, options=options, text=rest)
