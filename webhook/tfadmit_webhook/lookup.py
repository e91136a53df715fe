"""Which task a pod is, which runtime a TrainJob has, what labels a namespace has.

The order of sources, and when a remembered fact is good enough. The asking itself is behind the
protocol of `facts`; what the facts mean is computed in `cluster`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tfadmit_trainer import contract
from tfadmit_webhook import cluster, facts, raw, trainjob, workload
from tfadmit_webhook.decision import Reason, Refusal
from tfadmit_webhook.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Context:
    """What a handler may use beside the request."""

    reader: facts.ClusterReader
    settings: Settings
    remaining: Callable[[], float]
    """Seconds until the API server stops waiting."""


def task(view: workload.Pod, context: Context) -> tuple[contract.Task, str] | Refusal:
    """Find the task that a pod is: as stated by annotation, from its JobSet, or from its Job."""
    try:
        if text := view.annotations.get(contract.CLUSTER_ANNOTATION):
            return _named(cluster.stated(view, text), "annotation")
        if name := view.labels.get(contract.JOBSET_NAME_LABEL):
            return _named(_task_of(view, _jobset(view, name, context), context), "jobset")
        if view.owner_job:
            return _named(_task_of(view, _job(view, *view.owner_job, context), context), "job")
    except facts.LookupFailedError as error:
        return Refusal(reason=Reason.LOOKUP_FAILED, message=str(error))
    return Refusal(
        reason=Reason.NO_CLUSTER,
        message=(
            f"the pod carries {contract.FRAMEWORK_LABEL}={contract.FRAMEWORK}, but nothing says "
            "which tasks belong to its cluster: it has no JobSet and no Job; state the cluster, "
            f'annotation {contract.CLUSTER_ANNOTATION}: {{"worker":["host-{{0..1}}.svc:12345"]}}'
            f', or leave the pod out, annotation {contract.INJECT_ANNOTATION}: "false"'
        ),
    )


def runtime(reference: trainjob.Reference, context: Context) -> raw.JsonObject | None:
    """Ask for the runtime of a TrainJob; None says that it does not exist.

    Raises:
        facts.LookupFailedError: that cannot be known.
    """
    return context.reader.runtime(
        kind=reference.kind,
        namespace=reference.namespace,
        name=reference.name,
        timeout=context.remaining(),
    )


def namespace_labels(name: str, context: Context) -> Mapping[str, str] | None:
    """Ask for the labels of a namespace; None says that it does not exist.

    Raises:
        facts.LookupFailedError: that cannot be known.
    """
    return context.reader.namespace_labels(name=name, timeout=context.remaining())


def _named(found: contract.Task | Refusal, source: str) -> tuple[contract.Task, str] | Refusal:
    return found if isinstance(found, Refusal) else (found, source)


def _jobset(view: workload.Pod, name: str, context: Context) -> facts.Workload | Refusal:
    """Take the JobSet from the watch when it can be the pod's, else ask the API server."""
    cached = context.reader.cached_jobset(namespace=view.namespace, name=name)
    if cached and not cluster.stale(view, cached, default_port=context.settings.default_port):
        return cached
    live = context.reader.live_jobset(
        namespace=view.namespace, name=name, timeout=context.remaining()
    )
    if live is None:
        return Refusal(
            reason=Reason.JOBSET_MISSING,
            message=(
                f"JobSet {view.namespace}/{name} does not exist, and it says how many tasks there "
                "are; the pod is admitted once it exists"
            ),
        )
    uid = view.annotations.get(contract.JOBSET_UID_ANNOTATION)
    if uid and uid != live.uid:
        return Refusal(
            reason=Reason.OTHER_JOBSET,
            message=(
                f"the pod belongs to a JobSet {view.namespace}/{name} with uid {uid}, which is "
                f"gone; the one there now has uid {live.uid}"
            ),
        )
    return live


def _job(view: workload.Pod, name: str, uid: str, context: Context) -> facts.Workload | Refusal:
    live = context.reader.live_job(namespace=view.namespace, name=name, timeout=context.remaining())
    if live and live.uid == uid:
        return live
    return Refusal(
        reason=Reason.JOB_MISSING,
        message=(
            f"Job {view.namespace}/{name} with uid {uid} does not exist, and it says how many "
            "tasks there are; the pod is admitted once it exists"
        ),
    )


def _task_of(
    view: workload.Pod, work: facts.Workload | Refusal, context: Context
) -> contract.Task | Refusal:
    if isinstance(work, Refusal):
        return work
    member = cluster.member(view, work)
    if isinstance(member, Refusal):
        return member
    settings = context.settings
    planned = cluster.plan(work, domain=settings.cluster_domain, default_port=settings.default_port)
    if isinstance(planned, Refusal):
        return planned
    role, index = member
    return contract.Task(cluster=planned, role=role, index=index)
