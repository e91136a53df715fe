"""Becoming another program, and what stands in the way of it in words.

Here is the last step of `run`, after which nothing of this process is left.
"""

import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from tfadmit_trainer import fault
from tfadmit_trainer.fault import CommandError

# Python ignores these two, and a program would inherit that: `yes | head` would never end.
_IGNORED_BY_PYTHON: Final = ("SIGPIPE", "SIGXFSZ")
_OTHER_CAUSES: Final = {
    "Exec format error": "it is no program for this machine, or a script without a first line "
    "like #!/bin/sh",
    "Argument list too long": "one variable of its environment or one argument is over 128 KiB, or "
    "all together are over the limit of the stack",
}


def become(command: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """Replace this process by the program.

    Raises:
        CommandError: it cannot be executed.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    numbers = [getattr(signal, name) for name in _IGNORED_BY_PYTHON]
    before = {number: signal.signal(number, signal.SIG_DFL) for number in numbers}
    try:
        os.execvpe(command[0], list(command), dict(env))  # noqa: S606 - no shell is what we want
    except (OSError, ValueError) as error:
        # This process goes on, and has yet to write why.
        for number, handler in before.items():
            signal.signal(number, handler)
        raise _error(command[0], error, path=env.get("PATH")) from error


def _error(name: str, error: OSError | ValueError, *, path: str | None) -> CommandError:
    if isinstance(error, ValueError):
        return CommandError(f"{name!r}: {error}", exit_code=fault.NOT_EXECUTABLE)
    found = shutil.which(name, mode=os.F_OK, path=path)
    if isinstance(error, FileNotFoundError) and found:
        why = "the program in its first line (#!) is not there: name it yourself, as python"
    elif isinstance(error, FileNotFoundError):
        return CommandError(
            f"command {name!r} is not there: is it in the image, and in PATH?",
            exit_code=fault.NOT_FOUND,
        )
    elif isinstance(error, PermissionError):
        why = f"no permission to execute it: chmod +x, or start it by its language, python {name}"
    else:
        why = _OTHER_CAUSES.get(os.strerror(error.errno or 0), str(error.strerror))
    return CommandError(
        f"command {found or name!r} cannot be executed: {why}", exit_code=fault.NOT_EXECUTABLE
    )
