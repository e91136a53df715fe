"""How long the API server waits for an answer, from the query `?timeout=10s` of its call.

Pure: the clock is an argument.
"""

import re
from collections.abc import Callable

# The API server sends what Go's time.Duration prints: 10s, 1m0s, 500ms, 2.5s.
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNITS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}
# The largest timeoutSeconds that a webhook configuration can have.
_LONGEST = 30.0
# Time for the answer to be written, to travel and to be read before the API server gives up; for a
# short patience at most a fifth of it.
_MARGIN = 0.25
_MARGIN_SHARE = 0.2


def seconds(text: str | None, *, default: float) -> float:
    """Read a Go duration; the default where there is none that makes sense.

    A duration that cannot be read is no reason to refuse a pod: the review itself is fine.
    """
    parts = _PART.findall(text or "")
    if not text or "".join(number + unit for number, unit in parts) != text:
        return default
    total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return min(total, _LONGEST) if total > 0 else default


def remaining(
    *, arrived: float, patience: float, clock: Callable[[], float]
) -> Callable[[], float]:
    """Give a function that tells how many seconds are left to work; negative when none are."""
    end = arrived + patience - min(_MARGIN, patience * _MARGIN_SHARE)
    return lambda: end - clock()
