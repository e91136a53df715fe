"""What the tests on nodes say again and again, and the objects that they apply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.api import Object
from harness.cluster import Cluster
from harness.node import images

Json = dict[str, Any]


def pod(
    namespace: str,
    name: str,
    *command: str,
    node: str | None = None,
    labels: Mapping[str, str] | None = None,
    image: str = images.WEBHOOK,
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


def ended(cluster: Cluster, item: Json, *, well: bool = True) -> Object:
    """Apply a pod and wait until it ended."""
    cluster.apply(item)
    return _phase(cluster, item, "Succeeded" if well else "Failed")


def logs(cluster: Cluster, namespace: str, name: str, *options: str) -> str:
    return cluster.kubectl("logs", name, "--namespace", namespace, *options).stdout


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
        timeout=60,
        what=f"pod {name} is {phase}",
    )
    if seen["status"]["phase"] != phase:
        printed = cluster.kubectl("logs", name, "--namespace", namespace, check=False)
        raise AssertionError(f"{name} is {seen['status']}\n{printed.stdout}{printed.stderr}")
    return seen
