"""`make bench-servers`: one Flask application behind several servers, over TLS.

Which server is in front is decided by these figures; docs/decisions says how.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from bench import behaviour, load, programs, report, rounds, running, specimens
from bench.candidates import CANDIDATES, PRODUCT, Candidate, Place
from harness import cache, certificates, loopback

_TASKS = 64
_SIZES = (4 * 1024, 30 * 1024, 3 * 1024 * 1024)
_CONNECTIONS = (1, 16, 25, 50)


class Bench:
    """A folder with what all servers need."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.python = programs.python()
        self.load = programs.build().load
        self._objects = directory / "objects.yaml"
        self._objects.write_text(yaml.safe_dump_all(specimens.objects([_TASKS])))
        self._issued = [self._issue(name) for name in ("first", "second")]
        self.ca = directory / "ca.crt"
        self.ca.write_text("".join(one.ca.read_text() for one in self._issued))
        self.next_one = self._issued[1]

    def _issue(self, name: str) -> certificates.ServingCertificate:
        folder = self.directory / name
        folder.mkdir()
        return certificates.serving_certificate(directory=folder, host="127.0.0.1")

    @contextlib.contextmanager
    def up(self, candidate: Candidate) -> Iterator[tuple[running.Server, Path]]:
        """A candidate with certificate files of its own, and their folder."""
        folder = Path(tempfile.mkdtemp(dir=self.directory))
        for name in ("tls.crt", "tls.key"):
            (folder / name).write_bytes((self._issued[0].directory / name).read_bytes())
        place = Place(
            port=loopback.free_port(),
            certificate=folder / "tls.crt",
            key=folder / "tls.key",
            objects=self._objects,
        )
        with running.running(
            candidate.name,
            [self.python, *candidate.arguments(place)],
            target=load.Target(port=place.port, ca=self.ca),
            directory=folder,
            environ={**running.python_path(), "TFADMIT_BENCH_OBJECTS": str(self._objects)},
        ) as server:
            yield server, folder


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    options = _parser().parse_args(argv)
    chosen = [one for one in CANDIDATES if not options.only or one.name in options.only]
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(Path(scratch))
        speed = [] if options.no_speed else _speed(bench, chosen, options)
        behaviours = {} if options.no_behaviour else _behaviours(bench, chosen)
    report.write(
        options.json,
        {"machine": running.machine(), "speed": speed, "behaviour": behaviours},
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make bench-servers", description=__doc__)
    add = parser.add_argument
    add("--rounds", type=int, default=3, help="how often each figure is taken")
    add("--seconds", type=float, default=1.5, help="how long each time")
    add("--connections", type=int, nargs="+", default=_CONNECTIONS)
    add("--sizes", type=int, nargs="+", default=_SIZES, help="of the pods, in bytes")
    add("--only", nargs="+", metavar="SERVER", choices=[one.name for one in CANDIDATES])
    add("--no-speed", action="store_true")
    add("--no-behaviour", action="store_true")
    add("--json", type=Path, default=cache.directory() / "bench" / "servers.json")
    return parser


def _speed(
    bench: Bench, chosen: Sequence[Candidate], options: argparse.Namespace
) -> list[dict[str, Any]]:
    cases = [specimens.pods(tasks=_TASKS, size=size) for size in sorted(options.sizes)]
    planned = rounds.cells(cases, options.connections, directory=bench.directory)
    found: list[dict[str, Any]] = []
    with contextlib.ExitStack() as ends:
        servers = [ends.enter_context(bench.up(one))[0] for one in chosen]
        for cell in planned:
            samples = rounds.measure(
                bench.load, servers, cell, rounds=options.rounds, seconds=options.seconds
            )
            print(f"\n{cell.case}, {cell.connections} connections\n{_table(servers, samples)}")
            found += [_record(server, cell, samples) for server in servers]
    return found


def _table(servers: Sequence[running.Server], samples: rounds.Samples) -> str:
    base = samples.get(PRODUCT.name) or next(iter(samples.values()))
    head = (
        *("server", "reviews/s", "of ours", "p50 ms", "p99 ms", "p99.9 ms"),
        *("CPU s/1,000", "peak MiB", "start s", "failed"),
    )
    rows = []
    for server in servers:
        own = samples[server.name]
        found = rounds.figures(own)
        rows.append(
            (
                server.name,
                report.number(found["per_second"].median),
                report.with_spread(rounds.ratios(own, base)["per_second"]),
                *(report.number(found[name].median) for name in ("p50_ms", "p99_ms", "p999_ms")),
                report.number(found["cpu_per_1000"].median),
                report.number(found["peak_mib"].median),
                report.number(server.start_seconds),
                str(sum(rounds.failures(own).values())),
            )
        )
    return report.table(head, rows)


def _record(server: running.Server, cell: rounds.Cell, samples: rounds.Samples) -> dict[str, Any]:
    own = samples[server.name]
    base = samples.get(PRODUCT.name) or own
    return {
        "server": server.name,
        "case": cell.case,
        "connections": cell.connections,
        "start_seconds": round(server.start_seconds, 3),
        "failed": rounds.failures(own),
        "figures": report.plain(rounds.figures(own)),
        "of_ours": report.plain(rounds.ratios(own, base)),
    }


def _behaviours(bench: Bench, chosen: Sequence[Candidate]) -> dict[str, Any]:
    case = specimens.pods(tasks=_TASKS, size=_SIZES[0])
    sending = behaviour.Sending(
        program=bench.load, path=case.path, reviews=case.write(bench.directory)
    )
    # More processes of the same server behave no differently.
    single = [one for one in chosen if not one.name.endswith(", 2")]
    found = {one.name: _behaviour(bench, one, sending) for one in single}
    head = (
        *("server", "50 stalled handshakes", "50 bodies of one byte"),
        *("new certificate", "of 16 kept", "broken", "SIGTERM: broken", "gone after s"),
    )
    rows = [
        (name, _words(stalled), _words(dribbled), *_renewed(renewed), *_ended(ended))
        for name, (stalled, dribbled, renewed, ended) in found.items()
    ]
    print(f"\n16 connections, 4 KB\n{report.table(head, rows)}")
    return {name: [vars(one) for one in seen] for name, seen in found.items()}


_Seen = tuple[behaviour.Pressed, behaviour.Pressed, behaviour.Renewed, behaviour.Ended]


def _behaviour(bench: Bench, candidate: Candidate, sending: behaviour.Sending) -> _Seen:
    rounds.say(f"behaviour of {candidate.name}")
    with bench.up(candidate) as (server, _):
        stalled = behaviour.stalled_handshakes(server, sending)
    with bench.up(candidate) as (server, _):
        dribbled = behaviour.one_byte_bodies(server, sending)
    with bench.up(candidate) as (server, folder):
        renewed = behaviour.renewal(server, sending, candidate, next_one=bench.next_one, at=folder)
    with bench.up(candidate) as (server, _):
        ended = behaviour.end(server, sending)
    return stalled, dribbled, renewed, ended


def _words(seen: behaviour.Pressed) -> str:
    if not seen.share:
        return f"no answer, {seen.broken} broken"
    speed = f"{seen.share:.0%} of the speed, p99 {report.number(seen.p99_ms)} ms"
    return f"{speed}, {seen.broken} broken"


def _renewed(seen: behaviour.Renewed) -> tuple[str, str, str]:
    return _time(seen.seconds), str(seen.kept), str(seen.broken)


def _ended(seen: behaviour.Ended) -> tuple[str, str]:
    return str(seen.broken), _time(seen.seconds)


def _time(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.1f}"


if __name__ == "__main__":
    main()
