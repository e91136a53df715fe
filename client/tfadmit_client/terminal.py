"""What is told beside the output, on standard error: lines that stay, and one that is drawn again.

Here: how it is written, and whether somebody looks on. What it says is up to the command.
"""

import sys
from collections.abc import Callable

from tfadmit_client import plain

# To the beginning of the line, and clear it.
_CLEAR = "\r\x1b[K"


def say(text: object) -> None:
    """Print what may be the text of others."""
    print(plain.text(str(text)), file=sys.stderr, flush=True)


def bar() -> Callable[[str], None] | None:
    """Give what draws the line; None where nobody looks on. Empty text takes it away."""
    return _draw if sys.stderr.isatty() else None


def tell(line: str) -> None:
    """Print a line that stays, in the place of the one that is drawn."""
    print(f"{_CLEAR if sys.stderr.isatty() else ''}{plain.text(line)}", file=sys.stderr, flush=True)


def _draw(line: str) -> None:
    print(f"{_CLEAR}{plain.cell(line)}", end="", file=sys.stderr, flush=True)
