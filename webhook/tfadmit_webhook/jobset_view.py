"""A JobSet as the shaping of its roles sees it: its replicated jobs, and what else names them.

Pure views of the raw object, null-safe. Nothing is judged and nothing is changed here.
"""

from collections.abc import Sequence

from tfadmit_trainer import contract
from tfadmit_webhook import raw, runtime, workload

JOBS_PATH: raw.Path = ("spec", "replicatedJobs")
ANNOTATIONS_PATH: raw.Path = ("metadata", "annotations")
# Trainer marks the pods of a gang with one of these (plugins CoScheduling and Volcano).
_GANG_LABEL = "scheduling.x-k8s.io/pod-group"
_GANG_ANNOTATION = "scheduling.k8s.io/group-name"


def jobs(content: raw.JsonObject) -> tuple[runtime.Job, ...]:
    """Give all replicated jobs, those that are no tasks included."""
    items = raw.sequence(raw.at(content, JOBS_PATH))
    return tuple(
        _job(item, path=(*JOBS_PATH, index))
        for index, item in enumerate(items)
        if isinstance(item, dict)
    )


def tasks(found: Sequence[runtime.Job]) -> tuple[runtime.Job, ...]:
    """Give those whose pods are tasks of the cluster, as the pod webhook sees them."""
    return tuple(job for job in found if job.pod.is_tensorflow)


def is_gang(found: Sequence[runtime.Job]) -> bool:
    """Whether Trainer has put the pods into a PodGroup."""
    return any(
        _GANG_LABEL in job.pod.labels or _GANG_ANNOTATION in job.pod.annotations for job in found
    )


def is_queued_as_trainjob(content: raw.JsonObject) -> bool:
    """Whether Kueue has the JobSet's TrainJob in a queue; a JobSet of its own it counts itself."""
    metadata = raw.mapping(content.get("metadata"))
    owners = (raw.mapping(item) for item in raw.sequence(metadata.get("ownerReferences")))
    owned = any(owner.get("kind") == "TrainJob" for owner in owners)
    return owned and contract.QUEUE_LABEL in raw.strings(metadata.get("labels"))


def annotations(content: raw.JsonObject) -> dict[str, str]:
    """Give the JobSet's own annotations."""
    return raw.strings(raw.at(content, ANNOTATIONS_PATH))


def _job(item: raw.JsonObject, *, path: raw.Path) -> runtime.Job:
    spec = raw.mapping(raw.at(item, ("template", "spec")))
    template = workload.pod(raw.mapping(spec.get("template")), namespace="")
    group = workload.task_group(
        raw.text(item.get("name")),
        template=template,
        replicas=raw.count(item.get("replicas"), default=1),
        job_spec=spec,
    )
    return runtime.Job(path=path, content=item, pod=template, group=group)
