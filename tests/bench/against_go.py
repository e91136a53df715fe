"""`make bench`: the product beside a Go webhook with the same answers.

Both serve the same reviews over TLS and look up JobSets in a cache that their own client fills from
the same small API server. A ratio is ours divided by Go's, of the same round.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import equal, jobsets, load, programs, report, rounds, running, specimens
from harness import cache, certificates, loopback

OURS, GO = "tfadmit", "Go"
_TASKS = (4, 64, 1024)
_SIZES = (4 * 1024, 30 * 1024, 1024 * 1024)
_CONNECTIONS = (1, 16, 25, 50)
_OTHER_PATHS_CONNECTIONS = 16
_STARTS = 5

Pair = tuple[running.Server, running.Server]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = _parser().parse_args(argv)
    built = programs.build()
    python = options.python or programs.python()
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        issued = certificates.serving_certificate(directory=directory, host="127.0.0.1")
        with jobsets.serving(specimens.objects(options.tasks), directory=directory) as kubeconfig:
            both = Both(anchor=built.anchor, python=python, issued=issued, kubeconfig=kubeconfig)
            starts = _starts(both)
            with both.up() as pair:
                cells = _cells(pair, options, directory=directory)
                records = _measure(built.load, pair, cells, options)
    _print_summary(records, starts)
    content = {
        "machine": running.machine(),
        "start_seconds": {name: vars(found) for name, found in starts.items()},
        "cells": records,
    }
    report.write(options.json, content)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=3, help="how often each figure is taken")
    add("--seconds", type=float, default=1.5, help="how long each time")
    add("--connections", type=int, nargs="+", default=_CONNECTIONS)
    add("--tasks", type=int, nargs="+", default=_TASKS, help="sizes of the clusters")
    add("--sizes", type=int, nargs="+", default=_SIZES, help="of the pods, in bytes")
    add("--python", type=Path, help="that runs the product (default: one made for the benchmarks)")
    add("--json", type=Path, default=cache.directory() / "bench" / "go.json")
    return parser


class Both:
    """How the two webhooks are started."""

    def __init__(
        self,
        *,
        anchor: Path,
        python: Path,
        issued: certificates.ServingCertificate,
        kubeconfig: Path,
    ) -> None:
        self._anchor = anchor
        self._python = python
        self._issued = issued
        self._kubeconfig = kubeconfig

    @contextlib.contextmanager
    def up(self) -> Iterator[Pair]:
        """Both, ready."""
        with self.ours() as ours, self.go() as go:
            yield ours, go

    def ours(self) -> contextlib.AbstractContextManager[running.Server]:
        """The product as in a cluster, except for the address of the API server."""
        port = loopback.free_port()
        command: list[str | Path] = [self._python, "-m", "tfadmit_webhook", "--host", "127.0.0.1"]
        command += ["--port", str(port), "--metrics-port", "0", "--kubeconfig", self._kubeconfig]
        command += ["--tls-cert", self._issued.certificate, "--tls-key", self._issued.key]
        return self._start(OURS, command, port=port)

    def go(self) -> contextlib.AbstractContextManager[running.Server]:
        """The Go webhook."""
        return self._anchored(GO)

    def noop(self) -> contextlib.AbstractContextManager[running.Server]:
        """The Go webhook, admitting everything as it is."""
        return self._anchored("no-op", "-noop")

    def _anchored(
        self, name: str, *options: str
    ) -> contextlib.AbstractContextManager[running.Server]:
        port = loopback.free_port()
        command: list[str | Path] = [self._anchor, "-port", str(port), "-config", self._kubeconfig]
        command += ["-certificates", self._issued.directory, *options]
        return self._start(name, command, port=port)

    def _start(
        self, name: str, command: Sequence[str | Path], *, port: int
    ) -> contextlib.AbstractContextManager[running.Server]:
        return running.running(
            name,
            command,
            target=load.Target(port=port, ca=self._issued.ca),
            directory=self._issued.directory,
            environ={**os.environ, **running.python_path()},
        )


def _starts(both: Both) -> dict[str, rounds.Spread]:
    took: dict[str, list[float]] = {OURS: [], GO: []}
    for _ in range(_STARTS):
        with both.up() as pair:
            for server in pair:
                took[server.name].append(server.start_seconds)
    return {name: rounds.spread(values) for name, values in took.items()}


def _cells(pair: Pair, options: argparse.Namespace, *, directory: Path) -> list[rounds.Cell]:
    """Plan all combinations, after both webhooks have given the same pods for each."""
    cases = [
        specimens.pods(tasks=tasks, size=size) for size in options.sizes for tasks in options.tasks
    ]
    others = [specimens.unlabelled(), specimens.denied_runtime()]
    if 64 in options.tasks:
        admitted = equal.check(pair, specimens.pods(tasks=64, size=4096))[0]
        others += [specimens.admitted(admitted), specimens.dry_run()]
    for case in (*cases, *others):
        equal.check(pair, case)
    rounds.say("both give the same objects for all reviews")
    fresh = [
        dataclasses.replace(cell, case=f"{cell.case}, a connection each", client="fresh")
        for cell in rounds.cells(cases[:1], [_OTHER_PATHS_CONNECTIONS], directory=directory)
    ]
    return [
        *fresh,
        *rounds.cells(others, [_OTHER_PATHS_CONNECTIONS], directory=directory),
        *rounds.cells(cases, options.connections, directory=directory),
    ]


def _measure(
    program: Path, pair: Pair, cells: Sequence[rounds.Cell], options: argparse.Namespace
) -> list[dict[str, Any]]:
    records = []
    for cell in cells:
        samples = rounds.measure(
            program, pair, cell, rounds=options.rounds, seconds=options.seconds
        )
        ours, go = samples[OURS], samples[GO]
        ratios = rounds.ratios(ours, go)
        print(f"\n{cell.case}, {cell.connections} connections\n{_table(ours, go, ratios)}")
        records.append(
            {
                "case": cell.case,
                "connections": cell.connections,
                "failed": {OURS: rounds.failures(ours), GO: rounds.failures(go)},
                OURS: report.plain(rounds.figures(ours)),
                GO: report.plain(rounds.figures(go)),
                "ratio": report.plain(ratios),
            }
        )
    return records


_HEAD = ("reviews/s", "p50 ms", "p99 ms", "p99.9 ms", "CPU s/1,000", "peak MiB", "MiB after")


def _table(
    ours: Sequence[rounds.Sample],
    go: Sequence[rounds.Sample],
    ratios: dict[str, rounds.Spread],
) -> str:
    rows = [
        (
            name,
            *(report.number(found.median) for found in rounds.figures(samples).values()),
            str(sum(rounds.failures(samples).values())),
        )
        for name, samples in ((OURS, ours), (GO, go))
    ]
    rows.append(("ratio", *(report.with_spread(found) for found in ratios.values()), ""))
    return report.table(("", *_HEAD, "failed"), rows)


def _print_summary(records: Sequence[dict[str, Any]], starts: dict[str, rounds.Spread]) -> None:
    rows = [
        (
            record["case"],
            str(record["connections"]),
            *(
                report.with_spread(rounds.Spread(**record["ratio"][name]))
                for name in rounds.FIGURES
            ),
        )
        for record in records
    ]
    print(f"\nours / Go\n{report.table(('reviews', 'connections', *_HEAD), rows)}")
    for name, took in starts.items():
        print(f"start of {name}: {report.with_spread(took)} s")


if __name__ == "__main__":
    main()
