"""`make bench-large`: jobs of up to 10,000 tasks: bytes of pods and of jobs, and milliseconds.

The pods go through the handler. What a job takes there is the sum over its pods, as JSON; with
`--etcd`, jobs are created on an API server too, and etcd says what they take.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import admission
from bench import report, running, specimens, stored

SIZES = (16, 256, 1_024, 4_096, 10_000)
_STORED_SIZES = (16, 256, 1_024, 2_048)
_TIMES = 200
_STARTS = 5
_EXPAND = """
import time
from tfadmit_trainer import setup
began = time.perf_counter()
context = setup()
ready = time.perf_counter()
addresses = context.addresses("worker")
print(1000 * (ready - began), 1000 * (time.perf_counter() - ready), len(addresses))
"""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What one job takes."""

    tasks: int
    inline: bool
    added: int
    """Bytes that admission adds to a pod, the largest of those looked at."""

    pod: int
    """Bytes of that pod."""

    total: int
    """Bytes of all pods."""


def job(tasks: int, *, every: int = 97) -> Job:
    """Admit the first, the last and every so many pods of a job."""
    given = admission.context(specimens.jobset(tasks))
    chosen = sorted({*range(0, tasks, every), tasks - 1})
    grown, sizes, inline = [], [], False
    for index in chosen:
        content = specimens.pod(tasks=tasks, index=index, size=0)
        admitted = admission.apply(content, admission.decide("/mutate/pods", content, given=given))
        grown.append(_bytes(admitted) - _bytes(content))
        sizes.append(_bytes(admitted))
        inline = "TF_CONFIG" in {entry["name"] for entry in _env(admitted)}
    total = round(sum(sizes) / len(sizes) * tasks)
    return Job(tasks=tasks, inline=inline, added=max(grown), pod=max(sizes), total=total)


def milliseconds(tasks: int) -> float:
    """How long the handler takes for one pod; the best of some, since others only add to it."""
    given = admission.context(specimens.jobset(tasks))
    content = specimens.pod(tasks=tasks, index=tasks - 1, size=4096)
    took = []
    for _ in range(_TIMES):
        began = time.perf_counter()
        admission.decide("/mutate/pods", content, given=given)
        took.append(time.perf_counter() - began)
    return 1000 * min(took)


def expanded(tasks: int) -> tuple[float, float]:
    """How long the library takes in a process of its own: to be set up, and for all addresses.

    The best of some, as above.
    """
    content = specimens.pod(tasks=tasks, index=tasks - 1, size=0)
    given = admission.context(specimens.jobset(tasks))
    admitted = admission.apply(content, admission.decide("/mutate/pods", content, given=given))
    env = {entry["name"]: entry["value"] for entry in _env(admitted) if "value" in entry}
    found = [_expanded(env, tasks=tasks) for _ in range(_STARTS)]
    return min(setup for setup, _ in found), min(expand for _, expand in found)


def _expanded(env: dict[str, str], *, tasks: int) -> tuple[float, float]:
    answer = subprocess.run(
        [sys.executable, "-c", _EXPAND],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **running.python_path(), **env},
    )
    setup, expand, count = map(float, answer.stdout.split()[-3:])
    assert count == tasks
    return setup, expand


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench-large", description=__doc__)
    parser.add_argument(
        "--etcd",
        type=int,
        nargs="*",
        metavar="TASKS",
        help="sizes of the jobs whose bytes in etcd are looked at (a few minutes; default:"
        f" {' '.join(map(str, _STORED_SIZES))})",
    )
    options = parser.parse_args(argv)
    print(_table())
    if options.etcd is not None:
        print(f"\nbytes in etcd\n{_stored(options.etcd or _STORED_SIZES)}")


def _table() -> str:
    rows = []
    for tasks in SIZES:
        found, (setup, expand) = job(tasks), expanded(tasks)
        rows.append(
            (
                f"{tasks:,}",
                "yes" if found.inline else "no",
                f"{found.added:,}",
                f"{found.pod:,}",
                f"{found.total / 1e6:,.2f}",
                report.number(milliseconds(tasks)),
                report.number(setup),
                report.number(expand),
            )
        )
    head = (
        *("tasks", "TF_CONFIG inline", "added bytes", "pod bytes", "job MB"),
        *("handler ms", "setup() ms", "all addresses ms"),
    )
    return report.table(head, rows)


def _stored(sizes: Sequence[int]) -> str:
    rows = []
    for tasks, (without, found) in zip(sizes, stored.compare(sizes), strict=True):
        assert without.objects == found.objects == tasks
        handled = job(tasks)
        rows.append(
            (
                f"{tasks:,}",
                "yes" if handled.inline else "no",
                f"{handled.added:,}",
                f"{found.each - without.each:,.0f}",
                f"{handled.pod:,}",
                f"{found.each:,.0f}",
                f"{handled.total / 1e6:,.2f}",
                f"{found.total / 1e6:,.2f}",
                f"{without.total / 1e6:,.2f}",
                f"{found.writes:.1f}",
            )
        )
    head = (
        *("tasks", "TF_CONFIG inline", "added, handler", "added, etcd"),
        *("pod, handler", "pod, etcd", "job MB, handler", "job MB, etcd"),
        *("job MB, etcd, no webhook", "writes of a pod"),
    )
    return report.table(head, rows)


def _bytes(content: Any) -> int:
    return len(json.dumps(content, separators=(",", ":")))


def _env(content: Any) -> list[Any]:
    found: list[Any] = content["spec"]["containers"][0]["env"]
    return found


if __name__ == "__main__":
    main()
