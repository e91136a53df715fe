"""Why a task cannot start: one exception per kind, each with the exit code that it deserves.

The codes decide what happens next. The shipped runtimes fail a training at once on 1, 2, 126 and
127, because trying again cannot help, and start all tasks again on any other code.
"""

from typing import Final

# Wrong usage or a wrong environment: the same on every attempt. As argparse and the shell use it.
USAGE: Final = 2
# EX_TEMPFAIL of sysexits.h, "try again later": a peer may come on the next attempt.
RETRYABLE: Final = 75
# As a shell: found but cannot be executed; not found.
NOT_EXECUTABLE: Final = 126
NOT_FOUND: Final = 127
# As a shell: ended by signal n gives 128 + n.
BY_SIGNAL: Final = 128


class StartError(Exception):
    """A task cannot start; the message says what, where, why and what to do."""

    exit_code: int = USAGE


class SetupError(StartError):
    """The environment is wrong, so the cluster cannot be known."""


class DiscoveryError(StartError):
    """Name servers did not show the peers in time; they may on the next attempt."""

    exit_code = RETRYABLE


class CommandError(StartError):
    """The program cannot be executed."""

    def __init__(self, message: str, *, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code
