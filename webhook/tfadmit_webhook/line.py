"""The line between the main process and a process that answers reviews: questions and answers.

The main process asks for metrics and for what keeps requests away; the other answers in its event
loop, so that no answer also says that the loop stands still. When the main process is gone the line
breaks, and the other ends. Both are the same program at the same version, so objects are passed as
they are. Processes are made in `processes`.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from typing import Any

_BROKEN = (EOFError, OSError)
# Questions without an answer. A line holds some hundreds; then to ask would be to wait for ever.
_MOST_OPEN = 16
# The number of a message that nobody asked for.
_UNASKED = -1


class Asker:
    """The main process' end; for one thread."""

    def __init__(self, connection: Connection, *, patience: float) -> None:
        """Args: `patience` is how many seconds an answer may take."""
        self._connection = connection
        self._patience = patience
        self._number = 0
        self._heard = 0
        self.last: dict[str, Any] = {}
        """The latest answer to each question, also when the other side is gone."""

    def close(self) -> None:
        """Give up this end."""
        self._connection.close()

    def ask(self, question: str) -> Any:  # noqa: ANN401 - whatever was asked for
        """Ask; None when there is no answer in time."""
        end = time.monotonic() + self._patience
        try:
            while self._number - self._heard >= _MOST_OPEN:
                if not self._connection.poll(max(0.0, end - time.monotonic())):
                    return None
                self._take()
            self._number += 1
            self._connection.send((self._number, question))
            while self._connection.poll(max(0.0, end - time.monotonic())):
                if self._take() == self._number:
                    return self.last[question]
        except _BROKEN:
            with contextlib.suppress(*_BROKEN):  # what it left behind may not be read yet
                while True:
                    self._take()
        return None

    def _take(self) -> int:
        number, answers = self._connection.recv()
        self.last |= answers
        self._heard = max(self._heard, number)
        return int(number)


class Answerer:
    """The other end, opened and closed with the server's life; for the loop's thread."""

    def __init__(
        self,
        connection: Connection,
        *,
        answers: Mapping[str, Callable[[], Any]],
        broken: Callable[[], None],
    ) -> None:
        """Prepare to answer.

        Args:
            connection: to the main process.
            answers: what to do by question; in a thread, since some take milliseconds.
            broken: is called once when the main process is gone.
        """
        self._connection = connection
        self._answers = answers
        self._broken = broken
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._lock = threading.Lock()

    def open(self) -> None:
        """Answer from now on."""
        self._loop.add_reader(self._connection.fileno(), self._read)

    def close(self) -> None:
        """Answer no more."""
        self._loop.remove_reader(self._connection.fileno())

    async def finish(self, seconds: float) -> None:
        """Leave all answers behind: they may still be asked for when this process is gone."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(
                asyncio.to_thread(self._answer, _UNASKED, *self._answers), seconds
            )

    def sweep(self) -> None:
        """Nothing grows old here."""

    def _read(self) -> None:
        try:
            number, question = self._connection.recv()
        except _BROKEN:
            self.close()
            self._broken()
            return
        task = self._loop.create_task(asyncio.to_thread(self._answer, number, question))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _answer(self, number: int, *questions: str) -> None:
        answers = {question: self._answers[question]() for question in questions}
        with self._lock, contextlib.suppress(*_BROKEN):
            self._connection.send((number, answers))
