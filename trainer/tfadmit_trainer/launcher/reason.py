"""Why a program failed, in one line out of what it printed. Pure."""

import re
import signal
from typing import Final

_BEGIN: Final = re.compile(r"^\s*(?:\|\s*)?Traceback \(most recent call last\):")
# Of several exceptions at once, each in a box; the first line of its own names the whole.
_GROUP: Final = re.compile(r"^\s*\+ Exception Group Traceback \(most recent call last\):")
_BOXED: Final = re.compile(r"^\s*\| (\S.*)")
_PLAIN: Final = "Traceback (most recent call last):"
# What the start of the program says is no word of the program.
_OURS: Final = "[tfadmit] "
_HINTS: Final[dict[int, str]] = {
    signal.SIGKILL: ", as when memory runs out",
    signal.SIGSEGV: ", a crash in native code",
    signal.SIGTERM: ", as when a pod is deleted or evicted",
}


def of(code: int, *, number: int | None, errors: bytes, output: bytes) -> str:
    """Give the last line of the traceback, else the last line that was printed.

    `errors` and `output` are the ends of the two streams; `number` is the signal, if one ended it.
    """
    said = _traceback(_lines(errors)) or _traceback(_lines(output))
    if number is not None and not said:
        return f"ended by {_name(number)}{_HINTS.get(number, '')}"
    said = said or _last(_lines(errors)) or _last(_lines(output))
    return said or f"exit code {code}, and nothing was printed"


def _lines(text: bytes) -> list[str]:
    decoded = text.decode("utf-8", errors="replace").replace("\r", "\n")
    lines = (line.rstrip() for line in decoded.split("\n"))
    return [line for line in lines if line and not line.startswith(_OURS)]


def _traceback(lines: list[str]) -> str:
    """Give the line that names the exception: the first after the frames, which are indented."""
    groups = [at for at, line in enumerate(lines) if _GROUP.match(line)]
    if groups and _PLAIN not in lines[groups[-1] :]:
        boxed = [found[1] for line in lines[groups[-1] :] if (found := _BOXED.match(line))]
        named = [line for line in boxed if line != _PLAIN]
        return ", the first: ".join(named[:2])
    starts = [at for at, line in enumerate(lines) if _BEGIN.match(line)]
    for line in lines[starts[-1] + 1 :] if starts else ():
        if not line[:1].isspace():
            return line
    return ""


def _last(lines: list[str]) -> str:
    return lines[-1].strip() if lines else ""


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
