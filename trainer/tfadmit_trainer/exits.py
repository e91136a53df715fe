"""How a task ends: every exit code in one table, and the last words.

No other module has a number of its own. The numbers agree with `podFailurePolicy` of the shipped
runtimes: 1, 2, 126 and 127 are faults of the program, which fail the training at once and keep
its logs; anything else starts all tasks again together. I/O: standard error, and the reason for
Kubernetes by `termination`.
"""

import contextlib
import os
import signal
import sys
from typing import Final, NoReturn

from tfadmit_trainer import fault, termination, voice

OK: Final = 0
# Faults of the program: the same would happen again.
FAILED: Final = 1  # Python's own code for an exception that nobody caught
REFUSED: Final = fault.USAGE  # 2: wrong usage, a wrong configuration, missing data
NOT_EXECUTABLE: Final = fault.NOT_EXECUTABLE  # 126, as a shell
NOT_FOUND: Final = fault.NOT_FOUND  # 127, as a shell
# Faults of the surroundings: another attempt may succeed.
PEERS_MISSING: Final = fault.RETRYABLE  # 75, EX_TEMPFAIL of sysexits.h
START_STUCK: Final = int(signal.SIGALRM)  # 14, see `alarm`
PEER_LOST: Final = 76
STALLED: Final = 77
PORT_IN_USE: Final = 78
TERMINATED: Final = fault.BY_SIGNAL + signal.SIGTERM  # 143, as a shell reports it

MEANING: Final[dict[int, str]] = {
    OK: "done",
    FAILED: "the program raised an exception",
    REFUSED: "the configuration is wrong or data is missing",
    NOT_EXECUTABLE: "the command is not executable",
    NOT_FOUND: "the command was not found",
    PEERS_MISSING: "other tasks did not come up in time",
    START_STUCK: "TensorFlow's start took too long, with all tasks there",
    PEER_LOST: "another task ended or cannot be reached",
    STALLED: "other tasks did not take part in a step that all must do",
    PORT_IN_USE: "the port of this task is in use",
    TERMINATED: "the pod was asked to end",
}
PROGRAM: Final = frozenset({FAILED, REFUSED, NOT_EXECUTABLE, NOT_FOUND})


def retryable(code: int) -> bool:
    """Whether all tasks are started again after this code."""
    return code != OK and code not in PROGRAM


def leave(code: int, sentence: str) -> NoReturn:
    """End this process now, from any thread, with the sentence as its last words.

    Not by an exception: TensorFlow's threads may hold a lock that a regular end waits for. Also
    from a signal handler, and where nobody reads any more: the code counts more than the words.
    """
    try:
        _say_at_last(sentence)
        _say_at_last(f"exit code {code}: {MEANING.get(code, 'see above')}")
        leave_reason(sentence)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(RuntimeError):
                stream.flush()
    finally:
        os._exit(code)


def _say_at_last(text: str) -> None:
    try:
        voice.say(text)
    except RuntimeError:  # in a handler, in the middle of a line: the stream takes no second one
        os.write(2, f"\n[tfadmit] {text}\n".encode(errors="replace"))


def leave_reason(sentence: str) -> None:
    """Leave the reason where `kubectl describe pod` shows it."""
    if trouble := termination.write(sentence, environ=os.environ):
        _say_at_last(trouble)
