"""One line of the terminal that is drawn again and again, on standard error.

Here: how it is drawn, and whether somebody looks on. What it says is up to the command.
"""

import sys
from collections.abc import Callable

# To the beginning of the line, and clear it.
_CLEAR = "\r\x1b[K"


def bar() -> Callable[[str], None] | None:
    """Give what draws the line; None where nobody looks on. Empty text takes it away."""
    return _draw if sys.stderr.isatty() else None


def tell(line: str) -> None:
    """Print a line that stays, in the place of the one that is drawn."""
    print(f"{_CLEAR if sys.stderr.isatty() else ''}{line}", file=sys.stderr, flush=True)


def _draw(line: str) -> None:
    print(f"{_CLEAR}{line}", end="", file=sys.stderr, flush=True)
