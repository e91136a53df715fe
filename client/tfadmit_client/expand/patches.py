"""`runtimePatches` of a TrainJob: which parts of a runtime other controllers may change, and how.

Pure. The fields are those of `RuntimePatch` in Trainer 2.3; what else a patch states the API server
drops, so it is dropped here too, and said.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tfadmit_client.expand import merge
from tfadmit_client.expand.remark import Remark
from tfadmit_webhook import raw

_ANYTHING = None
_METADATA: Mapping[str, Any] = {"labels": _ANYTHING, "annotations": _ANYTHING}
CONTAINER: Mapping[str, Any] = {
    "name": _ANYTHING,
    "env": _ANYTHING,
    "volumeMounts": _ANYTHING,
    "securityContext": _ANYTHING,
}
POD_SPEC: Mapping[str, Any] = {
    "serviceAccountName": _ANYTHING,
    "volumes": _ANYTHING,
    "initContainers": CONTAINER,
    "containers": CONTAINER,
    "imagePullSecrets": _ANYTHING,
    "securityContext": _ANYTHING,
    "nodeSelector": _ANYTHING,
    "affinity": _ANYTHING,
    "tolerations": _ANYTHING,
    "schedulingGates": _ANYTHING,
    "terminationGracePeriodSeconds": _ANYTHING,
}
_POD: Mapping[str, Any] = {"metadata": _METADATA, "spec": POD_SPEC}
_JOB: Mapping[str, Any] = {"metadata": _METADATA, "spec": {"template": _POD}}
_REPLICATED_JOB: Mapping[str, Any] = {"name": _ANYTHING, "template": _JOB}
_TEMPLATE: Mapping[str, Any] = {
    "metadata": _METADATA,
    "spec": {"replicatedJobs": _REPLICATED_JOB},
}
_PATCH: Mapping[str, Any] = {
    "manager": _ANYTHING,
    "time": _ANYTHING,
    "trainingRuntimeSpec": {"template": _TEMPLATE},
}
# Trainer keeps their environment to itself: it comes from the TrainJob's own fields.
_OWN_ENV = ("node", "dataset-initializer", "model-initializer")


def apply(
    template: raw.JsonObject, trainjob: raw.JsonObject, remarks: list[Remark]
) -> raw.JsonObject:
    """Give the runtime's template (metadata and spec) after a TrainJob's patches."""
    jobs = raw.sequence(raw.at(template, ("spec", "replicatedJobs")))
    order = {_name(job): index for index, job in enumerate(jobs)}
    merged: Any = template
    stated = raw.sequence(raw.at(trainjob, ("spec", "runtimePatches")))
    for index, item in enumerate(stated):
        where: raw.Path = ("spec", "runtimePatches", index)
        patch = _known(item, _PATCH, where, remarks)
        change = raw.mapping(raw.at(patch, ("trainingRuntimeSpec", "template")))
        remarks += _refused(change, where=raw.dotted(where))
        merged = merge.strategic(merged, change)
    # Trainer restores the order of the runtime, which a merge may change.
    patched_jobs = list(raw.sequence(raw.at(merged, ("spec", "replicatedJobs"))))
    patched_jobs.sort(key=lambda job: order.get(_name(job), 0))
    spec = {**raw.mapping(merged.get("spec")), "replicatedJobs": patched_jobs}
    return {**merged, "spec": spec}


def _known(
    value: Any,  # noqa: ANN401 - JSON has any type
    schema: Mapping[str, Any] | None,
    path: raw.Path,
    remarks: list[Remark],
) -> Any:  # noqa: ANN401 - JSON has any type
    if schema is None:
        return value
    if isinstance(value, list):
        return [_known(item, schema, (*path, at), remarks) for at, item in enumerate(value)]
    known: dict[str, Any] = {}
    for key, item in raw.mapping(value).items():
        if key in schema:
            known[key] = _known(item, schema[key], (*path, key), remarks)
        else:
            text = (
                f"{raw.dotted((*path, key))} is not applied: Trainer's patches have no such field; "
                "kubectl refuses it, or drops it with --validate=false"
            )
            remarks.append(Remark(text=text))
    return known


def _refused(change: raw.JsonObject, *, where: str) -> Iterator[Remark]:
    """Find what Trainer's own webhook refuses in a patch. Unknown names it accepts, see TFA023."""
    for job in raw.sequence(raw.at(change, ("spec", "replicatedJobs"))):
        for name, container in _containers(job):
            if name in _OWN_ENV and container.get("env"):
                text = (
                    f"{where}, replicated job {_name(job)!r}: env of the container {name!r} cannot "
                    "be patched: write it in spec.trainer.env"
                )
                yield Remark(text=f"Trainer refuses the TrainJob: {text}", refused=True)


def _containers(job: object) -> Iterator[tuple[str, raw.JsonObject]]:
    spec = raw.at(job, ("template", "spec", "template", "spec"))
    for kind in ("initContainers", "containers"):
        for item in raw.sequence(raw.mapping(spec).get(kind)):
            container = raw.mapping(item)
            yield _name(container), container


def _name(item: object) -> str:
    return raw.text(raw.mapping(item).get("name"))
