"""The reviews that are sent: pods of a given size in clusters of a given size, and a few others.

A pod looks as an API server sends it for JobSet: defaults filled in, and made larger by what makes
pods large, half of it a script in `args`, half many small variables.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import builders

Json = dict[str, Any]
# The load generator writes a uid of its own in its place.
UID = "00000000-0000-4000-8000-000000000000"
NAMESPACE = "team"
_JOBSET_UID = "5f0c8c1e-7c39-4a1f-9a55-2f6f6f1d9a10"
# So that no answer can be the last one by chance.
_TASKS_PER_CASE = 8
_SCRIPT_LINE = 'python train.py --data "/data/shard-%06d" --epochs 3 && echo done\n'


@dataclass(frozen=True, kw_only=True)
class Specimen:
    """One review and what is expected of its answer."""

    review: Json
    allowed: bool = True
    patched: bool = True


@dataclass(frozen=True, kw_only=True)
class Case:
    """Reviews of one kind, sent in turn."""

    name: str
    path: str
    specimens: Sequence[Specimen]

    def write(self, directory: Path) -> Path:
        """One line per specimen, as the load generator reads them."""
        file = directory / f"{self.name.replace(' ', '-').replace(',', '')}.jsonl"
        with file.open("w") as lines:
            for one in self.specimens:
                line = {"review": one.review, "allowed": one.allowed, "patched": one.patched}
                lines.write(json.dumps(line, separators=(",", ":")) + "\n")
        return file


def jobset(tasks: int) -> Json:
    """The JobSet of a cluster of so many workers."""
    return builders.make_jobset(
        builders.make_replicated_job(completions=tasks),
        name=jobset_name(tasks),
        namespace=NAMESPACE,
        uid=_JOBSET_UID,
    )


def other_jobset(number: int) -> Json:
    """A JobSet that no review asks for, with a pod template of an ordinary size."""
    containers = pod(tasks=16, index=0, size=4096)["spec"]["containers"]
    return builders.make_jobset(
        builders.make_replicated_job(completions=16, containers=containers),
        name=f"other-{number}",
        namespace=NAMESPACE,
        uid=f"{number:08}-7c39-4a1f-9a55-2f6f6f1d9a10",
    )


def pods(*, tasks: int, size: int, **request: Any) -> Case:
    """Reviews of pods that are tasks of one cluster; `size` is that of the pod in bytes."""
    indexes = [number * tasks // _TASKS_PER_CASE for number in range(_TASKS_PER_CASE)]
    specimens = [
        Specimen(review=_review(pod(tasks=tasks, index=index, size=size), **request))
        for index in indexes
    ]
    name = f"{tasks} tasks, {_short(size)}"
    return Case(name=name, path="/mutate/pods?timeout=10s", specimens=specimens)


def pod(*, tasks: int, index: int, size: int) -> Json:
    """A pod of that many bytes, written without blanks."""
    content = _pod(jobset=jobset_name(tasks), index=index)
    container = content["spec"]["containers"][0]
    missing = size - len(_dump(content))
    if missing > 0:
        lines = missing // 2 // len(_SCRIPT_LINE % 0)
        container["args"].append("".join(_SCRIPT_LINE % line for line in range(lines)))
        while len(_dump(content)) < size:
            # In steps, because measuring a large pod for each variable takes long.
            more = max(1, (size - len(_dump(content))) // 100)
            known = len(container["env"])
            container["env"] += [_variable(number) for number in range(known, known + more)]
    return content


def unlabelled() -> Case:
    """A pod that is none of ours, as a webhook configuration without a selector would send it."""
    content = pod(tasks=64, index=3, size=4096)
    del content["metadata"]["labels"]["trainer.kubeflow.org/framework"]
    return _single("no label", content)


def admitted(patched_pod: Json) -> Case:
    """A pod that has all that it should have, as in a second round of the API server."""
    return _single("admitted before", patched_pod)


def dry_run() -> Case:
    """The review of `kubectl apply --dry-run=server`."""
    case = pods(tasks=64, size=4096, dry_run=True)
    return Case(name="dry run", path=case.path, specimens=case.specimens)


def denied_runtime() -> Case:
    """A runtime that lacks `publishNotReadyAddresses: true`."""
    content = builders.make_runtime(network={"publishNotReadyAddresses": False})
    review = _review(content, namespace="")
    specimen = Specimen(review=review, allowed=False, patched=False)
    return Case(name="denied runtime", path="/validate/runtimes?timeout=10s", specimens=[specimen])


def objects(tasks: Iterable[int]) -> list[Json]:
    """The JobSets that the look-ups need."""
    return [jobset(count) for count in tasks]


def _single(name: str, content: Json) -> Case:
    specimen = Specimen(review=_review(content), patched=False)
    return Case(name=name, path="/mutate/pods?timeout=10s", specimens=[specimen])


def _review(content: Json, **request: Any) -> Json:
    given = {"namespace": NAMESPACE, "uid": UID, **request}
    return builders.make_review(content, **given)


def jobset_name(tasks: int) -> str:
    """What the JobSet of a cluster of so many workers is called."""
    return f"mnist-{tasks}"


def _pod(*, jobset: str, index: int) -> Json:
    mounts = [
        {"name": name, "mountPath": path}
        for name, path in (("data", "/data"), ("output", "/output"), ("shm", "/dev/shm"))
    ]
    token = {"name": "kube-api-access-x7k2p", "readOnly": True}
    container = builders.make_container(
        imagePullPolicy="IfNotPresent",
        args=["bash", "-c"],
        env=[
            {"name": "JOB_COMPLETION_INDEX", "value": str(index)},
            {
                "name": "POD_IP",
                "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}},
            },
        ],
        resources={
            kind: {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}
            for kind in ("limits", "requests")
        },
        volumeMounts=[
            *mounts,
            token | {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        ],
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    content = builders.make_pod(
        jobset=jobset,
        index=index,
        uid=_JOBSET_UID,
        containers=[container],
        volumes=[
            {
                "name": "data",
                "persistentVolumeClaim": {"claimName": "mnist-data", "readOnly": True},
            },
            {"name": "output", "persistentVolumeClaim": {"claimName": "mnist-output"}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
        ],
        restartPolicy="Never",
        terminationGracePeriodSeconds=30,
        dnsPolicy="ClusterFirst",
        serviceAccountName="default",
        serviceAccount="default",
        securityContext={},
        schedulerName="default-scheduler",
        enableServiceLinks=True,
        preemptionPolicy="PreemptLowerPriority",
        priority=0,
        tolerations=[
            {
                "key": f"node.kubernetes.io/{what}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for what in ("not-ready", "unreachable")
        ],
    )
    content["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": f"{jobset}-node-0",
            "uid": "0b0e7a52-1f0c-4a2e-8a1b-9a1b64f3f7cd",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    content["status"] = {}
    return content


def _variable(number: int) -> Json:
    return {"name": f"APP_SETTING_{number:06}", "value": f"value-of-the-setting-{number:06}"}


def _short(size: int) -> str:
    return f"{size // 2**20} MB" if size >= 2**20 else f"{size // 1024} KB"


def _dump(content: Json) -> str:
    return json.dumps(content, separators=(",", ":"))
