"""Why a job does not run yet: from the runtime down to a container of a pod.

The first thing that is missing on the way TrainJob, JobSet, Job, pod, node, container is the
reason; what lies behind it cannot be there yet.
"""

from collections.abc import Iterable, Sequence

from tfadmit_client.watch import container, event, sentence, why_failed
from tfadmit_client.watch.reason import Reason
from tfadmit_client.watch.seen import Seen
from tfadmit_client.watch.state import has_begun
from tfadmit_client.watch.task import Task
from tfadmit_webhook import raw, trainjob

_ON_THE_WAY = frozenset({"starting", "initializing", "scheduling"})
_IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
_CONFIG = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
        "PreCreateHookError",
    }
)
_VOLUME = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
_NODE = frozenset({"FailedCreatePodSandBox", "NetworkNotReady"})


def why(seen: Seen, tasks: Sequence[Task]) -> Reason | None:
    """Explain a job whose tasks do not all run; None when nothing stands in the way."""
    waiting = [(task, _task(task, seen)) for task in tasks if task.pod and not has_begun(task)]
    known = [(task, reason) for task, reason in waiting if reason]
    # A pod that is merely on its way explains less than one that cannot be had.
    stuck = [(task, reason) for task, reason in known if reason.code not in _ON_THE_WAY]
    return (
        _objects(seen)
        or _most(stuck, tasks)
        or _absent(seen, tasks)
        or _most(known, tasks)
        or _dependence(seen, tasks)
        or _said_of_all(seen)
    )


def one(task: Task, seen: Seen) -> Reason | None:
    """Explain one task, whatever became of it; None when there is nothing to explain."""
    if has_begun(task):
        found = why_failed.fault([task])
        return found and Reason(code=found.code, text=found.text.removeprefix(f"{task.name} "))
    return _task(task, seen) if task.pod else None


def _objects(seen: Seen) -> Reason | None:
    """Explain what is missing before there is any pod."""
    if seen.jobset is None and not seen.pods:
        return _no_jobset(seen)
    if seen.pods_known and not seen.pods and not seen.jobs:
        if found := event.latest(seen.events, kind="JobSet"):
            return sentence.refusal(found.message)
        if raw.at(seen.jobset, ("spec", "suspend")) is True:
            return Reason(code="starting", text="its JobSet is still suspended")
    return None


def _no_jobset(seen: Seen) -> Reason | None:
    if seen.runtime_gone:
        named = trainjob.reference(seen.trainjob, namespace=seen.namespace)
        text = f"{named.label if named else 'its runtime'} does not exist"
        return Reason(code="runtime-missing", text=text)
    if found := event.latest(seen.events, kind="TrainJob"):
        return sentence.refusal(found.message)
    if seen.stranger:
        text = f"a JobSet {seen.name} that is not its own is in the way"
        return Reason(code="not-created", text=text)
    manager = raw.text(raw.at(seen.trainjob, ("spec", "managedBy")))
    if manager and not manager.startswith("trainer.kubeflow.org/"):
        return Reason(code="starting", text=f"{manager} manages it")
    return None


def _most(known: Sequence[tuple[Task, Reason]], tasks: Sequence[Task]) -> Reason | None:
    """Explain by the reason that most tasks have, of several the first task's."""
    groups: dict[Reason, list[Task]] = {}
    for task, reason in known:
        groups.setdefault(reason, []).append(task)
    if not groups:
        return None
    most, alike = max(groups.items(), key=lambda item: len(item[1]))
    return Reason(code=most.code, text=sentence.cut(f"{_whose(alike, tasks)}{most.text}"))


def _whose(alike: Sequence[Task], tasks: Sequence[Task]) -> str:
    """Name the tasks that a reason is about, unless it is about all."""
    if len(alike) == len(tasks):
        return ""
    more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
    return f"{alike[0].name}{more}: "


def _absent(seen: Seen, tasks: Sequence[Task]) -> Reason | None:
    """Explain pods that their Job could not create."""
    if all(task.pod for task in tasks):
        return None
    found = event.latest(seen.events, kind="Job", reasons=("FailedCreate",))
    return sentence.refusal(found.message) if found else None


def _said_of_all(seen: Seen) -> Reason | None:
    """Explain a job without pods by the last warning about any of its objects."""
    kinds = ("TrainJob", "JobSet", "Job")
    found = [event.latest(seen.events, kind=kind) for kind in kinds]
    last = max((item for item in found if item), key=lambda item: item.at, default=None)
    return sentence.refusal(last.message) if last and not seen.pods else None


def _dependence(seen: Seen, tasks: Sequence[Task]) -> Reason | None:
    """Explain replicated jobs that wait for others (JobSet `dependsOn`)."""
    missing = {task.replicated_job for task in tasks if task.pod is None}
    for item in map(raw.mapping, raw.sequence(raw.at(seen.jobset, ("spec", "replicatedJobs")))):
        names = [
            raw.text(raw.mapping(entry).get("name"))
            for entry in raw.sequence(item.get("dependsOn"))
        ]
        if item.get("name") in missing and names:
            return Reason(code="initializing", text=f"waits for {', '.join(names)}")
    return None


def _task(task: Task, seen: Seen) -> Reason | None:
    """Explain one pod that does not run."""
    if task.leaving:
        return Reason(code="starting", text="its pod is being deleted")
    if scheduling := _scheduling(task):
        return scheduling
    for item in task.containers:
        if found := _container(item, task, seen):
            return found
    return _node(task, seen)


def _scheduling(task: Task) -> Reason | None:
    conditions = map(raw.mapping, raw.sequence(raw.at(task.pod, ("status", "conditions"))))
    scheduled = next((item for item in conditions if item.get("type") == "PodScheduled"), None)
    if task.node:
        return None
    if scheduled is None:
        name = raw.text(raw.at(task.pod, ("spec", "schedulerName"))) or "default-scheduler"
        return Reason(code="scheduling", text=f"{name} has not looked at it yet")
    said = raw.text(scheduled.get("message"))
    if scheduled.get("reason") == "SchedulingGated":
        gates = raw.sequence(raw.at(task.pod, ("spec", "schedulingGates")))
        names = ", ".join(raw.text(raw.mapping(gate).get("name")) for gate in gates)
        return Reason(code="gated", text=f"held back by {names or 'a scheduling gate'}")
    return Reason(code="unschedulable", text=sentence.unschedulable(said or "no node fits"))


def _container(item: container.Container, task: Task, seen: Seen) -> Reason | None:
    where = f"init container {item.name}: " if item.init else ""
    if item.waiting in _IMAGE:
        # Older kubelets say why in an event only.
        plain = item.message.startswith("Back-off pulling") and "ErrImagePull" not in item.message
        said = "" if plain else item.message
        said = said or _said(task, seen, ("Failed",))
        return sentence.image(item.waiting, item.image, said)
    if item.waiting in _CONFIG:
        return Reason(code="config", text=f"{where}{item.message or item.waiting}")
    if item.waiting == "CrashLoopBackOff" or item.crashed:
        ended = why_failed.run(item, item.before) if item.before else None
        times = item.restarts + item.crashed
        text = f"crashed {times} times" if times > 1 else "crashed"
        text += f": {ended.text}" if ended else ""
        return Reason(code="crash-loop", text=f"{where}{text}")
    if item.init and item.running and not item.sidecar:
        return Reason(code="initializing", text=f"init container {item.name} runs")
    return None


def _node(task: Task, seen: Seen) -> Reason | None:
    """Explain a pod on a node whose containers are not there yet."""
    if said := _said(task, seen, _VOLUME):
        return Reason(code="volume", text=sentence.cut(said))
    if said := _said(task, seen, _NODE):
        return Reason(code="starting", text=sentence.cut(said))
    if task.phase == "Pending":
        return Reason(code="starting", text=f"is starting on {task.node}")
    return None


def _said(task: Task, seen: Seen, reasons: Iterable[str]) -> str:
    name = raw.text(raw.at(task.pod, ("metadata", "name")))
    found = event.latest(seen.events, kind="Pod", reasons=reasons, name=name)
    return found.message if found else ""
