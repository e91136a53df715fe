"""Why a program failed, in one line out of what it printed. Pure."""

import re
import signal
from typing import Final

_BEGIN: Final = re.compile(r"^\s*(?:\|\s*)?Traceback \(most recent call last\):")
_BY_SIGNAL: Final = 128
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
    return [line.rstrip() for line in decoded.split("\n") if line.strip()]


def _traceback(lines: list[str]) -> str:
    """Give the line that names the exception: the first after the frames, which are indented."""
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
