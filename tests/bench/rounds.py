"""Measurements in rounds: each round asks every server once, in an order that turns.

On a machine with other work a figure alone says little; the ratio of two servers within one round
says more, and its spread over the rounds says how much.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import load, specimens, spending
from bench.running import Server


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One combination that is measured."""

    case: str
    path: str
    reviews: Path
    connections: int
    client: load.Client = "fast"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One server in one round of one cell."""

    result: load.Result
    cpu_per_1000: float
    """Seconds of processor time per 1,000 reviews, of all processes of the server."""

    peak_mib: float
    now_mib: float


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A figure over the rounds."""

    median: float
    low: float
    high: float


Samples = Mapping[str, Sequence[Sample]]
FIGURES: Mapping[str, Callable[[Sample], float]] = {
    "per_second": lambda one: one.result.per_second,
    "p50_ms": lambda one: one.result.p50_ms,
    "p99_ms": lambda one: one.result.p99_ms,
    "p999_ms": lambda one: one.result.p999_ms,
    "cpu_per_1000": lambda one: one.cpu_per_1000,
    "peak_mib": lambda one: one.peak_mib,
    "now_mib": lambda one: one.now_mib,
}


def cells(
    cases: Iterable[specimens.Case], connections: Sequence[int], *, directory: Path
) -> list[Cell]:
    """Combine cases with numbers of connections."""
    return [
        Cell(case=case.name, path=case.path, reviews=reviews, connections=count)
        for case in cases
        for reviews in [case.write(directory)]
        for count in connections
    ]


def measure(
    program: Path, servers: Sequence[Server], cell: Cell, *, rounds: int, seconds: float
) -> Samples:
    """Measure one cell on all servers."""
    samples: dict[str, list[Sample]] = {server.name: [] for server in servers}
    for number in range(rounds):
        turn = number % len(servers)
        for server in (*servers[turn:], *servers[:turn]):
            samples[server.name].append(_sample(program, server, cell, seconds=seconds))
    say(f"{cell.case}, {cell.connections} connections")
    return samples


def _sample(program: Path, server: Server, cell: Cell, *, seconds: float) -> Sample:
    before = spending.of(server.program.pid)
    child = load.start(
        program,
        server.target,
        path=cell.path,
        reviews=cell.reviews,
        connections=cell.connections,
        seconds=seconds,
        client=cell.client,
    )
    result = load.finish(child)
    after = spending.of(server.program.pid)
    spent = after.cpu_seconds - before.cpu_seconds
    return Sample(
        result=result,
        cpu_per_1000=1000 * spent / max(1, result.requests),
        peak_mib=after.peak_mib,
        now_mib=after.now_mib,
    )


def figures(samples: Sequence[Sample]) -> dict[str, Spread]:
    """Every figure of one server."""
    return {name: spread(map(read, samples)) for name, read in FIGURES.items()}


def ratios(samples: Sequence[Sample], base: Sequence[Sample]) -> dict[str, Spread]:
    """Every figure in units of another server's in the same round."""
    return {
        name: spread(
            read(one) / read(other)
            for one, other in zip(samples, base, strict=True)
            if read(other) > 0
        )
        for name, read in FIGURES.items()
    }


def failures(samples: Sequence[Sample]) -> dict[str, int]:
    """What went wrong, over all rounds."""
    total: dict[str, int] = {}
    for one in samples:
        for why, count in one.result.failed.items():
            total[why] = total.get(why, 0) + count
    return total


def spread(values: Iterable[float]) -> Spread:
    """Median, lowest and highest."""
    known = sorted(values) or [float("nan")]
    return Spread(median=statistics.median(known), low=known[0], high=known[-1])


def say(line: str) -> None:
    """Tell a waiting user how far it is."""
    print(f"bench: {line}", file=sys.stderr, flush=True)
