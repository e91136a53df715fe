"""Blocking calls side by side, on few threads that never keep a process from ending.

Not `concurrent.futures`: it joins its threads when the interpreter ends, and a look-up that waits
for a dead name server holds a thread for up to half a minute.
"""

import queue
import threading
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")

# Enough for 16,000 answers a second at 1 ms each, far above what `schedule` allows; what it is for
# is that some answers take seconds.
THREADS: Final = 16


class _End:
    """Asks a thread to end."""


_END: Final = _End()


class Pool(Generic[Key, Result]):
    """Calls one function for many keys. One thread uses it; results come in any order."""

    def __init__(self, call: Callable[[Key], Result], *, threads: int = THREADS) -> None:
        self._call = call
        self._most = threads
        self._threads = 0
        self._asked: queue.SimpleQueue[Key | _End] = queue.SimpleQueue()
        self._answered: queue.SimpleQueue[tuple[Key, Result | BaseException]] = queue.SimpleQueue()
        self.in_flight = 0

    def submit(self, key: Key) -> None:
        """Call the function for this key as soon as a thread is free."""
        self._asked.put(key)
        self.in_flight += 1
        if self._threads < min(self._most, self.in_flight):
            self._threads += 1
            threading.Thread(target=self._work, name="tfadmit-pool", daemon=True).start()

    def collect(self, *, timeout: float) -> list[tuple[Key, Result]]:
        """Give what has come back, after waiting at most `timeout` seconds for the first."""
        results: list[tuple[Key, Result]] = []
        while self.in_flight:
            try:
                key, result = self._answered.get(timeout=0 if results else max(timeout, 0))
            except queue.Empty:
                break
            self.in_flight -= 1
            if isinstance(result, BaseException):
                raise result
            results.append((key, result))
        return results

    def close(self) -> None:
        """Let the threads end, each when it has finished what it does."""
        for _ in range(self._threads):
            self._asked.put(_END)

    def _work(self) -> None:
        while True:
            key = self._asked.get()
            if isinstance(key, _End):
                return
            try:
                self._answered.put((key, self._call(key)))
            except BaseException as error:  # noqa: BLE001 - raised again in `collect`
                self._answered.put((key, error))
