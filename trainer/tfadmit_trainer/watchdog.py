"""A thread that says for whom a step waits, and ends the process after a deadline.

TensorFlow waits without end when a peer does not take part in a collective operation. Here belongs
the waiting, not what is waited for; how to look at peers stands in `barrier`, what it means in
`diagnosis`. Not for TensorFlow's start, which keeps threads of Python from running (`rendezvous`).
I/O: standard error.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from tfadmit_trainer import barrier, diagnosis, exits, peers, voice
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.diagnosis import Missing
from tfadmit_trainer.peers import Peer

# Soon, so that nobody wonders; then once a minute.
_FIRST_LINE_SECONDS: Final = 10.0
_LINE_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Watchdog:
    """What is waited for, how long, and what happens then."""

    context: TaskContext
    what: str
    """Completes "gave up after 900 s in …", for example "model.evaluate()"."""

    deadline: float
    code: int = exits.STALLED
    look: Callable[[TaskContext], Sequence[Missing]] = barrier.missing
    leave: Callable[[int, str], object] = exits.leave
    first_line: float = _FIRST_LINE_SECONDS
    _done: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Report until the work is done; end the process when it is not done in time."""
        started = time.monotonic()
        pause = min(self.first_line, self.deadline)
        while not self._done.wait(pause):
            absent = self.look(self.context)
            waited = time.monotonic() - started
            if self._done.is_set():
                return
            if waited >= self.deadline:
                self.leave(self.code, self.last_words(absent, waited=waited))
                return
            voice.say(self.progress(absent, waited=waited))
            pause = min(_LINE_SECONDS, self.deadline - waited)

    def stop(self) -> None:
        """Say that the work is done."""
        self._done.set()

    def progress(self, absent: Sequence[Missing], *, waited: float) -> str:
        """Write one line of progress."""
        others = self.context.members - 1
        if absent:
            named = peers.describe([item.peer for item in absent])
            whom = f"waiting for {named} ({len(absent)} of {self.context.members})"
        else:
            whom = f"waiting for the others, all {others} listen"
        return f"{whom}, {waited:.0f} s in {self.what}"

    def last_words(self, absent: Sequence[Missing], *, waited: float) -> str:
        """Say why this task gives up, what is likely wrong and where to look."""
        context = self.context
        own = Peer(role=context.role, index=context.index, address=context.address)
        head = f"{context.role} {context.index} gave up after {waited:.0f} s in {self.what}"
        if not absent:
            return (
                f"{head}: all other tasks listen, but not all of them came to this point. All must "
                "see the same cluster and run the same steps in the same order; their logs say "
                "where they are"
            )
        named = peers.describe([item.peer for item in absent])
        cause = diagnosis.explain(absent, own=own, total=context.members)
        return f"{head}: {named} ({len(absent)} of {context.members}) is not there: {cause}"


@contextmanager
def watching(watchdog: Watchdog) -> Iterator[None]:
    """Watch while the block runs."""
    thread = threading.Thread(target=watchdog.watch, name="tfadmit-watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        watchdog.stop()
