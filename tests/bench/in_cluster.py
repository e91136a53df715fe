"""`make bench-cluster`: what a webhook adds to the creation of pods, on a real API server.

TrainJobs go through Trainer, JobSet and the Job controller to the API server, which calls one
webhook after the other in turning rounds: none, one that admits everything, one in Go, and the
product. There are no nodes: pods are admitted when they are created, and none is scheduled. What a
call took is the API server's own figure.
"""

from __future__ import annotations

import argparse
import base64
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench import against_go, apiserver, programs, report, rounds, running, spending
from harness import cache, certificates, environment, tools
from harness.api import ApiError
from harness.cluster import Cluster

NONE, NOOP = "none", "no-op"
_MODES = (NONE, NOOP, against_go.GO, against_go.OURS)
_RUNTIME = tools.ROOT / "deploy/runtimes/tensorflow-distributed.yaml"
_CONFIGURATION = "bench.tfadmit.dev"
_LABELS = {"trainer.kubeflow.org/framework": "tensorflow"}
_POLL_SECONDS = 0.02
_LONGEST_SECONDS = 180.0
_HEAD = (
    *("webhook", "pods/s", "of none", "p50 ms", "p99 ms", "mean ms"),
    *("calls", "refused", "JobSets fetched", "its CPU s", "all CPU s"),
)


@dataclass(frozen=True, kw_only=True)
class Burst:
    """TrainJobs that are created at once."""

    jobs: int
    workers: int

    @property
    def pods(self) -> int:
        """How many pods come of it."""
        return self.jobs * self.workers

    def __str__(self) -> str:
        return f"{self.jobs} TrainJobs of {self.workers:,}"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One burst with one webhook."""

    seconds: float
    calls: apiserver.Calls
    fetched: float
    own_cpu: float
    all_cpu: float

    def __str__(self) -> str:
        calls = self.calls
        took = f"{self.seconds:.1f} s, {calls.count:.0f} calls, {calls.refused:.0f} refused"
        return f"{took}, p50 {calls.percentile(0.5):.1f} ms, p99 {calls.percentile(0.99):.1f} ms"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="make bench-cluster", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pods", type=int, default=1000, help="in one burst")
    parser.add_argument("--python", type=Path, help="that runs the product")
    parser.add_argument("--json", type=Path, default=cache.directory() / "bench" / "cluster.json")
    options = parser.parse_args(argv)
    bursts = [Burst(jobs=1, workers=options.pods), Burst(jobs=options.pods // 10, workers=10)]
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        directory = Path(scratch)
        cluster = stack.enter_context(environment.running(directory=directory / "cluster"))
        servers = _servers(stack, cluster, directory, python=options.python or programs.python())
        bench = _Bench(cluster, servers, ca=directory / "serving" / "ca.crt")
        found = {burst: bench.measure(burst, options.rounds) for burst in bursts}
    records = {str(burst): _print(burst, found[burst]) for burst in bursts}
    report.write(options.json, {"machine": running.machine(), "bursts": records})


def _servers(
    stack: ExitStack, cluster: Cluster, directory: Path, *, python: Path
) -> dict[str, running.Server]:
    issued = certificates.serving_certificate(directory=directory / "serving", host="127.0.0.1")
    both = against_go.Both(
        anchor=programs.build().anchor,
        python=python,
        issued=issued,
        kubeconfig=cluster.kubeconfig,
    )
    return {
        NOOP: stack.enter_context(both.noop()),
        against_go.GO: stack.enter_context(both.go()),
        against_go.OURS: stack.enter_context(both.ours()),
    }


class _Bench:
    """A cluster and the webhooks that it may call."""

    def __init__(self, cluster: Cluster, servers: dict[str, running.Server], *, ca: Path) -> None:
        self._cluster = cluster
        self._servers = servers
        self._ca = base64.b64encode(ca.read_bytes()).decode()

    def measure(self, burst: Burst, times: int) -> dict[str, list[Sample]]:
        """Take every webhook once a round, in an order that turns."""
        samples: dict[str, list[Sample]] = {mode: [] for mode in _MODES}
        for number in range(times):
            turn = number % len(_MODES)
            for mode in (*_MODES[turn:], *_MODES[:turn]):
                with self._namespace() as namespace:
                    self._call(mode, namespace)
                    samples[mode].append(self._sample(mode, burst, namespace))
                rounds.say(f"{burst}, {mode}: {samples[mode][-1]}")
        return samples

    def _sample(self, mode: str, burst: Burst, namespace: str) -> Sample:
        cluster, server = self._cluster, self._servers.get(mode)
        before, cpu, own = self._calls(), _cpu_of_all(), _cpu(server)
        known = apiserver.lookups(server) if mode == against_go.OURS and server else 0.0
        began = time.monotonic()
        for number in range(burst.jobs):
            cluster.create(_trainjob(namespace, number, workers=burst.workers))
        end = began + _LONGEST_SECONDS
        while self._count(namespace) < burst.pods:
            if time.monotonic() > end:
                raise SystemExit(f"{burst}, {mode}: not all pods came in {_LONGEST_SECONDS:.0f} s")
            time.sleep(_POLL_SECONDS)
        took = time.monotonic() - began
        fetched = apiserver.lookups(server) - known if mode == against_go.OURS and server else 0.0
        return Sample(
            seconds=took,
            calls=self._calls().since(before),
            fetched=fetched,
            own_cpu=_cpu(server) - own,
            all_cpu=_cpu_of_all() - cpu,
        )

    def _count(self, namespace: str) -> int:
        path = f"/api/v1/namespaces/{namespace}/pods"
        page = self._cluster.api.request("GET", path, query={"limit": "1"})
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))

    def _calls(self) -> apiserver.Calls:
        return apiserver.calls(self._cluster, webhook=_CONFIGURATION)

    @contextmanager
    def _namespace(self) -> Iterator[str]:
        name = self._cluster.create_namespace(prefix="bench-")
        self._cluster.apply(_runtime(name))
        try:
            yield name
        finally:
            self._cluster.delete("MutatingWebhookConfiguration", "bench")
            for job in self._cluster.list("TrainJob", name):
                self._cluster.delete("TrainJob", job["metadata"]["name"], name)
            self._cluster.wait(
                lambda: self._count(name),
                until=lambda left: left == 0,
                timeout=_LONGEST_SECONDS,
                what="the pods are deleted",
            )
            self._cluster.delete("Namespace", name)

    def _call(self, mode: str, namespace: str) -> None:
        """Let the API server call this webhook, and wait until it does."""
        if mode == NONE:
            return
        server = self._servers[mode]
        self._cluster.apply(_configuration(server.target.port, ca=self._ca))
        before = self._calls().count
        self._cluster.wait(
            lambda: self._probe(namespace) and self._calls().count > before,
            what=f"the API server calls {mode}",
        )

    def _probe(self, namespace: str) -> bool:
        """Make a pod that the webhooks see; whether they admit it does not matter."""
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "probe", "namespace": namespace, "labels": _LABELS},
            "spec": {"containers": [{"name": "node", "image": "probe"}]},
        }
        try:
            self._cluster.create(pod, dry_run=True)
        except ApiError as error:
            return error.status != 500
        return True


def _runtime(namespace: str) -> dict[str, Any]:
    """The shipped runtime, with the label where the runtime webhook would copy it to."""
    runtime: dict[str, Any] = yaml.safe_load(_RUNTIME.read_text())
    runtime["kind"] = "TrainingRuntime"
    runtime["metadata"]["namespace"] = namespace
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]
    job["template"]["spec"]["template"]["metadata"] = {"labels": _LABELS}
    return runtime


def _trainjob(namespace: str, number: int, *, workers: int) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": f"job-{number}", "namespace": namespace},
        "spec": {
            "runtimeRef": {"name": "tensorflow-distributed", "kind": "TrainingRuntime"},
            "trainer": {"numNodes": workers},
        },
    }


def _configuration(port: int, *, ca: str) -> dict[str, Any]:
    webhook = {
        "name": _CONFIGURATION,
        "clientConfig": {"url": f"https://127.0.0.1:{port}/mutate/pods", "caBundle": ca},
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
            }
        ],
        "objectSelector": {"matchLabels": _LABELS},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 10,
        "reinvocationPolicy": "IfNeeded",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "bench"},
        "webhooks": [webhook],
    }


def _cpu(server: running.Server | None) -> float:
    return spending.of(server.program.pid).cpu_seconds if server else 0.0


def _cpu_of_all() -> float:
    """Of everything that runs here: the control plane, its controllers, the webhooks and this."""
    return spending.of(os.getpid()).cpu_seconds


def _print(burst: Burst, samples: dict[str, list[Sample]]) -> list[dict[str, Any]]:
    base = [one.seconds for one in samples[NONE]]
    rows, records = [], []
    for mode, own in samples.items():
        spread = {
            "pods_per_second": rounds.spread(burst.pods / one.seconds for one in own),
            "of_none": rounds.spread(
                none / one.seconds for none, one in zip(base, own, strict=True)
            ),
            "p50_ms": rounds.spread(one.calls.percentile(0.5) for one in own),
            "p99_ms": rounds.spread(one.calls.percentile(0.99) for one in own),
            "mean_ms": rounds.spread(one.calls.mean for one in own),
            "calls": rounds.spread(one.calls.count for one in own),
            "refused": rounds.spread(one.calls.refused for one in own),
            "fetched": rounds.spread(one.fetched for one in own),
            "own_cpu": rounds.spread(one.own_cpu for one in own),
            "all_cpu": rounds.spread(one.all_cpu for one in own),
        }
        rows.append((mode, *(report.with_spread(found) for found in spread.values())))
        records.append({"webhook": mode, **report.plain(spread)})
    print(f"\n{burst}\n{report.table(_HEAD, rows)}")
    return records


if __name__ == "__main__":
    main()
