"""TrainJobs that are created at once, until all their pods run, and their removal.

Knows manifests and waits; what is measured meanwhile is the caller's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from harness import tools
from harness.cluster import Cluster

# Where the runtime webhook would copy it to, which is not asked here.
LABELS = {"trainer.kubeflow.org/framework": "tensorflow"}
_RUNTIME = tools.ROOT / "deploy/runtimes/tensorflow-distributed.yaml"
_POLL_SECONDS = 0.02
_LONGEST_SECONDS = 300.0


@dataclass(frozen=True, kw_only=True)
class Burst:
    """How many TrainJobs, and how many workers each has."""

    jobs: int
    workers: int
    name: str = "job"

    @property
    def pods(self) -> int:
        """How many pods come of it."""
        return self.jobs * self.workers

    def __str__(self) -> str:
        plural = "s" if self.jobs > 1 else ""
        return f"{self.jobs} TrainJob{plural} of {self.workers:,} workers"


@dataclass(frozen=True, kw_only=True)
class Took:
    """Seconds from the first request on."""

    created: float
    """Until all pods existed."""

    running: float
    """Until all of them ran."""


def run(cluster: Cluster, burst: Burst, *, namespace: str) -> Took:
    """Create the TrainJobs and wait for their pods."""
    began = time.monotonic()
    for number in range(burst.jobs):
        name = f"{burst.name}-{number}" if burst.jobs > 1 else burst.name
        cluster.create(_trainjob(namespace, name, workers=burst.workers))
    _wait(lambda: count(cluster, namespace) >= burst.pods, began, what=f"{burst}: all pods exist")
    created = time.monotonic() - began
    _wait(lambda: _all_run(cluster, namespace), began, what=f"{burst}: all pods run")
    return Took(created=created, running=time.monotonic() - began)


def prepare(cluster: Cluster, namespace: str) -> None:
    """Put the shipped runtime into the namespace, with the label."""
    runtime: dict[str, Any] = yaml.safe_load(_RUNTIME.read_text())
    runtime["kind"] = "TrainingRuntime"
    runtime["metadata"]["namespace"] = namespace
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]
    job["template"]["spec"]["template"]["metadata"] = {"labels": LABELS}
    cluster.apply(runtime)


def clear(cluster: Cluster, namespace: str) -> None:
    """Delete the TrainJobs of a namespace with all that came of them, and wait until it is gone.

    Each kind by itself: the garbage collector takes a while, and fake nodes end no pod.
    """
    for kind in ("TrainJob", "JobSet", "Job"):
        path = cluster.api.resource(kind).path(namespace=namespace)
        cluster.api.request("DELETE", path, query={"propagationPolicy": "Background"})
    began = time.monotonic()
    _wait(lambda: _deleted(cluster, namespace), began, what="the pods are deleted")


def _deleted(cluster: Cluster, namespace: str) -> bool:
    if count(cluster, namespace):
        cluster.api.request("DELETE", _pods(namespace), query={"gracePeriodSeconds": "0"})
    return count(cluster, namespace) == 0


def count(cluster: Cluster, namespace: str) -> int:
    """How many pods there are, without reading them."""
    page = cluster.api.request("GET", _pods(namespace), query={"limit": "1"})
    return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))


def _all_run(cluster: Cluster, namespace: str) -> bool:
    query = {"limit": "1", "fieldSelector": "status.phase!=Running"}
    return not cluster.api.request("GET", _pods(namespace), query=query)["items"]


def _pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def _wait(reached: Callable[[], bool], began: float, *, what: str) -> None:
    while not reached():
        if time.monotonic() > began + _LONGEST_SECONDS:
            raise SystemExit(f"{what}: not in {_LONGEST_SECONDS:.0f} s")
        time.sleep(_POLL_SECONDS)


def _trainjob(namespace: str, name: str, *, workers: int) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "runtimeRef": {"name": "tensorflow-distributed", "kind": "TrainingRuntime"},
            "trainer": {"numNodes": workers},
        },
    }
