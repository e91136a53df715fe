"""When something is done next: periods of syncs, waits between tries. Pure; times are seconds."""

from collections.abc import Iterator

# A training that ends within seconds has its log saved; one that runs for days is not a burden.
_FIRST, _LONGEST = 1.0, 30.0
_GROWTH = 2.0
# Below this a whole upload costs no more than the request.
_SMALL_LOG = 8 * 1024 * 1024
# A large log is sent whole each time, as objects cannot be appended to: with every eighth more, all
# uploads of a log together are nine times its size at most.
_LOG_SHARE = 8
_LOG_PATIENCE = 300.0


def periods() -> Iterator[float]:
    """Give the times between syncs: 1, 2, 4, 8, 16, then always 30."""
    period = _FIRST
    while True:
        yield period
        period = min(period * _GROWTH, _LONGEST)


def waits(*, longest: float = 30.0) -> Iterator[float]:
    """Give the times between tries: half a second, doubling."""
    wait = 0.5
    while True:
        yield wait
        wait = min(wait * 2, longest)


def log_due(size: int, *, saved: int | None, waited: float) -> bool:
    """Whether a log of this size is saved again, of which `saved` bytes are, since `waited`."""
    if saved is None:
        return True
    if size == saved:
        return False
    if size < saved or size <= _SMALL_LOG:
        return True
    return (size - saved) * _LOG_SHARE >= saved or waited >= _LOG_PATIENCE
