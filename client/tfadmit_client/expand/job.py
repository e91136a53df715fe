"""From a Job to its pods, as the API server and the Job controller of Kubernetes 1.36 make them.

Pure. Follows `pkg/registry/batch/job/strategy.go` (the selector's labels), `pkg/controller/job` and
`pkg/apis/batch/v1/defaults.go`. The pods of a Job share the parts in which they do not differ, so
that ten thousand of them cost little; whoever changes one copies first.
"""

from collections.abc import Iterator
from typing import Any

from tfadmit_client.expand import merge, values
from tfadmit_client.expand.remark import Remark, uid
from tfadmit_trainer import contract
from tfadmit_webhook import raw

_INDEX_ENV = "JOB_COMPLETION_INDEX"
_FINALIZER = "batch.kubernetes.io/job-tracking"
_FAILURES = "batch.kubernetes.io/job-index-failure-count"
# names.MaxGeneratedNameLength: 63 less the five random characters
_LONGEST_PREFIX = 58


def defaulted(content: raw.JsonObject, *, namespace: str) -> raw.JsonObject:
    """Give the Job with the defaults, and the labels of its selector on the pod template."""
    copy = merge.without_nulls(content)
    metadata, spec = raw.mapping(copy.get("metadata")), raw.mapping(copy.get("spec"))
    name = raw.text(metadata.get("name"))
    own_uid = uid("Job", namespace=namespace, name=name, content=copy)
    template = raw.mapping(spec.get("template"))
    pod_spec = values.with_quantities(raw.mapping(template.get("spec")))
    template_metadata = raw.mapping(template.get("metadata"))
    labels = dict(raw.mapping(template_metadata.get("labels")))
    # The API server copies the template's own labels, before it adds those of the selector.
    job_labels = raw.mapping(metadata.get("labels")) or dict(labels)
    if spec.get("manualSelector") is not True:
        for key, value in _selector(name, own_uid).items():
            labels.setdefault(key, value)
    if "completions" not in spec and "parallelism" not in spec:
        spec = {**spec, "completions": 1}
    return {
        **copy,
        "metadata": {**metadata, "namespace": namespace, "uid": own_uid, "labels": job_labels},
        "spec": {
            "parallelism": 1,
            "completionMode": "NonIndexed",
            **spec,
            "template": {
                **template,
                "metadata": {**template_metadata, "labels": labels},
                "spec": pod_spec,
            },
        },
    }


def _selector(name: str, own_uid: str) -> dict[str, str]:
    return {
        "job-name": name,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": own_uid,
        "batch.kubernetes.io/controller-uid": own_uid,
    }


def remarks(job: raw.JsonObject) -> Iterator[Remark]:
    """Say what the API server would refuse in a Job, and what keeps its tasks from one another."""
    spec = raw.mapping(job.get("spec"))
    parallelism = raw.count(spec.get("parallelism"), default=1)
    name = raw.text(raw.at(job, ("metadata", "name")))
    yield from values.remarks(raw.mapping(spec.get("template")))
    if not _is_indexed(job):
        return
    if "completions" not in spec:
        yield Remark(
            text=f"the API server refuses Job {name}: completionMode Indexed needs completions; "
            f"write `completions: {parallelism}` beside `parallelism: {parallelism}`",
            refused=True,
        )
    completions = raw.count(spec.get("completions"), default=parallelism)
    if parallelism < completions:
        yield Remark(
            text=f"Job {name} runs {parallelism} of its {completions} tasks at a time, and "
            f"TensorFlow tasks wait for each other: write `parallelism: {completions}`"
        )


def pods(job: raw.JsonObject) -> Iterator[raw.JsonObject]:
    """Give every pod of a Job that has its defaults."""
    indexed = _is_indexed(job)
    template = raw.mapping(raw.at(job, ("spec", "template")))
    spec = dict(raw.mapping(template.get("spec")))
    if indexed:
        for kind in ("initContainers", "containers"):
            if kind in spec:
                spec[kind] = [_with_index(item) for item in raw.sequence(spec[kind])]
    base = _metadata(job, raw.mapping(template.get("metadata")))
    for index in range(count(job)):
        yield _pod(job, base, spec, index=index if indexed else None)


def count(job: raw.JsonObject) -> int:
    """How many pods a Job makes when none fails."""
    spec = raw.mapping(job.get("spec"))
    parallelism = raw.count(spec.get("parallelism"), default=1)
    return raw.count(spec.get("completions"), default=parallelism)


def _is_indexed(job: raw.JsonObject) -> bool:
    return bool(raw.at(job, ("spec", "completionMode")) == "Indexed")


def _metadata(job: raw.JsonObject, template: raw.JsonObject) -> dict[str, Any]:
    own = raw.mapping(job.get("metadata"))
    name = raw.text(own.get("name"))
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": name,
        "uid": raw.text(own.get("uid")),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata: dict[str, Any] = {
        "generateName": f"{name}-",
        "namespace": raw.text(own.get("namespace")),
        "labels": raw.mapping(template.get("labels")),
        "finalizers": [*raw.sequence(template.get("finalizers")), _FINALIZER],
        "ownerReferences": [owner],
    }
    annotations = dict(raw.mapping(template.get("annotations")))
    if raw.at(job, ("spec", "backoffLimitPerIndex")) is not None:
        annotations[_FAILURES] = "0"
    if annotations:
        metadata["annotations"] = annotations
    return metadata


def _pod(
    job: raw.JsonObject, base: raw.JsonObject, spec: raw.JsonObject, *, index: int | None
) -> raw.JsonObject:
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": base, "spec": spec}
    if index is None:
        return pod
    name = raw.text(raw.at(job, ("metadata", "name")))
    mark = {contract.COMPLETION_INDEX_ANNOTATION: str(index)}  # a label of the same name, too
    pod["metadata"] = {
        **base,
        "generateName": _generate_name(name, index),
        "labels": {**raw.mapping(base.get("labels")), **mark},
        "annotations": {**raw.mapping(base.get("annotations")), **mark},
    }
    pod["spec"] = {**spec, "hostname": f"{name}-{index}"}
    return pod


def _generate_name(name: str, index: int) -> str:
    suffix = f"-{index}-"
    return name[: _LONGEST_PREFIX - len(suffix)] + suffix


def _with_index(item: object) -> object:
    container = raw.mapping(item)
    env = raw.sequence(container.get("env"))
    if any(raw.mapping(entry).get("name") == _INDEX_ENV for entry in env):
        return item
    path = f"metadata.labels['{contract.COMPLETION_INDEX_ANNOTATION}']"
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}
    return {**container, "env": [*env, {"name": _INDEX_ENV, "valueFrom": source}]}
