"""A wish on a runtime: the site's defaults taken, and what the runtime cannot do refused. Pure.

What the rules of the webhook know as well (names that are too long, numbers of roles that cannot be
had) is not here; `refusals` asks them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tfadmit_client import fault
from tfadmit_client.submit import site, words
from tfadmit_client.submit.wish import Wish
from tfadmit_trainer import contract, workspace
from tfadmit_webhook import raw, runtime, workload

_NODE: Final = "node"
_GANG: raw.Path = ("spec", "podGroupPolicy")


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """The runtime that a training is submitted to."""

    kind: Literal["TrainingRuntime", "ClusterTrainingRuntime"]
    content: raw.JsonObject

    @property
    def name(self) -> str:
        """Its name."""
        return raw.text(raw.at(self.content, ("metadata", "name")))

    @property
    def label(self) -> str:
        """Kind and name, for people."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A container that runs the program."""

    job: str
    container: str
    has_workspace: bool
    """Whether the runtime mounts something of its own at the workspace."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All that the objects are made of, but for the code."""

    wish: Wish
    runtime: Runtime
    places: tuple[Place, ...]
    replicas: str
    """The sizes of roles as the annotation has them; empty when the runtime decides."""

    image: str
    requests: Mapping[str, str]
    limits: Mapping[str, str]
    output: str
    store_secret: str
    gpu_types: words.GpuTypes | None
    queue: Literal["", "kueue", "volcano"]
    notes: tuple[str, ...] = ()
    """What a user should know, and need not mend."""


def make(wish: Wish, on: Runtime) -> Plan:
    """Plan a training.

    Raises:
        ClientError: with all that the runtime cannot do, one a line.
    """
    found = runtime.jobs(on.content)
    tasks = [job for job in found if job.is_task]
    mistakes = [*_foreign(on), *_without_step(on, tasks)]
    if mistakes:  # the rest would only repeat it
        raise fault.ClientError("\n".join(mistakes))
    defaults = site.read(on.content, label=on.label)
    gpu = wish.gpu or defaults.gpu
    requests = _requests(wish, defaults, gpu)
    mistakes += [
        *_roles(wish, on, tasks),
        *_own_programs(wish, on, tasks),
        *_resources(wish, on, requests),
        *_gpu_type(wish, on, tasks, gpu),
        *_image(wish, defaults, on, tasks),
    ]
    if mistakes:
        raise fault.ClientError("\n".join(mistakes))
    limits, notes = _limits(requests)
    return Plan(
        wish=wish,
        runtime=on,
        places=tuple(_places(wish, tasks)),
        replicas=_replicas(wish, tasks),
        image=wish.image or defaults.image,
        requests=requests,
        limits=limits,
        output=wish.output or defaults.output,
        store_secret=defaults.store_secret,
        gpu_types=_gpu_types(wish, defaults),
        queue=_queue(wish, on),
        notes=notes,
    )


def _foreign(on: Runtime) -> Iterator[str]:
    labels = raw.strings(raw.at(on.content, ("metadata", "labels")))
    framework = labels.get(contract.FRAMEWORK_LABEL, "")
    if framework != contract.FRAMEWORK:
        said = f"is for {framework}" if framework else "has no such label"
        yield (
            f"{on.label} {said}: tfadmit runs on runtimes with the label "
            f"{contract.FRAMEWORK_LABEL}: {contract.FRAMEWORK}; `kubectl get "
            f"clustertrainingruntimes,trainingruntimes -l "
            f"{contract.FRAMEWORK_LABEL}={contract.FRAMEWORK}` shows them"
        )


def _without_step(on: Runtime, tasks: Sequence[runtime.Job]) -> Iterator[str]:
    step = _step(tasks)
    if step is None or not any(item.name == _NODE for item in step.pod.containers()):
        yield (
            f"{on.label} has no container {_NODE!r} in a job with the label "
            f"{contract.ANCESTOR_LABEL}: {runtime.TRAINER_STEP}, which is where Trainer puts a "
            "program; your platform team can mend it, `tfadmit lint` shows how"
        )


def _step(tasks: Sequence[runtime.Job]) -> runtime.Job | None:
    return next((job for job in tasks if job.step == runtime.TRAINER_STEP), None)


def _roles(wish: Wish, on: Runtime, tasks: Sequence[runtime.Job]) -> Iterator[str]:
    present = {job.group.role for job in tasks}
    for role, number in wish.roles.items():
        if number and role not in present:
            option = "--ps (it needs a chief)" if role == "chief" else f"--{role}"
            yield (
                f"{option}: {on.label} has no job for the role {role} (it has: "
                f"{', '.join(sorted(present))}); name a runtime with one, as in --runtime "
                "tensorflow-ps-evaluator"
            )


def _own_programs(wish: Wish, on: Runtime, tasks: Sequence[runtime.Job]) -> Iterator[str]:
    """Refuse a chief that would not run the user's program: nobody would."""
    for job in tasks:
        wanted = wish.roles.get("chief", 1)
        if job.group.role != "chief" or job.step == runtime.TRAINER_STEP or not wanted:
            continue
        for container in workload.target_containers(job.pod):
            if image := raw.text(container.content.get("image")):
                yield (
                    f"the chief of {on.label} runs a program of its own (image {image}), not "
                    "yours: take image, command and args out of its container in the runtime, "
                    "and it takes over what the job says"
                )


def _requests(wish: Wish, defaults: site.Site, gpu: tuple[str, int] | None) -> dict[str, str]:
    wanted = {
        "cpu": wish.cpu or defaults.cpu,
        "memory": wish.memory or defaults.memory,
        **({gpu[0]: str(gpu[1])} if gpu and gpu[1] else {}),
    }
    return {name: amount for name, amount in wanted.items() if amount}


def _limits(requests: Mapping[str, str]) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Limit what is requested, unless the Kubeflow SDK could not read it (TFA013)."""
    if set(requests) == {"memory"}:
        note = (
            "memory is requested and not limited: with a limit of memory alone the Kubeflow SDK "
            "cannot list any job; say --cpu, too"
        )
        return {}, (note,)
    return requests, ()


def _resources(wish: Wish, on: Runtime, requests: Mapping[str, str]) -> Iterator[str]:
    del wish
    if requests and raw.at(on.content, ("spec", "mlPolicy")) is None:
        yield (
            f"{on.label} has no spec.mlPolicy, and then Trainer ignores cpu, memory and GPUs: your "
            "platform team can write `mlPolicy: {numNodes: 1}` into it"
        )


def _gpu_type(
    wish: Wish, on: Runtime, tasks: Sequence[runtime.Job], gpu: tuple[str, int] | None
) -> Iterator[str]:
    step = _step(tasks)
    containers = workload.target_containers(step.pod) if step else []
    resources = {name for item in containers for name in item.resources()}
    own = any(name.endswith("/gpu") for name in resources)
    if wish.gpu_type and not (gpu and gpu[1]) and not own:
        yield f"--gpu-type: no GPU is asked for, and {on.label} brings none; add --gpu 1"


def _image(
    wish: Wish, defaults: site.Site, on: Runtime, tasks: Sequence[runtime.Job]
) -> Iterator[str]:
    step = _step(tasks)
    containers = step.pod.containers() if step else ()
    own = any(item.name == _NODE and item.content.get("image") for item in containers)
    if not (wish.image or defaults.image or own):
        yield f"{on.label} has no image of its own: add --image registry.example.com/image:1.0"


def _gpu_types(wish: Wish, defaults: site.Site) -> words.GpuTypes | None:
    if not wish.gpu_type:
        return None
    return words.gpu_types(wish.gpu_type, option="--gpu-type", label=defaults.gpu_label)


def _queue(wish: Wish, on: Runtime) -> Literal["", "kueue", "volcano"]:
    if not wish.queue:
        return ""
    is_volcano = raw.at(on.content, (*_GANG, "volcano")) is not None
    return "volcano" if is_volcano else "kueue"


def _replicas(wish: Wish, tasks: Sequence[runtime.Job]) -> str:
    present = {job.group.role for job in tasks if job.step != runtime.TRAINER_STEP}
    return ",".join(f"{role}={number}" for role, number in wish.roles.items() if role in present)


def _places(wish: Wish, tasks: Sequence[runtime.Job]) -> Iterator[Place]:
    """Give the containers that run the program: Trainer's, and those without an image."""
    for job in tasks:
        is_step = job.step == runtime.TRAINER_STEP
        if not is_step and wish.roles.get(job.group.role) == 0:
            continue  # the role is taken away
        for container in job.pod.containers() if is_step else workload.target_containers(job.pod):
            runs = container.name == _NODE if is_step else not container.content.get("image")
            if runs:
                yield Place(
                    job=job.name,
                    container=container.name,
                    has_workspace=_has_workspace(container),
                )


def _has_workspace(container: workload.Container) -> bool:
    mounts = raw.sequence(container.content.get("volumeMounts"))
    paths = [raw.text(raw.mapping(mount).get("mountPath")) for mount in mounts]
    return any(path.rstrip("/") == workspace.ROOT for path in paths)
