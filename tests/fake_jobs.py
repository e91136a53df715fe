"""Jobs for tests that need no API server: their objects, and a cluster that holds them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from tfadmit_client.cluster import listing

Json = dict[str, Any]
LABEL = {"trainer.kubeflow.org/framework": "tensorflow"}
CREATED = "2026-01-01T10:00:00Z"
NOW = 1767261900.0  # five minutes later
IMAGE = "example.com/train:1"


def trainjob(name: str, *conditions: Json, **fields: Any) -> Json:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"{name}-trainjob",
            "creationTimestamp": CREATED,
            **fields.pop("metadata", {}),
        },
        "spec": {"runtimeRef": {"name": "tensorflow"}, **fields.pop("spec", {})},
        "status": {"conditions": list(conditions), **fields.pop("status", {})},
    }


def condition(
    kind: str, *, status: str = "True", reason: str = "Because", message: str = ""
) -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T10:04:00Z"}  # fmt: skip


def replicated(name: str = "node", *, completions: int = 2, **fields: Any) -> Json:
    template = {"metadata": {"labels": LABEL}, "spec": {"containers": [{"name": "node"}]}}
    spec = {"completions": completions, "parallelism": completions, "template": template}
    return {"name": name, "replicas": 1, "template": {"spec": spec}, **fields}


def jobset(name: str, *jobs: Json, restarts: int = 0, conditions: tuple[Json, ...] = ()) -> Json:
    return {
        "metadata": {"name": name, "namespace": "team", "uid": f"{name}-jobset",
                     "ownerReferences": [{"uid": f"{name}-trainjob"}]},
        "spec": {"replicatedJobs": list(jobs) or [replicated()]},
        "status": {"restarts": restarts, "conditions": list(conditions)},
    }  # fmt: skip


def pod(job: str, index: int = 0, *, replicated_job: str = "node", attempt: int = 0,
        **status: Any) -> Json:  # fmt: skip
    labels = {
        **LABEL,
        "jobset.sigs.k8s.io/jobset-name": job,
        "jobset.sigs.k8s.io/replicatedjob-name": replicated_job,
        "jobset.sigs.k8s.io/job-index": "0",
        "jobset.sigs.k8s.io/restart-attempt": str(attempt),
    }
    annotations = {"batch.kubernetes.io/job-completion-index": str(index),
                   "jobset.sigs.k8s.io/jobset-uid": f"{job}-jobset"}  # fmt: skip
    name = f"{job}-{replicated_job}-0-{index}-{attempt}"
    return {
        "metadata": {"name": name, "namespace": "team", "uid": name, "labels": labels,
                     "annotations": annotations, "creationTimestamp": CREATED},
        "spec": {"nodeName": status.pop("node", "gpu-1"),
                 "containers": [{"name": "node", "image": IMAGE, **status.pop("spec", {})}]},
        "status": status,
    }  # fmt: skip


def running(job: str, index: int = 0, *, restarts: int = 0, **fields: Any) -> Json:
    state = {"running": {"startedAt": CREATED}}
    return pod(
        job, index, phase="Running", containerStatuses=[container(state, restarts)], **fields
    )


def waiting(job: str, index: int = 0, *, reason: str, message: str = "", **fields: Any) -> Json:
    state = {"waiting": {"reason": reason, "message": message}}
    more = {name: fields.pop(name) for name in ("lastState",) if name in fields}
    restarts = fields.pop("restarts", 0)
    statuses = [{**container(state, restarts), **more}]
    return pod(job, index, phase="Pending", containerStatuses=statuses, **fields)


def ended(
    job: str, index: int = 0, *, code: int, reason: str = "Error", message: str = "",
    at: str = "2026-01-01T10:04:00Z", **fields: Any,
) -> Json:  # fmt: skip
    state = {"terminated": {"exitCode": code, "reason": reason, "message": message,
                            "finishedAt": at}}  # fmt: skip
    phase = "Failed" if code else "Succeeded"
    return pod(job, index, phase=phase, containerStatuses=[container(state)], **fields)


def unscheduled(job: str, index: int = 0, *, message: str, reason: str = "Unschedulable") -> Json:
    mark = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return pod(job, index, node="", phase="Pending", conditions=[mark])


def container(state: Json, restarts: int = 0) -> Json:
    return {"name": "node", "restartCount": restarts, "state": state}


def job(name: str, *conditions: Json, replicated_job: str = "node") -> Json:
    labels = {"jobset.sigs.k8s.io/jobset-name": name,
              "jobset.sigs.k8s.io/replicatedjob-name": replicated_job}  # fmt: skip
    return {"metadata": {"name": f"{name}-{replicated_job}-0", "namespace": "team",
                         "uid": f"{name}-job", "labels": labels},
            "status": {"conditions": list(conditions)}}  # fmt: skip


def warning(kind: str, name: str, *, reason: str, message: str, at: str = CREATED) -> Json:
    return {"type": "Warning", "reason": reason, "message": message, "eventTime": at,
            "involvedObject": {"kind": kind, "name": name, "namespace": "team"}}  # fmt: skip


class Cluster:
    """Objects by kind; an exception in their place is raised."""

    default_namespace = "team"
    flags = ""

    def __init__(self, **objects: list[Json] | Exception) -> None:
        self.kinds: dict[str, list[Json] | Exception] = {
            "Namespace": [{"metadata": {"name": "team"}}],
            **objects,
        }
        self.logs: dict[str, list[list[bytes | Exception] | Exception]] = {}
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self.patched: list[tuple[str, str, Mapping[str, Any]]] = []

    def objects(
        self, kind: listing.Kind, *, namespace: str | None, **selectors: str
    ) -> Iterator[Json]:
        held = self.kinds.get(kind.name, [])
        if isinstance(held, Exception):
            raise held
        name, _, wanted = selectors.get("labelSelector", "").partition("=")
        field, _, value = selectors.get("fieldSelector", "").partition("=")
        for item in held:
            metadata = item.get("metadata") or {}
            labels = metadata.get("labels") or {}
            if namespace not in (None, metadata.get("namespace", namespace)):
                continue
            if name and (name not in labels or (wanted and labels[name] != wanted)):
                continue
            if field == "metadata.name" and metadata.get("name") != value:
                continue
            yield copy.deepcopy(item)

    def get(self, kind: listing.Kind, *, namespace: str, name: str) -> Json | None:
        found = self.objects(
            kind, namespace=namespace or None, fieldSelector=f"metadata.name={name}"
        )
        return next(found, None)

    def patch(
        self, kind: listing.Kind, *, namespace: str, name: str, body: Mapping[str, Any]
    ) -> Json | None:
        self.patched.append((kind.name, name, body))
        return self.get(kind, namespace=namespace, name=name)

    def delete(self, kind: listing.Kind, *, namespace: str, name: str) -> Json | None:
        found = self.get(kind, namespace=namespace, name=name)
        held = self.kinds.get(kind.name, [])
        assert isinstance(held, list)
        held[:] = [item for item in held if item["metadata"]["name"] != name]
        return found

    def version_of(self, group: str) -> str:
        return "v1beta2" if "Workload" in self.kinds else ""

    def changes(
        self, kind: listing.Kind, *, namespace: str, silence: float, **selectors: str
    ) -> Stream:
        raise listing.StatusError(403, "you may not watch")

    def log(self, namespace: str, pod: str, *, query: Mapping[str, str], silence: float) -> Stream:
        self.asked.append((pod, query))
        answers = self.logs.get(pod, [])
        # the last answer is given again and again
        answer = answers.pop(0) if len(answers) > 1 else answers[0] if answers else []
        if isinstance(answer, Exception):
            raise answer
        return Stream(answer)


class Stream:
    """Lines, then an end; an exception among them is raised in its place."""

    def __init__(self, lines: list[Any]) -> None:
        self._lines = lines

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            if isinstance(line, Exception):
                raise line
            yield line

    def interrupt(self) -> None:
        """Nothing waits."""
