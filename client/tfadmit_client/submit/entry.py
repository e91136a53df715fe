"""Whether the program that was named is in the code that was packed, and can run. Pure.

A forgotten file is found here in a moment, and in a pod after minutes in a queue.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from tfadmit_client.submit.pack import Packed

_PYTHON: Final = re.compile(r"(.*/)?python[0-9.]*")
# What else may stand between `python` and its file without a value of its own.
_ALONE: Final = re.compile(r"-[bBdEiIOPqsSuvx]+")
# As many as Linux follows.
_MOST_LINKS: Final = 40
_SHOWN: Final = 5


def mistakes(command: Sequence[str], packed: Packed, *, folder: str) -> Iterator[str]:
    """Say what is missing of the program."""
    path = _file(command)
    if path is None:
        return
    relative = str(PurePosixPath(path))
    landing = _landing(relative, packed)
    entry = packed.entries.get(landing)
    if entry is None:
        yield f"{path}: {_why(landing, packed, folder=folder)}"
    elif entry.target is not None:
        yield f"{path} is a link that leads to itself; name the program"
    elif path == command[0] and entry.is_folder:
        yield f"{path} is a folder: name the program in it"
    elif path == command[0] and not entry.is_executable:
        yield (
            f"{path} is not executable: chmod +x {relative}, or start it by its language, as in "
            f"-- python {relative}"
        )


def warnings(packed: Packed) -> Iterator[str]:
    r"""Say which scripts Linux cannot start: it takes the `\r` of Windows for a part of the name.

    Files travel byte by byte, so whoever wrote them mends them. One that an interpreter is given,
    as in `python train.py`, does not matter, so only those that may be executed are told.
    """
    ends = {
        path: line.rstrip("\r").strip()
        for path, line in packed.interpreters.items()
        if line.endswith("\r") and packed.entries[path].is_executable
    }
    shown = [*ends][:_SHOWN]
    more = f" and {len(ends) - _SHOWN} more" if len(ends) > _SHOWN else ""
    if shown:
        yield (
            f"{', '.join(shown)}{more}: the lines end as on Windows, and Linux looks for an "
            f"interpreter {ends[shown[0]]}\\r, which is not there; save them as Unix has it, as by "
            f"sed -i 's/\\r$//' {shlex.join(shown)}"
        )


def _file(command: Sequence[str]) -> str | None:
    """Give the file of the code that the program starts with, if it is certain which."""
    first = command[0]
    if first.startswith("./"):
        return first
    if not _PYTHON.fullmatch(first):
        return None
    rest = [word for word in command[1:] if not _ALONE.fullmatch(word)]
    if not rest or not rest[0].endswith(".py") or rest[0].startswith(("-", "/", "../")):
        return None
    return rest[0]


def _landing(path: str, packed: Packed) -> str:
    """Follow the links of the code, as the system will: `link/train.py` is `real/train.py`."""
    done: list[str] = []
    rest = [*reversed(PurePosixPath(path).parts)]
    hops = 0
    while rest:
        part = rest.pop()
        if part == "..":
            del done[-1:]
            continue
        done.append(part)
        entry = packed.entries.get("/".join(done))
        if entry is not None and entry.target is not None and hops < _MOST_LINKS:
            hops += 1
            done.pop()
            rest.extend(reversed(PurePosixPath(entry.target).parts))
    return "/".join(done)


def _why(path: str, packed: Packed, *, folder: str) -> str:
    parts = PurePosixPath(path).parents
    left_out = {path, *map(str, parts)} & packed.left_out
    if left_out:
        return (
            f"the ignore files leave {min(left_out)} out of the code; take it back by a line "
            f"`!{min(left_out)}` in .tfadmitignore"
        )
    near = [name for name in packed.entries if PurePosixPath(name).name == PurePosixPath(path).name]
    if near:
        return f"it is not in --code {folder}, but {near[0]} is: write that"
    return f"it is not in --code {folder}; name the folder it is in, and its path from there"
