"""`make bench-cache`: what a pod costs when the cluster has other JobSets, and what these take.

The same reviews, with 0, 1,000 and 10,000 other JobSets in the cache of the product and of the Go
webhook.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import against_go, equal, jobsets, programs, report, rounds, running, specimens
from harness import cache, certificates

_CONNECTIONS = 16
_TASKS = 64
_HEAD = ("other JobSets", "webhook", "start s", "reviews/s", "p99 ms", "CPU s/1,000", "MiB after")
_SHOWN = ("per_second", "p99_ms", "cpu_per_1000", "now_mib")


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench-cache", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--others", type=int, nargs="+", default=[0, 1_000, 10_000])
    parser.add_argument("--python", type=Path, help="that runs the product")
    parser.add_argument("--json", type=Path, default=cache.directory() / "bench" / "cache.json")
    options = parser.parse_args(argv)
    rows, records = [], []
    for others in options.others:
        for record in _measure(others, options):
            records.append(record)
            figures = (report.number(record["figures"][name]["median"]) for name in _SHOWN)
            start = report.number(record["start_seconds"])
            rows.append((f"{others:,}", record["webhook"], start, *figures))
    print(report.table(_HEAD, rows))
    report.write(options.json, {"machine": running.machine(), "records": records})


def _measure(others: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    built = programs.build()
    case = specimens.pods(tasks=_TASKS, size=4096)
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        issued = certificates.serving_certificate(directory=directory, host="127.0.0.1")
        objects = [specimens.jobset(_TASKS), *map(specimens.other_jobset, range(others))]
        with jobsets.serving(objects, directory=directory) as kubeconfig:
            both = against_go.Both(
                anchor=built.anchor,
                python=options.python or programs.python(),
                issued=issued,
                kubeconfig=kubeconfig,
            )
            with both.up() as pair:
                equal.check(pair, case)
                (cell,) = rounds.cells([case], [_CONNECTIONS], directory=directory)
                samples = rounds.measure(
                    built.load, pair, cell, rounds=options.rounds, seconds=options.seconds
                )
                return [
                    {
                        "others": others,
                        "webhook": server.name,
                        "start_seconds": round(server.start_seconds, 3),
                        "figures": report.plain(rounds.figures(samples[server.name])),
                    }
                    for server in pair
                ]


if __name__ == "__main__":
    main()
