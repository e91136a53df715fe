"""How the library speaks: short lines on standard error, which is where a pod's log is read.

Here belongs the form of a line and nothing of its content. Not `logging` alone: a program that has
set up no handler would see warnings only, and one that logs to a file would hide them from
`kubectl logs`.
"""

import sys
from collections.abc import Callable
from typing import Final

Say = Callable[[str], None]

_RULE: Final = "*" * 78


def say(text: str) -> None:
    """Write one line. Lines that carry a tag of their own, as `[Discovery]`, get no second one."""
    tag = "" if text.startswith("[") else "[tfadmit] "
    print(f"{tag}{text}", file=sys.stderr, flush=True)  # noqa: T201 - the pod's log


def quiet(_text: str) -> None:
    """Write nothing."""


def warn(text: str) -> None:
    """Write something that must not be overlooked; also to `logging` where that is set up."""
    import logging  # noqa: PLC0415 - 10 ms that a program without a warning need not pay

    logger = logging.getLogger("tfadmit")
    if logger.hasHandlers():
        logger.warning(text)
    lines = "".join(f"* {line}\n" for line in text.splitlines())
    print(f"{_RULE}\n* [tfadmit] WARNING\n{lines}{_RULE}", file=sys.stderr, flush=True)  # noqa: T201
