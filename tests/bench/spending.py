"""Processor time and memory of a server with all its processes, from /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What a process and its descendants used since they began."""

    cpu_seconds: float
    peak_mib: float
    """Sum of the peaks; what forked processes share is counted in each."""

    now_mib: float
    """What is resident now; what several processes share is counted once (Pss)."""


def of(pid: int) -> Spending:
    """Look at a process and its descendants now; those that ended are in their parent's time."""
    found = [*_tree(pid)]
    return Spending(
        cpu_seconds=sum(map(_cpu_seconds, found)),
        peak_mib=sum(map(_peak_kib, found)) / 1024,
        now_mib=sum(map(_now_kib, found)) / 1024,
    )


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            yield from _tree(int(child))


def _cpu_seconds(pid: int) -> float:
    # The name in parentheses may hold blanks.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS  # utime, stime, cutime, cstime


def _peak_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def _now_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
