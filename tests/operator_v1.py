"""What the training operator 1.9 makes of a TFJob, and what of it must be found in pods of ours.

A second, independent reading of the operator: `pkg/apis/kubeflow.org/v1` (defaults),
`pkg/controller.v1/common/pod.go` (pods) and `pkg/controller.v1/tensorflow` (TF_CONFIG).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
TYPES = ("PS", "Worker", "Chief", "Master", "Evaluator")
ROLE = {
    "ps": "ps",
    "worker": "worker",
    "chief": "chief",
    "master": "chief",
    "evaluator": "evaluator",
}
# What the webhook and the Job controller add; the operator added TF_CONFIG only.
ADDED = {
    "JOB_COMPLETION_INDEX", "TF_CONFIG", "TF_TASK_TYPE", "TF_TASK_INDEX", "TF_NUM_WORKERS",
    "TF_WORKER_PORT", "TFADMIT_CLUSTER", "TFADMIT_ATTEMPT",
    "TF_CHIEF_HOSTS", "TF_WORKER_HOSTS", "TF_PS_HOSTS",
    "NCCL_IB_DISABLE", "NCCL_SOCKET_IFNAME", "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS",
}  # fmt: skip
# Of a pod's spec: each has tests of its own.
CHANGED = {
    "restartPolicy", "dnsPolicy", "schedulerName", "hostname", "subdomain", "priorityClassName",
}  # fmt: skip


def defaulted(tfjob: Json) -> Json:
    """The TFJob with what the operator fills in."""
    job = copy.deepcopy(tfjob)
    specs = job["spec"]["tfReplicaSpecs"]
    for known in TYPES:
        for key in [key for key in specs if key.lower() == known.lower() and key != known]:
            specs[known] = specs.pop(key)
    for spec in specs.values():
        if spec.get("replicas") is None:
            spec["replicas"] = 1
        container = tensorflow(spec["template"]["spec"])
        ports = container.get("ports") or []
        if not any(port.get("name") == "tfjob-port" for port in ports):
            container["ports"] = [*ports, {"name": "tfjob-port", "containerPort": 2222}]
    return job


def tensorflow(pod_spec: Json) -> Json:
    found: Json
    (found,) = [item for item in pod_spec["containers"] if item["name"] == "tensorflow"]
    return found


def port(spec: Json) -> int:
    (found,) = [
        item["containerPort"]
        for item in tensorflow(spec["template"]["spec"])["ports"]
        if item.get("name") == "tfjob-port"
    ]
    return int(found)


def tf_config(job: Json, kind: str, index: int) -> Json | None:
    """The TF_CONFIG of a pod; None for a job of one task. Of a TFJob with its defaults."""
    specs = job["spec"]["tfReplicaSpecs"]
    if sum(spec["replicas"] for spec in specs.values()) == 1:
        return None
    name, namespace = job["metadata"]["name"], job["metadata"].get("namespace", "default")
    cluster = {
        key.lower(): [
            f"{name}-{key.lower()}-{number}.{namespace}.svc:{port(spec)}"
            for number in range(spec["replicas"])
        ]
        for key, spec in sorted(specs.items())
    }
    return {
        "cluster": cluster,
        "task": {"type": kind.lower(), "index": index},
        "environment": "cloud",
    }


def pods(tfjob: Json) -> Iterator[tuple[str, int, Json]]:
    """The pods of a TFJob: replica type, index and pod template."""
    job = defaulted(tfjob)
    for kind, spec in job["spec"]["tfReplicaSpecs"].items():
        for index in range(spec["replicas"]):
            template = copy.deepcopy(spec["template"])
            config = tf_config(job, kind, index)
            if config:
                container = tensorflow(template["spec"])
                entry = {"name": "TF_CONFIG", "value": json.dumps(config)}
                container["env"] = [*(container.get("env") or []), entry]
            yield kind, index, template


def differences(tfjob: Json, ours: list[Json]) -> list[str]:
    """What a pod of the operator has and ours has not; empty when they agree."""
    by_task = {_task(pod): pod for pod in ours}
    theirs = list(pods(tfjob))
    found = []
    if len(theirs) != len(ours) or len(by_task) != len(ours):
        found.append(f"{len(ours)} pods with tasks {sorted(by_task)}, expected {len(theirs)}")
    for kind, index, template in theirs:
        pod = by_task.get((ROLE[kind.lower()], index))
        where = f"{kind} {index}"
        if pod is None:
            found.append(f"{where}: there is none")
            continue
        found += [f"{where}: {text}" for text in _pod(tfjob, kind, index, template, pod)]
    return found


def _task(pod: Json) -> tuple[str, int]:
    env = _env(_ours(pod))
    return env["TF_TASK_TYPE"], int(env["TF_TASK_INDEX"])


def _ours(pod: Json) -> Json:
    """The container that trains: the one that was given a task."""
    found: Json
    (found,) = [
        item
        for item in pod["spec"]["containers"]
        if any(entry["name"] == "TFADMIT_CLUSTER" for entry in item.get("env") or [])
    ]
    return found


def _env(container: Json) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "") for entry in container.get("env") or []}


def _pod(tfjob: Json, kind: str, index: int, template: Json, pod: Json) -> Iterator[str]:
    yield from _cluster(tfjob, kind, index, pod)
    for name in ("labels", "annotations"):
        theirs = (template.get("metadata") or {}).get(name) or {}
        ours = pod["metadata"].get(name) or {}
        yield from (
            f"metadata.{name}[{key}] is {ours.get(key)!r}, was {value!r}"
            for key, value in theirs.items()
            if ours.get(key) != value and not key.startswith("tfadmit.dev/")
        )
    spec = {key: value for key, value in template["spec"].items() if key not in CHANGED}
    theirs_containers, ours_containers = spec.pop("containers"), pod["spec"]["containers"]
    helpers = zip(
        spec.pop("initContainers", []), pod["spec"].get("initContainers", []), strict=True
    )
    for number, (old, new) in enumerate(helpers):
        yield from _container(old, new, at=f"spec.initContainers[{number}]")
    yield from _missing(spec, pod["spec"], at="spec")
    trains = [item["name"] for item in theirs_containers].index("tensorflow")
    if ours_containers[trains] is not _ours(pod):
        yield "another container has the task"
    for number, (old, new) in enumerate(zip(theirs_containers, ours_containers, strict=True)):
        yield from _container(old, new, at=f"spec.containers[{number}]")


def _container(old: Json, new: Json, *, at: str) -> Iterator[str]:
    # `node` is what the container that trains is called now, and then a helper no more.
    if new["name"] != old["name"] and {old["name"], new["name"]} & {"tensorflow", "node"} == set():
        yield f"{at}.name is {new['name']!r}, was {old['name']!r}"
    rest = {key: value for key, value in old.items() if key not in ("name", "env")}
    yield from _missing(rest, new, at=at)
    theirs = [entry for entry in old.get("env") or [] if entry["name"] not in ADDED]
    ours = [entry for entry in new.get("env") or [] if entry["name"] not in ADDED]
    yield from _missing(theirs, ours, at=f"{at}.env")


def _missing(old: Any, new: Any, *, at: str) -> Iterator[str]:
    """Find values that are gone or changed; what the API server adds is fine."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            if value not in (None, {}, []):
                yield from _missing(value, new.get(key), at=f"{at}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) <= len(new):
        for number, value in enumerate(old):
            yield from _missing(value, new[number], at=f"{at}[{number}]")
    elif old != new and str(old) != new:  # a quantity is stored as text
        yield f"{at} is {new!r}, was {old!r}"


def _cluster(tfjob: Json, kind: str, index: int, pod: Json) -> Iterator[str]:
    """Compare what TensorFlow is told: roles, sizes, ports, and who the task is."""
    ours = json.loads(_env(_ours(pod))["TF_CONFIG"])
    job = defaulted(tfjob)
    theirs = tf_config(job, kind, index)
    if theirs is None:
        theirs = {
            "cluster": {kind.lower(): [f"only:{port(job['spec']['tfReplicaSpecs'][kind])}"]},
            "task": {"type": kind.lower(), "index": index},
        }
    task = {"type": ROLE[theirs["task"]["type"]], "index": theirs["task"]["index"]}
    if ours["task"] != task:
        yield f"the task is {ours['task']}, was {task}"
    expected = {
        ROLE[name]: [address.rpartition(":")[2] for address in addresses]
        for name, addresses in theirs["cluster"].items()
        if addresses and (name != "evaluator" or kind == "Evaluator")
    }
    found = {
        name: [address.rpartition(":")[2] for address in addresses]
        for name, addresses in ours["cluster"].items()
    }
    if found != expected:
        yield f"the cluster has the ports {found}, was {expected}"
