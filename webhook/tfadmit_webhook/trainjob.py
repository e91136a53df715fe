"""A TrainJob as rules see it: which runtime it refers to, and how many pods that makes.

Pure views of the raw objects, null-safe. Follows Kubeflow Trainer 2.3
(`pkg/runtime/core/trainingruntime.go`, plugin PlainML); nothing is judged.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tfadmit_trainer import contract
from tfadmit_webhook import facts, jobset_replicas, raw, runtime

Fault = jobset_replicas.Fault
NODES_PATH: raw.Path = ("spec", "trainer", "numNodes")
REFERENCE_PATH: raw.Path = ("spec", "runtimeRef")
_TEMPLATE_ANNOTATIONS: raw.Path = ("spec", "template", "metadata", "annotations")
PATCH_ANNOTATIONS: raw.Path = ("trainingRuntimeSpec", "template", "metadata", "annotations")


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The runtime that a TrainJob refers to."""

    kind: facts.RuntimeKind
    namespace: str
    """Empty for a runtime of the whole cluster."""

    name: str

    @property
    def label(self) -> str:
        """Kind and name for people."""
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}"


@dataclass(frozen=True, kw_only=True)
class Patch:
    """What a TrainJob changes in the pods of some replicated jobs."""

    path: raw.Path
    """Where the part of the pod spec stands."""

    jobs: tuple[tuple[raw.Path, str], ...]
    """Names of the replicated jobs, and where each of them stands."""

    spec: raw.JsonObject


def reference(content: raw.JsonObject, *, namespace: str) -> Reference | None:
    """Give the runtime that a TrainJob refers to; None when it is no runtime of Trainer's."""
    stated = raw.mapping(raw.at(content, REFERENCE_PATH))
    group = raw.text(stated.get("apiGroup")) or "trainer.kubeflow.org"
    kind = raw.text(stated.get("kind")) or "ClusterTrainingRuntime"
    name = raw.text(stated.get("name"))
    if group != "trainer.kubeflow.org" or not name:
        return None
    if kind == "ClusterTrainingRuntime":
        return Reference(kind="ClusterTrainingRuntime", namespace="", name=name)
    if kind == "TrainingRuntime":
        return Reference(kind="TrainingRuntime", namespace=namespace, name=name)
    return None


def name(content: raw.JsonObject) -> str:
    """Give the name, or one of the length that the API server would make."""
    metadata = raw.mapping(content.get("metadata"))
    prefix = raw.text(metadata.get("generateName"))
    return raw.text(metadata.get("name")) or (f"{prefix}xxxxx" if prefix else "")


def patches(content: raw.JsonObject) -> Iterator[Patch]:
    """Give what a TrainJob changes in pods, in the form of any release of Trainer.

    `runtimePatches` since 2.2, `podTemplateOverrides` in 2.1, `podSpecOverrides` in 2.0.
    """
    spec = raw.mapping(content.get("spec"))
    for index, patch in enumerate(raw.sequence(spec.get("runtimePatches"))):
        inner: raw.Path = ("trainingRuntimeSpec", "template", "spec", "replicatedJobs")
        for number, job in enumerate(raw.sequence(raw.at(patch, inner))):
            path: raw.Path = ("spec", "runtimePatches", index, *inner, number)
            pod: raw.Path = ("template", "spec", "template", "spec")
            name = raw.text(raw.mapping(job).get("name"))
            yield Patch(
                path=(*path, *pod),
                jobs=(((*path, "name"), name),),
                spec=raw.mapping(raw.at(job, pod)),
            )
    for field, pod in (("podTemplateOverrides", ("spec",)), ("podSpecOverrides", ())):
        for index, item in enumerate(raw.sequence(spec.get(field))):
            path = ("spec", field, index)
            targets = raw.sequence(raw.mapping(item).get("targetJobs"))
            named = tuple(
                ((*path, "targetJobs", number, "name"), raw.text(raw.mapping(target).get("name")))
                for number, target in enumerate(targets)
            )
            yield Patch(path=(*path, *pod), jobs=named, spec=raw.mapping(raw.at(item, pod)))


def queue(content: raw.JsonObject) -> str:
    """Give the queue of Kueue that a TrainJob waits in, or nothing."""
    labels = raw.strings(raw.at(content, ("metadata", "labels")))
    return labels.get(contract.QUEUE_LABEL, "")


def jobs(content: raw.JsonObject, on: raw.JsonObject) -> tuple[runtime.Job, ...]:
    """Give the replicated jobs with the pods that come: Trainer's numbers, and then the roles'."""
    found = trainers_jobs(content, on)
    sizes = roles(found, replicas(content, on)[0])
    return found if isinstance(sizes, Fault) else jobset_replicas.resized(found, sizes)


def roles(found: Sequence[runtime.Job], text: str) -> jobset_replicas.Sizes | Fault:
    """Give the sizes that the annotation's text makes of Trainer's jobs."""
    return jobset_replicas.sizes([job for job in found if job.is_task], text)


def replicas(content: raw.JsonObject, on: raw.JsonObject) -> tuple[str, raw.Path]:
    """Give the annotation that the JobSet will have, and where in the TrainJob it stands.

    Trainer puts the annotations of the runtime's template on the JobSet, then those of each patch.
    What stands in the runtime is found at the reference to it.
    """
    name = contract.REPLICAS_ANNOTATION
    text = raw.strings(raw.at(on, _TEMPLATE_ANNOTATIONS)).get(name, "")
    path = REFERENCE_PATH
    # Trainer 2.1 and older has these annotations in place of patches.
    places: list[raw.Path] = [("spec", "annotations")]
    count = len(raw.sequence(raw.at(content, ("spec", "runtimePatches"))))
    places += [("spec", "runtimePatches", at, *PATCH_ANNOTATIONS) for at in range(count)]
    for place in places:
        stated = raw.strings(raw.at(content, place))
        if name in stated:
            text, path = stated[name], (*place, name)
    return text, path


def trainers_jobs(content: raw.JsonObject, on: raw.JsonObject) -> tuple[runtime.Job, ...]:
    """Give the replicated jobs of the runtime with the pods that Trainer gives them."""
    found = runtime.jobs(on)
    first = next((job for job in found if job.step == runtime.TRAINER_STEP), None)
    has_policy = raw.at(on, ("spec", "mlPolicy")) is not None
    wanted = raw.count(raw.at(content, NODES_PATH), default=-1)
    return tuple(
        _sized(job, wanted if job is first and wanted >= 0 else _count(job, has_policy=has_policy))
        for job in found
    )


def _count(job: runtime.Job, *, has_policy: bool) -> int:
    if has_policy and job.step == runtime.TRAINER_STEP:
        return job.group.completions
    # Trainer writes the parallelism over the completions of all other jobs.
    return raw.count(job.spec.get("parallelism"), default=1)


def _sized(job: runtime.Job, count: int) -> runtime.Job:
    return dataclasses.replace(job, group=dataclasses.replace(job.group, completions=count))
