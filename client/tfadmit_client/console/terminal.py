"""What is told beside the output, on standard error: lines that stay, and one that is drawn again.

Here: how it is written, whether somebody looks on, and output that must not end what it tells of.
What it says is up to the command.
"""

import contextlib
import os
import sys
from collections.abc import Callable
from typing import ClassVar

from tfadmit_client import fault
from tfadmit_client.console import plain

# To the beginning of the line, and clear it.
_CLEAR = "\r\x1b[K"


def say(text: object) -> None:
    """Print what may be the text of others."""
    print(plain.text(str(text)), file=sys.stderr, flush=True)


class OutputError(fault.ClientError):
    """Nobody takes the output: its reader has gone, or the disk is full."""

    code: ClassVar[int] = 141
    """As of other programs whose reader has gone."""


def out(text: str) -> None:
    """Print output at once, of what has been done and stays done.

    Raises:
        OutputError: it cannot be written; what else is printed goes nowhere.
    """
    try:
        print(text, flush=True)
    except OSError as error:
        # Else the interpreter tries what is left once more when it ends, and complains.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputError(f"the output cannot be written: {error.strerror or error}") from error


def bar() -> Callable[[str], None] | None:
    """Give what draws the line; None where nobody looks on. Empty text takes it away."""
    return _draw if sys.stderr.isatty() else None


def tell(line: str) -> None:
    """Print a line that stays, in the place of the one that is drawn."""
    print(f"{_CLEAR if sys.stderr.isatty() else ''}{plain.text(line)}", file=sys.stderr, flush=True)


def _draw(line: str) -> None:
    print(f"{_CLEAR}{plain.cell(line)}", end="", file=sys.stderr, flush=True)
