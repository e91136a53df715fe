"""What the tests on nodes say again and again, and the objects that they apply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness import tools
from harness.api import Object
from harness.cluster import Cluster, load
from harness.node import images

Json = dict[str, Any]
# A machine with other work starts a container in half a minute.
_LONGEST_SECONDS = 120.0


def pod(
    namespace: str,
    name: str,
    *command: str,
    node: str | None = None,
    labels: Mapping[str, str] | None = None,
    image: str = images.WEBHOOK.name,
    **container: Any,
) -> Json:
    """A pod with one container, on this node if one is named."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node} if node else {},
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": image, "command": list(command), **container}],
        },
    }


def started(cluster: Cluster, *pods: Json) -> list[Object]:
    """Apply pods and wait until they run."""
    for item in pods:
        cluster.apply(item)
    return [_phase(cluster, item, "Running") for item in pods]


def ready(cluster: Cluster, item: Json) -> Object:
    """Apply a pod and wait until its readiness probe succeeds."""
    started(cluster, item)
    return cluster.wait(
        lambda: cluster.get("Pod", item["metadata"]["name"], item["metadata"]["namespace"]),
        until=lambda pod: (
            ("Ready", "True")
            in {(one["type"], one["status"]) for one in pod["status"]["conditions"]}
        ),
        timeout=_LONGEST_SECONDS,
        what=f"pod {item['metadata']['name']} is ready",
    )


def ended(cluster: Cluster, item: Json, *, well: bool = True) -> Object:
    """Apply a pod and wait until it ended."""
    cluster.apply(item)
    return _phase(cluster, item, "Succeeded" if well else "Failed")


def logs(cluster: Cluster, namespace: str, name: str) -> str:
    """What a pod printed so far, as `kubectl logs` shows it."""
    return cluster.api.text(
        f"{cluster.api.resource('Pod').path(namespace=namespace, name=name)}/log"
    )


def output(cluster: Cluster, item: Json) -> str:
    """What a pod prints that ends well."""
    ended(cluster, item)
    return logs(cluster, item["metadata"]["namespace"], item["metadata"]["name"])


def _phase(cluster: Cluster, item: Json, phase: str) -> Object:
    name, namespace = item["metadata"]["name"], item["metadata"]["namespace"]
    final: Sequence[str] = ("Succeeded", "Failed")
    seen = cluster.wait(
        lambda: cluster.get("Pod", name, namespace),
        until=lambda pod: pod["status"].get("phase") in (phase, *final),
        timeout=_LONGEST_SECONDS,
        what=f"pod {name} is {phase}",
    )
    if seen["status"]["phase"] != phase:
        printed = cluster.kubectl("logs", name, "--namespace", namespace, check=False)
        raise AssertionError(f"{name} is {seen['status']}\n{printed.stdout}{printed.stderr}")
    return seen


def example(name: str, *, namespace: str) -> Json:
    """A shipped example, in a namespace of the test's own."""
    (manifest,) = load(tools.ROOT / "deploy" / "examples" / name)
    manifest["metadata"]["namespace"] = namespace
    return manifest


def complete(cluster: Cluster, namespace: str, name: str, *, seconds: float = 400) -> None:
    """Wait until a TrainJob is Complete; a failed one is told with its pods' logs."""
    trainjob = cluster.wait(
        lambda: cluster.get("TrainJob", name, namespace),
        until=lambda seen: conditions(seen).keys() & {"Complete", "Failed"},
        timeout=seconds,
        pause=0.5,
        what=f"TrainJob {name} ends",
    )
    if "Complete" not in conditions(trainjob):
        raise AssertionError(f"{conditions(trainjob)}\n{all_logs(cluster, namespace)}")


def conditions(item: Object) -> dict[str, str]:
    """The conditions that hold, with their messages."""
    found = item.get("status", {}).get("conditions") or []
    return {
        condition["type"]: condition.get("message", "")
        for condition in found
        if condition["status"] == "True"
    }


def worker(cluster: Cluster, namespace: str, trainjob: str, index: int) -> str:
    """The name of the newest pod of a worker."""
    labels = {
        "jobset.sigs.k8s.io/jobset-name": trainjob,
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    pods = cluster.list("Pod", namespace, labels=labels)
    if not pods:
        raise AssertionError(f"{trainjob} has no pod of index {index}")
    newest = max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    return str(newest["metadata"]["name"])


def worker_logs(cluster: Cluster, namespace: str, trainjob: str, index: int) -> str:
    return logs(cluster, namespace, worker(cluster, namespace, trainjob, index))


def all_logs(cluster: Cluster, namespace: str) -> str:
    """What every pod printed, and how its containers are: for a test that failed."""
    said = []
    for pod in cluster.list("Pod", namespace):
        name, status = pod["metadata"]["name"], pod["status"]
        printed = cluster.kubectl("logs", name, "-n", namespace, "--tail=60", check=False)
        said.append(f"--- {name}: {status.get('phase')} {status.get('containerStatuses')}")
        said.append(printed.stdout + printed.stderr)
    return "\n".join(said)


def restarts(cluster: Cluster, namespace: str, name: str) -> tuple[int, int]:
    """How often all tasks were started again, and how often of these it was counted."""
    status = cluster.get("JobSet", name, namespace).get("status", {})
    return status.get("restarts", 0), status.get("restartsCountTowardsMax", 0)


def jobset(
    namespace: str,
    name: str,
    container: Json,
    *,
    replicas: int = 1,
    completions: int = 2,
    publish: bool = True,
) -> Json:
    """Tasks without webhook and Trainer: one container in the job `node`."""
    job = {
        "completionMode": "Indexed",
        "completions": completions,
        "parallelism": completions,
        "backoffLimit": 0,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "network": {"publishNotReadyAddresses": publish},
            "replicatedJobs": [{"name": "node", "replicas": replicas, "template": {"spec": job}}],
        },
    }
