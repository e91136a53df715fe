"""Progress in sentences for a log, and in one line for a terminal. Pure; the time is passed in."""

from collections.abc import Callable

from tfadmit_transfer import fault

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: float) -> str:
    """Write a number of bytes for people: `1.5 GiB`."""
    for unit in _UNITS:
        if count < 1024 or unit == _UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")


def duration(seconds: float) -> str:
    """Write a time for people: `45 s`, `3 min 20 s`, `2 h 5 min`."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole % 60} s" if minutes else f"{whole} s"


class Meter:
    """Counts bytes and says from time to time how far it is."""

    def __init__(
        self,
        *,
        what: str,
        total: int | None,
        say: Callable[[str], None],
        clock: Callable[[], float],
        every: float = 10.0,
    ) -> None:
        self._what = what
        self._total = total
        self._say = say
        self._clock = clock
        self._every = every
        self._started = clock()
        self._told = self._started
        self._fresh = 0
        self._stopped = False
        self.done = 0

    def stop(self) -> None:
        """Let whoever counts next, in whatever thread, fail."""
        self._stopped = True

    def add(self, count: int) -> None:
        """Count bytes that were transferred now.

        Raises:
            RefusedError: it was stopped.
        """
        if self._stopped:
            raise fault.RefusedError(f"{self._what}: stopped")
        self.done += count
        self._fresh += count
        if self._clock() - self._told >= self._every:
            self._told = self._clock()
            self._say(self.line())

    def skip(self, count: int) -> None:
        """Count bytes that were there already; they say nothing about the speed."""
        self.done += count

    def line(self) -> str:
        """Say how far it is."""
        elapsed = max(self._clock() - self._started, 1e-3)
        speed = self._fresh / elapsed
        if not self._total:
            return f"{self._what}: {size(self.done)}, {size(speed)}/s"
        share = 100 * self.done // self._total
        left = f", {duration((self._total - self.done) / speed)} left" if speed else ""
        return (
            f"{self._what}: {size(self.done)} of {size(self._total)} ({share} %), "
            f"{size(speed)}/s{left}"
        )

    def end(self) -> str:
        """Say what it came to."""
        elapsed = self._clock() - self._started
        return f"{self._what}: {size(self.done)} in {duration(elapsed)}"


def count(number: int, noun: str) -> str:
    """Write `1 file`, `2 files`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
