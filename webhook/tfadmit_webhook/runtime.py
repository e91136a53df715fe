"""A training runtime as rules and labels see it: its replicated jobs, and which of them are tasks.

Pure views of the raw object, null-safe. How Trainer expands a runtime stands here as far as it
decides the number of tasks; nothing is judged.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from tfadmit_trainer import contract
from tfadmit_webhook import facts, raw, workload

JOBS_PATH: raw.Path = ("spec", "template", "spec", "replicatedJobs")
_POD_TEMPLATE: raw.Path = ("template", "spec", "template")
TRAINER_STEP = "trainer"
# Trainer demands it in its step, and writes the TrainJob's program into no other.
STEP_CONTAINER = "node"
_GANG: raw.Path = ("spec", "podGroupPolicy")
# The names that say a role by themselves.
_TASK_NAMES = frozenset((*contract.ROLES, "master"))


@dataclass(frozen=True, kw_only=True)
class Job:
    """A replicated job of a runtime."""

    path: raw.Path
    content: raw.JsonObject
    pod: workload.Pod
    group: facts.TaskGroup

    @property
    def name(self) -> str:
        """The replicated job's name."""
        return self.group.name

    @functools.cached_property
    def step(self) -> str:
        """The step of Trainer that the job stands for, or nothing."""
        path = ("template", "metadata", "labels", contract.ANCESTOR_LABEL)
        return raw.text(raw.at(self.content, path))

    @property
    def spec(self) -> raw.JsonObject:
        """The spec of the batch Job."""
        return raw.mapping(raw.at(self.content, ("template", "spec")))

    @property
    def spec_path(self) -> raw.Path:
        """Where the spec of the batch Job stands."""
        return (*self.path, "template", "spec")

    @property
    def template_path(self) -> raw.Path:
        """Where the pod template stands."""
        return (*self.path, *_POD_TEMPLATE)

    @functools.cached_property
    def is_task(self) -> bool:
        """Whether the job's pods are tasks of the TensorFlow cluster.

        Those of Trainer's own step, of a job with the name of a role, and those with a role label.
        Initializers and other helpers are none, and who opts out is none.
        """
        if self.pod.annotations.get(contract.INJECT_ANNOTATION) == "false":
            return False
        return (
            self.step == TRAINER_STEP
            or self.name in _TASK_NAMES
            or contract.ROLE_LABEL in self.pod.labels
        )


def jobs(content: raw.JsonObject) -> tuple[Job, ...]:
    """Give the replicated jobs that have a pod template."""
    items = raw.sequence(raw.at(content, JOBS_PATH))
    nodes = raw.count(raw.at(content, ("spec", "mlPolicy", "numNodes")), default=1)
    return tuple(
        _job(raw.mapping(item), path=(*JOBS_PATH, index), nodes=nodes)
        for index, item in enumerate(items)
        if isinstance(raw.at(item, _POD_TEMPLATE), dict)
    )


def is_gang(content: raw.JsonObject) -> bool:
    """Whether Trainer makes a PodGroup; a section without a value is none."""
    return any(value is not None for value in raw.mapping(raw.at(content, _GANG)).values())


def tasks(found: Sequence[Job], role: contract.Role) -> int:
    """How many tasks of a role there are."""
    return sum(job.group.size for job in found if job.is_task and job.group.role == role)


def _job(item: raw.JsonObject, *, path: raw.Path, nodes: int) -> Job:
    spec = raw.mapping(raw.at(item, ("template", "spec")))
    template = workload.pod(raw.mapping(spec.get("template")), namespace="")
    step = raw.at(item, ("template", "metadata", "labels", contract.ANCESTOR_LABEL))
    if step == TRAINER_STEP:
        # Trainer writes numNodes over both counts of its step, and 1 over its replicas.
        spec = {**spec, "completions": nodes, "parallelism": nodes}
    group = workload.task_group(
        raw.text(item.get("name")),
        template=template,
        replicas=1 if step == TRAINER_STEP else raw.count(item.get("replicas"), default=1),
        job_spec=spec,
    )
    return Job(path=path, content=item, pod=template, group=group)
