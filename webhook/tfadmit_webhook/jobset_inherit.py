"""What the other roles take over from Trainer's step: image, command, args, env and resources.

A TrainJob states these for the container `node` of one replicated job; chief, ps and evaluator run
the same program. A container without an image is a placeholder for it: nothing else runs without
one, so no working JobSet is touched. One with an image is the runtime's own, and stays as it is.
Pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfadmit_trainer import contract
from tfadmit_webhook import patch, raw, runtime, workload
from tfadmit_webhook.decision import Operation

# They name one task, or its place in the cluster: the pod webhook gives each role its own.
_PER_TASK = frozenset(
    (
        contract.TASK_TYPE_ENV,
        contract.TASK_INDEX_ENV,
        contract.NUM_WORKERS_ENV,
        contract.CHIEF_HOSTS_ENV,
        contract.WORKER_HOSTS_ENV,
        contract.PS_HOSTS_ENV,
        contract.ATTEMPT_ENV,
        contract.CLUSTER_ENV,
        contract.TF_CONFIG_ENV,
        "JOB_COMPLETION_INDEX",
    )
)
# Trainer mounts the files that these name into the pods of its own step only.
_SERVER_PREFIX = "KUBEFLOW_TRAINER_SERVER_"
_QUANTITIES = ("limits", "requests")


@dataclass(frozen=True, kw_only=True)
class Inheritance:
    """What one container takes over."""

    job: str
    path: raw.Path
    fields: Mapping[str, Any]
    env: Sequence[Any]

    @property
    def names(self) -> list[str]:
        """The names of the fields, for people."""
        return [*self.fields, *(["env"] if self.env else [])]

    def operations(self, content: raw.JsonObject) -> list[Operation]:
        """Give the patch; inherited variables come first, so that the role's own may use them."""
        return [
            *patch.set_entries(content, self.path, self.fields),
            *patch.prepend(content, (*self.path, "env"), self.env),
        ]


def plan(tasks: Sequence[runtime.Job]) -> Iterator[Inheritance]:
    """Give what the placeholders among the tasks take over from Trainer's step."""
    source = _source(tasks)
    if source is None or not raw.text(source.content.get("image")):
        return
    for job in tasks:
        if job.step == runtime.TRAINER_STEP:
            continue
        for container in workload.target_containers(job.pod):
            if not container.content.get("image"):
                yield _inheritance(job, container, source)


def _source(tasks: Sequence[runtime.Job]) -> workload.Container | None:
    """Give the container with the TrainJob's program, whichever others are tasks as well."""
    step = next((job for job in tasks if job.step == runtime.TRAINER_STEP), None)
    if step is None:
        return None
    regular = (one for one in step.pod.containers() if one.path[1] == "containers")
    named = (one for one in regular if one.name == runtime.STEP_CONTAINER)
    return next(named, None) or next(iter(workload.target_containers(step.pod)), None)


def _inheritance(
    job: runtime.Job, container: workload.Container, source: workload.Container
) -> Inheritance:
    own, given = container.content, source.content
    fields: dict[str, Any] = {"image": given["image"]}
    # Together they are one program: the args of one are nothing to the command of another.
    if not own.get("command") and not own.get("args"):
        fields |= {name: given[name] for name in ("command", "args") if given.get(name)}
    resources = _quantities(source)
    if resources and not _quantities(container):
        fields["resources"] = {**raw.mapping(own.get("resources")), **resources}
    return Inheritance(
        job=job.name,
        path=(*job.template_path, *container.path),
        fields=fields,
        env=_env(job, container, source),
    )


def _quantities(container: workload.Container) -> dict[str, Any]:
    stated = raw.mapping(container.content.get("resources"))
    return {name: stated[name] for name in _QUANTITIES if stated.get(name)}


def _env(job: runtime.Job, container: workload.Container, source: workload.Container) -> list[Any]:
    left_out = {*_PER_TASK, *container.env()}
    if _states_port(job, container):
        left_out.add(contract.PORT_ENV)
    return [
        entry
        for name, entry in source.env().items()
        if name and name not in left_out and not name.startswith(_SERVER_PREFIX)
    ]


def _states_port(job: runtime.Job, container: workload.Container) -> bool:
    """Whether the role says its port in a way that an inherited variable would overrule."""
    ports = (raw.mapping(port) for port in raw.sequence(container.content.get("ports")))
    named = any(port.get("name") == contract.PORT_NAME for port in ports)
    return named or contract.PORT_ANNOTATION in job.pod.annotations
