"""A training that can be disturbed: real images, checkpoints on storage that all nodes share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.api import ApiError
from harness.cluster import Cluster, load
from harness.node import deploy, images
from node import support

NAME = "digits"
EXAMPLE = ("python", "-m", "tfadmit_trainer.examples.cifar10")
# Narrow and quick: 23 steps of 2 x 32 images an epoch.
SMALL = {
    "WIDTH": "8",
    "BATCH_SIZE": "32",
    "LEARNING_RATE": "0.005",
    "EPOCHS": "4",
    # One thread each: the pods share the machine's cores with the whole cluster.
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "2",
    "OMP_NUM_THREADS": "1",
}
_EPOCH = re.compile(r"epoch (\d+)/\d+ \(\d+%\): loss ([\d.]+)")
_SAME = re.compile(r"weights after epoch (\d+) are the same on all workers: (\S+)")


class Training:
    """One TrainJob on the shipped runtime, of which volumes alone are changed."""

    def __init__(self, *, cluster: Cluster, namespace: str, storage: Path) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._storage = storage

    def start(
        self,
        *command: str,
        workers: int = 2,
        env: Mapping[str, str] | None = None,
        runtime: support.Json | None = None,
        **trainer: Any,
    ) -> None:
        """Apply the runtime, under the namespace's name, and the TrainJob."""
        made = runtime or self.runtime()
        self._cluster.apply(made)
        variables = {**SMALL, "CIFAR10_DIR": "/storage/data", "TFADMIT_OUTPUT_DIR": "/storage/out"}
        self._cluster.apply(
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "metadata": {"name": NAME, "namespace": self._namespace},
                "spec": {
                    "runtimeRef": {"name": made["metadata"]["name"], "kind": "TrainingRuntime"},
                    "trainer": {
                        "numNodes": workers,
                        "image": images.TRAINING.name,
                        "command": list(command or EXAMPLE),
                        "env": [
                            {"name": name, "value": value}
                            for name, value in {**variables, **(env or {})}.items()
                        ],
                        **trainer,
                    },
                },
            }
        )

    def runtime(self) -> support.Json:
        """The shipped runtime as one of the namespace, with the storage mounted."""
        (runtime,) = load(deploy.RUNTIME)
        return self.on_storage(runtime)

    def on_storage(self, runtime: support.Json) -> support.Json:
        """A runtime as one of the namespace, with the storage mounted in every role."""
        runtime["kind"] = "TrainingRuntime"
        runtime["metadata"] |= {"name": "with-storage", "namespace": self._namespace}
        for pod in pods_of(runtime):
            volumes = pod.setdefault("volumes", [])
            volumes.append({"name": "storage", "hostPath": {"path": str(self._storage)}})
            mounts = pod["containers"][0].setdefault("volumeMounts", [])
            mounts.append({"name": "storage", "mountPath": "/storage"})
            # A test does not wait for two minutes until a pod that ignores SIGTERM is gone.
            pod["terminationGracePeriodSeconds"] = 20
        return runtime

    def says(self, worker: int, text: str, *, seconds: float = 240, attempt: int = 0) -> None:
        """Wait until a worker has printed a text in this attempt of all workers."""
        self._cluster.wait(
            lambda: self.log(worker, attempt=attempt),
            until=lambda log: text in log,
            timeout=seconds,
            pause=0.3,
            what=f"worker {worker} says {text!r} in attempt {attempt}",
        )

    def log(self, worker: int, *, attempt: int | None = None) -> str:
        """What a worker printed so far; nothing while there is no such pod."""
        pod = self.pod(worker, attempt=attempt)
        if not pod:
            return ""
        try:
            return support.logs(self._cluster, self._namespace, pod["metadata"]["name"])
        except ApiError as error:
            # Before the container is there, and once its pod is gone.
            if error.status not in {400, 404}:
                raise
            return ""

    def pod(self, worker: int, *, attempt: int | None = None) -> support.Json | None:
        """The newest pod of a worker, or the one of an attempt."""
        labels = {
            "jobset.sigs.k8s.io/jobset-name": NAME,
            "batch.kubernetes.io/job-completion-index": str(worker),
        }
        if attempt is not None:
            labels["jobset.sigs.k8s.io/restart-attempt"] = str(attempt)
        pods = self._cluster.list("Pod", self._namespace, labels=labels)
        return max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default=None)

    def completes(self, *, seconds: float = 400) -> None:
        """Wait until the TrainJob is Complete."""
        support.complete(self._cluster, self._namespace, NAME, seconds=seconds)

    def fails(self, *, seconds: float = 300) -> str:
        """Wait until the TrainJob has failed; its message."""
        trainjob = self._cluster.wait(
            lambda: self._cluster.get("TrainJob", NAME, self._namespace),
            until=lambda seen: support.conditions(seen).keys() & {"Complete", "Failed"},
            timeout=seconds,
            pause=0.5,
            what="the TrainJob ends",
        )
        return support.conditions(trainjob)["Failed"]

    def restarts(self) -> tuple[int, int]:
        """How often all workers were started again, and how often of these it was counted."""
        return support.restarts(self._cluster, self._namespace, NAME)

    def reasons(self) -> dict[int, str]:
        """What the workers that failed left as their reason, after their exit code."""
        found = {}
        for pod in self._cluster.list("Pod", self._namespace):
            index = int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])
            for status in pod["status"].get("containerStatuses", []):
                ended = status["state"].get("terminated", {})
                if ended.get("exitCode"):
                    found[index] = f"{ended['exitCode']}: {ended.get('message', '')}"
        return found

    def evict(self, worker: int) -> None:
        """Evict a worker's pod."""
        pod = self.pod(worker)
        assert pod
        evict(self._cluster, pod)


def evict(cluster: Cluster, pod: support.Json) -> None:
    """Ask for the eviction of a pod, as `kubectl drain` does."""
    metadata = {key: pod["metadata"][key] for key in ("name", "namespace")}
    path = "/api/v1/namespaces/{namespace}/pods/{name}/eviction".format(**metadata)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    try:
        cluster.api.request("POST", path, body=eviction)
    except ApiError as error:
        raise AssertionError(f"the eviction of {metadata['name']} was refused: {error}") from error


def pod_of(runtime: support.Json) -> support.Json:
    """The pod of the runtime's only job."""
    (pod,) = pods_of(runtime)
    return pod


def pods_of(runtime: support.Json) -> list[support.Json]:
    """The pod of each of the runtime's jobs."""
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return [job["template"]["spec"]["template"]["spec"] for job in jobs]


def losses(log: str) -> dict[int, float]:
    """The loss by epoch."""
    return {int(epoch): float(loss) for epoch, loss in _EPOCH.findall(log)}


def fingerprints(log: str) -> Sequence[tuple[str, str]]:
    """The weights' fingerprint by epoch."""
    return _SAME.findall(log)
