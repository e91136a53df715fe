"""Short builders of the raw objects that the API server would send.

Wire names are literals here: a renamed constant must fail a test.
"""

import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
LABEL = {"trainer.kubeflow.org/framework": "tensorflow"}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place below the root of a JSON value."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        yield (*path, key)
        yield from places(value[key], (*path, key))


def make_container(name: str = "node", **fields: Any) -> Json:
    return {"name": name, "image": "python:3.13-slim", **fields}


def make_replicated_job(
    name: str = "node",
    *,
    replicas: int | None = 1,
    completions: int | None = 3,
    labels: Json | None = None,
    annotations: Json | None = None,
    containers: list[Any] | None = None,
) -> Json:
    return {
        "name": name,
        "replicas": replicas,
        "template": {
            "spec": {
                "completionMode": "Indexed",
                "completions": completions,
                "parallelism": completions,
                "template": {
                    "metadata": {
                        "labels": LABEL if labels is None else labels,
                        "annotations": annotations,
                    },
                    "spec": {
                        "containers": [make_container()] if containers is None else containers
                    },
                },
            }
        },
    }


def make_jobset(
    *jobs: Json,
    name: str = "mnist",
    namespace: str = "team",
    uid: str = "jobset-uid-1",
    subdomain: str | None = None,
    suspend: bool | None = None,
) -> Json:
    network = {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "spec": {
            "suspend": suspend,
            "network": {**network, "subdomain": subdomain} if subdomain else network,
            "replicatedJobs": list(jobs) or [make_replicated_job()],
        },
    }


def make_pod(
    *,
    jobset: str | None = "mnist",
    job: str = "node",
    job_index: int = 0,
    index: int | None = 0,
    uid: str | None = "jobset-uid-1",
    labels: Json | None = None,
    annotations: Json | None = None,
    containers: list[Any] | None = None,
    **spec: Any,
) -> Json:
    """A pod as the Job controller sends it; `jobset=None` leaves out the names of a JobSet."""
    pod_labels: Json = {**LABEL}
    pod_annotations: Json = {}
    if jobset is not None:
        names = {
            "jobset.sigs.k8s.io/jobset-name": jobset,
            "jobset.sigs.k8s.io/replicatedjob-name": job,
            "jobset.sigs.k8s.io/job-index": str(job_index),
        }
        pod_labels |= names
        pod_annotations |= names
        if uid is not None:
            pod_annotations["jobset.sigs.k8s.io/jobset-uid"] = uid
        spec = {
            "hostname": f"{jobset}-{job}-{job_index}-{index}",
            "subdomain": jobset,
            **spec,
        }
    if index is not None:
        pod_annotations["batch.kubernetes.io/job-completion-index"] = str(index)
        pod_labels["batch.kubernetes.io/job-completion-index"] = str(index)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{jobset}-{job}-{job_index}-{index}-",
            "labels": pod_labels | (labels or {}),
            "annotations": pod_annotations | (annotations or {}),
        },
        "spec": {
            "containers": [make_container()] if containers is None else containers,
            **spec,
        },
    }


def make_job(
    *, name: str = "plain", uid: str = "job-uid-1", completions: int = 3, **template_spec: Any
) -> Json:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "team", "uid": uid},
        "spec": {
            "completionMode": "Indexed",
            "completions": completions,
            "parallelism": completions,
            "template": {
                "metadata": {"labels": LABEL},
                "spec": {
                    "subdomain": "plain-svc",
                    "containers": [make_container("tensorflow")],
                    **template_spec,
                },
            },
        },
    }


def make_runtime(
    *jobs: Json, network: Any = None, labels: Json | None = None, **metadata: Any
) -> Json:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {
            "name": "tensorflow-distributed",
            "labels": LABEL if labels is None else labels,
            **metadata,
        },
        "spec": {
            "mlPolicy": {"numNodes": 1},
            "template": {
                "spec": {
                    "network": {"publishNotReadyAddresses": True} if network is None else network,
                    "failurePolicy": {"maxRestarts": 2},
                    "replicatedJobs": list(jobs) or [make_trainer_job()],
                }
            },
        },
    }


def make_trainer_job(name: str = "node", *, step: str | None = "trainer", **metadata: Any) -> Json:
    pod = {"spec": {"containers": [make_container()]}}
    template: Json = {"spec": {"backoffLimit": 0, "template": pod}}
    if step:
        template["metadata"] = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": step}}
    if metadata:
        pod["metadata"] = metadata
    return {"name": name, "template": template}


def make_trainjob(
    *, name: str = "mnist", runtime: str = "tensorflow-distributed", kind: str = "", **trainer: Any
) -> Json:
    reference = {"name": runtime, **({"kind": kind} if kind else {})}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"runtimeRef": reference, **({"trainer": trainer} if trainer else {})},
    }


def make_review(
    content: Json | None,
    *,
    operation: str = "CREATE",
    uid: str = "review-uid-1",
    namespace: str = "team",
    old: Json | None = None,
    dry_run: bool = False,
    **request: Any,
) -> Json:
    kind = (content or old or {}).get("kind", "Pod")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "kind": {"group": "", "version": "v1", "kind": kind},
            "operation": operation,
            "namespace": namespace,
            "userInfo": {"username": "system:serviceaccount:kube-system:job-controller"},
            "dryRun": dry_run,
            "object": content,
            "oldObject": old,
            **request,
        },
    }


def body(review: Any) -> bytes:
    return json.dumps(review).encode()
