"""Pods that end as a kubelet would report it: there is none on this cluster."""

from __future__ import annotations

from typing import Any

from cluster import support
from harness.api import MERGE
from harness.cluster import Cluster


def end(cluster: Cluster, pod: support.Json, *, code: int, disrupted: bool = False) -> None:
    """Let all containers of a pod end with a code, or the pod be evicted."""
    state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}
    status: dict[str, Any] = {
        "phase": "Failed" if code or disrupted else "Succeeded",
        "containerStatuses": [
            {
                "name": item["name"],
                "image": item["image"],
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": state,
            }
            for item in pod["spec"]["containers"]
        ],
    }
    if disrupted:
        status["conditions"] = [
            {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
        ]
    metadata = pod["metadata"]
    path = cluster.api.resource("Pod").path(namespace=metadata["namespace"], name=metadata["name"])
    cluster.api.request("PATCH", f"{path}/status", body={"status": status}, content_type=MERGE)


def evict(cluster: Cluster, pod: support.Json) -> None:
    """Evict a pod as `kubectl drain` does; without a kubelet the collector of pods ends it."""
    place = {"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": place}
    path = cluster.api.resource("Pod").path(**place)
    cluster.api.request("POST", f"{path}/eviction", body=body)


def task(pod: support.Json) -> tuple[str, int]:
    """Role and index of a pod."""
    for container in pod["spec"]["containers"]:
        env = {entry["name"]: entry.get("value", "") for entry in container.get("env", [])}
        if "TF_TASK_TYPE" in env:
            return env["TF_TASK_TYPE"], int(env["TF_TASK_INDEX"])
    raise AssertionError(f"{pod['metadata']['name']} has no task")


def tasks(cluster: Cluster, namespace: str, *, count: int) -> dict[tuple[str, int], support.Json]:
    """The pods that have not ended by their task, once there are so many."""
    found = cluster.wait(
        lambda: live(cluster, namespace),
        until=lambda pods: len(pods) == count,
        what=f"{count} live pods in {namespace}",
        timeout=60,
    )
    by_task = {task(pod): pod for pod in found}
    assert len(by_task) == count
    return by_task


def live(cluster: Cluster, namespace: str) -> list[support.Json]:
    return [
        pod
        for pod in cluster.list("Pod", namespace)
        if pod["status"]["phase"] in ("Pending", "Running")
        and "deletionTimestamp" not in pod["metadata"]
    ]


def again(
    cluster: Cluster, namespace: str, before: dict[tuple[str, int], support.Json]
) -> dict[tuple[str, int], support.Json]:
    """The pods of a training that has started all of its tasks again."""
    old = {pod["metadata"]["uid"] for pod in before.values()}
    found = cluster.wait(
        lambda: live(cluster, namespace),
        until=lambda pods: (
            len(pods) == len(before) and not old & {pod["metadata"]["uid"] for pod in pods}
        ),
        what=f"{len(before)} new pods in {namespace}",
        timeout=60,
    )
    return {task(pod): pod for pod in found}


def ended(cluster: Cluster, namespace: str, name: str) -> str:
    """With which condition a TrainJob has ended, once it has."""
    job = cluster.wait(
        lambda: cluster.get("TrainJob", name, namespace),
        until=lambda seen: conditions(seen) & {"Complete", "Failed"},
        what=f"the end of TrainJob {name}",
        timeout=60,
    )
    (found,) = conditions(job) & {"Complete", "Failed"}
    return found


def conditions(job: support.Json) -> set[str]:
    found = (job.get("status") or {}).get("conditions") or []
    return {item["type"] for item in found if item["status"] == "True"}
