"""When a server that was told to end may stop listening. Time comes from outside; no I/O.

The API server keeps its connections, does not repeat a call that met a closed one, and learns from
the endpoints of the Service, some time later, that a pod is going. So a server that is to end goes
on answering until nobody asks any more.
"""

from collections.abc import Callable

from tfadmit_webhook.settings import Server


class Drain:
    """The way from the first signal to the end of listening."""

    def __init__(self, *, server: Server, clock: Callable[[], float]) -> None:
        self._server = server
        self._clock = clock
        self._began: float | None = None
        self._latest = float("-inf")
        self._hurried = False

    @property
    def draining(self) -> bool:
        """Whether the end was asked for: answers then ask for the connection to be closed."""
        return self._began is not None

    def begin(self) -> None:
        """Take note that the end was asked for; the first time counts."""
        if self._began is None:
            self._began = self._clock()

    def hurry(self) -> None:
        """Wait for nobody: a person is waiting at a terminal."""
        self.begin()
        self._hurried = True

    def review(self) -> None:
        """Take note that a review came."""
        self._latest = self._clock()

    def left(self) -> float:
        """Give the seconds for which listening must go on at least; 0 when it may end."""
        if self._began is None:
            return self._server.drain_seconds
        if self._hurried:
            return 0.0
        earliest = self._began + self._server.drain_seconds
        quiet = max(self._began, self._latest) + self._server.drain_quiet_seconds
        latest = self._began + self._server.drain_limit_seconds
        return max(0.0, min(max(earliest, quiet), latest) - self._clock())
