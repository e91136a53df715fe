"""`make bench-cluster`: what a webhook adds to the creation of pods, on a real API server.

TrainJobs go through Trainer, JobSet and the Job controller to the API server, which calls one
webhook after the other in turning rounds: none, one that admits everything, one in Go, and the
product. kube-scheduler binds the pods to nodes of kwok, where they run without being started. What
a call and a creation took are the API server's own figures.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import (
    against_go,
    apiserver,
    burst,
    cluster_figures,
    hook,
    report,
    rounds,
    running,
    spending,
    stage,
)
from harness import cache

NONE, NOOP = "none", "no-op"
_MODES = (NONE, NOOP, against_go.GO, against_go.OURS)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench-cluster", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pods", type=int, default=1000, help="in one burst")
    parser.add_argument("--python", type=Path, help="that runs the product")
    parser.add_argument("--json", type=Path, default=cache.directory() / "bench" / "cluster.json")
    options = parser.parse_args(argv)
    bursts = [
        burst.Burst(jobs=1, workers=options.pods),
        burst.Burst(jobs=options.pods // 10, workers=10),
    ]
    records = {}
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        bench = _Bench(stack, Path(scratch), python=options.python, pods=options.pods)
        bench.warm_up(burst.Burst(jobs=options.pods // 100 + 1, workers=10))
        for one in bursts:
            samples, loads = bench.measure(one, options.rounds)
            found = cluster_figures.spreads(samples, base=NONE)
            load = rounds.spread(loads)
            print(f"\n{one}, {options.rounds} rounds, load average {report.with_spread(load)}\n")
            print(cluster_figures.tables(found, base=NONE))
            records[str(one)] = {
                "load_average": report.plain({"found": load})["found"],
                "webhooks": cluster_figures.plain(found),
            }
    report.write(options.json, {"machine": running.machine(), "bursts": records})


class _Bench:
    """A cluster with nodes, and the webhooks that it may call."""

    def __init__(
        self, stack: ExitStack, directory: Path, *, python: Path | None, pods: int
    ) -> None:
        made = stage.enter(stack, directory, pods=pods, python=python)
        self._cluster, self._ca = made.cluster, made.ca
        self._servers = {
            NOOP: stack.enter_context(made.both.noop()),
            against_go.GO: stack.enter_context(made.both.go()),
            against_go.OURS: stack.enter_context(made.both.ours()),
        }

    def warm_up(self, one: burst.Burst) -> None:
        """Let the controllers do once what is new to them, which no webhook should pay for."""
        with self._called(None) as namespace:
            burst.run(self._cluster, one, namespace=namespace)

    def measure(
        self, one: burst.Burst, times: int
    ) -> tuple[dict[str, list[cluster_figures.Sample]], list[float]]:
        """Take every webhook once a round, in an order that turns; and the load meanwhile."""
        samples: dict[str, list[cluster_figures.Sample]] = {mode: [] for mode in _MODES}
        loads = []
        for number in range(times):
            turn = number % len(_MODES)
            for mode in (*_MODES[turn:], *_MODES[:turn]):
                server = self._servers.get(mode)
                with self._called(server) as namespace:
                    samples[mode].append(self._sample(one, namespace, server))
                    loads.append(os.getloadavg()[0])
                rounds.say(f"{one}, {mode}: {samples[mode][-1]}, load average {loads[-1]:.1f}")
        return samples, loads

    def _sample(
        self, one: burst.Burst, namespace: str, server: running.Server | None
    ) -> cluster_figures.Sample:
        cluster = self._cluster
        counted, fetched = apiserver.look(cluster, webhook=hook.NAME), _fetched(server)
        cpu, own = _cpu_of_all(), _cpu(server)
        took = burst.run(cluster, one, namespace=namespace)
        return cluster_figures.Sample(
            pods=one.pods,
            took=took,
            own_cpu=_cpu(server) - own,
            all_cpu=_cpu_of_all() - cpu,
            counted=apiserver.look(cluster, webhook=hook.NAME).since(counted),
            fetched=_fetched(server) - fetched,
        )

    @contextmanager
    def _called(self, server: running.Server | None) -> Iterator[str]:
        """A namespace whose pods go through this webhook."""
        name = self._cluster.create_namespace(prefix="bench-")
        burst.prepare(self._cluster, name)
        if server:
            hook.call(self._cluster, server, namespace=name, ca=self._ca)
        try:
            yield name
        finally:
            hook.end(self._cluster)
            burst.clear(self._cluster, name)
            self._cluster.delete("Namespace", name)


def _fetched(server: running.Server | None) -> float:
    return apiserver.lookups(server) if server and server.name == against_go.OURS else 0.0


def _cpu(server: running.Server | None) -> float:
    return spending.of(server.program.pid).cpu_seconds if server else 0.0


def _cpu_of_all() -> float:
    """Of everything that runs here: the control plane, its controllers, the webhooks and this."""
    return spending.of(os.getpid()).cpu_seconds


if __name__ == "__main__":
    main()
