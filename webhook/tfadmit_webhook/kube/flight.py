"""One question for many askers: a burst of pods of one JobSet asks the API server once or twice.

Each asker gets the answer to a question that was asked after it came, never to one that was already
on its way: the pod may have been made from a newer object than that one reports. So at most one
question per key is on its way, and at most one waits. Threads only, no I/O.
"""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


@dataclass(eq=False)
class _Flight(Generic[Answer]):
    done: threading.Event = field(default_factory=threading.Event)
    answer: Answer | None = None
    error: Exception | None = None


class Flights(Generic[Answer]):
    """Questions on their way and questions that wait, by key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, _Flight[Answer]] = {}
        self._flying: dict[Hashable, _Flight[Answer]] = {}

    def ask(
        self, key: Hashable, question: Callable[[], Answer | None], *, timeout: float
    ) -> Answer | None:
        """Ask, or join those who wait to ask the same.

        Raises:
            TimeoutError: another asker's question was not answered in time.
            Exception: what the question itself raised, for all who joined.
        """
        with self._lock:
            flight = self._waiting.get(key)
            earlier = self._flying.get(key)
            leads = flight is None
            if flight is None:
                flight = self._waiting[key] = _Flight()
        if leads:
            self._fly(key, flight, question, after=earlier, timeout=timeout)
        elif not flight.done.wait(timeout):
            raise TimeoutError
        if flight.error:
            raise flight.error
        return flight.answer

    def _fly(
        self,
        key: Hashable,
        flight: _Flight[Answer],
        question: Callable[[], Answer | None],
        *,
        after: _Flight[Answer] | None,
        timeout: float,
    ) -> None:
        if after:
            after.done.wait(timeout)
        with self._lock:
            del self._waiting[key]
            self._flying[key] = flight
        try:
            flight.answer = question()
        except Exception as error:  # noqa: BLE001 - handed to everybody who asked
            flight.error = error
        finally:
            with self._lock:
                if self._flying.get(key) is flight:
                    del self._flying[key]
            flight.done.set()
