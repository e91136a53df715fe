"""How far a log has been told, so that after a broken connection nothing is lost or told twice.

The API server cuts `sinceTime` to whole seconds and answers with all lines from there on. Standard
output and standard error are stamped apart from each other, so lines may stand a little out of
order, and two may have the same time and text. Therefore the lines of the last seconds are counted,
and as many of each are passed over as were told. Pure.
"""

from collections import Counter, deque

from tfadmit_client.watch import when

# By how much two streams of one container may be out of order.
_MARGIN_SECONDS = 2.0


class Position:
    """What has been told of one log."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, bytes]] = deque()
        self._again: Counter[bytes] = Counter()
        self._at = ""
        self._seconds = 0.0

    @property
    def since(self) -> str:
        """From when on the log is to be asked for again; empty for all of it."""
        return when.text(self._seconds - _MARGIN_SECONDS) if self._seconds else ""

    def reconnected(self) -> None:
        """Expect the lines of the last seconds once more."""
        self._again = Counter(raw for _, raw in self._recent)

    def take(self, raw: bytes) -> tuple[str, str] | None:
        """Give time and text of a line; None when it was told before."""
        if self._again[raw] > 0:
            self._again[raw] -= 1
            return None
        head, _, rest = raw.partition(b" ")
        stamp = head.decode("ascii", "replace")
        seconds = when.seconds(stamp)
        if seconds is None:  # the rest of a line that the runtime has split
            rest = raw
        else:
            self._at = stamp
            self._seconds = max(self._seconds, seconds)
        self._keep(raw)
        return self._at, rest.rstrip(b"\r\n").decode("utf-8", "replace")

    def _keep(self, raw: bytes) -> None:
        self._recent.append((self._seconds, raw))
        # One second more than the margin, as the time that is asked for is cut to whole seconds.
        while self._recent[0][0] < self._seconds - _MARGIN_SECONDS - 1:
            self._recent.popleft()
