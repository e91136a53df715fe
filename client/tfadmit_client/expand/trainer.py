"""From a TrainJob and its runtime to the JobSet, as Kubeflow Trainer 2.3 makes it.

Follows `pkg/runtime/core/trainingruntime.go` and the plugins PlainML, JobSet, CoScheduling and
Volcano. Pure. The runtime is taken as it stands; tfadmit's own label has been copied before.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfadmit_client.expand import merge, patches
from tfadmit_client.expand.remark import Remark, uid
from tfadmit_trainer import contract, pattern
from tfadmit_webhook import raw

API_VERSION = "trainer.kubeflow.org/v1alpha1"
_STEP = "trainer"
_CONTAINER = "node"
_INITIALIZERS = {"dataset-initializer": "dataset", "model-initializer": "model"}
_OTHER_POLICIES = ("torch", "mpi", "jax", "xgboost", "flux")
_TRAINJOB_FIELDS = frozenset(
    ("runtimeRef", "initializer", "trainer", "runtimePatches", "suspend", "managedBy")
) | {"activeDeadlineSeconds"}
_TRAINER_FIELDS = frozenset(
    ("image", "command", "args", "env", "numNodes", "numProcPerNode", "resourcesPerNode")
)


@dataclass(kw_only=True)
class Expansion:
    """A JobSet, and what there is to say about it."""

    jobset: raw.JsonObject
    remarks: list[Remark] = field(default_factory=list)


def jobset(trainjob: raw.JsonObject, runtime: raw.JsonObject, *, namespace: str) -> Expansion:
    """Give the JobSet that Trainer applies for a TrainJob."""
    name = raw.text(raw.at(trainjob, ("metadata", "name")))
    spec = raw.mapping(runtime.get("spec"))
    remarks = [*_unknown_fields(trainjob), *_mistakes(trainjob), *_foreign_policy(spec)]
    template = merge.without_nulls(raw.mapping(spec.get("template")))
    patched = patches.apply(template, merge.without_nulls(trainjob), remarks)
    metadata = raw.mapping(patched.get("metadata"))
    jobs = [
        dict(raw.mapping(job)) for job in raw.sequence(raw.at(patched, ("spec", "replicatedJobs")))
    ]
    _Builder(trainjob=raw.mapping(trainjob.get("spec")), runtime=spec, name=name).change(jobs)
    owner = {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "name": name,
        "uid": uid("TrainJob", namespace=namespace, name=name, content=trainjob),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    content = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid("JobSet", namespace=namespace, name=name),
            **{key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)},
            "ownerReferences": [owner],
        },
        "spec": {
            **raw.mapping(patched.get("spec")),
            "replicatedJobs": jobs,
            "suspend": raw.at(trainjob, ("spec", "suspend")) is True,
        },
    }
    return Expansion(jobset=content, remarks=remarks)


def _unknown_fields(trainjob: raw.JsonObject) -> Iterator[Remark]:
    for name in raw.mapping(trainjob.get("spec")):
        if name not in _TRAINJOB_FIELDS:
            yield Remark(
                text=f"spec.{name} is not applied: Trainer 2.3, which this preview follows, has no "
                "such field (2.1 had podTemplateOverrides, labels and annotations; "
                "write runtimePatches)"
            )


def _foreign_policy(runtime: raw.JsonObject) -> Iterator[Remark]:
    for name in _OTHER_POLICIES:
        if raw.at(runtime, ("mlPolicy", name)) is not None:
            yield Remark(
                text=f"the runtime has mlPolicy.{name}: what Trainer adds for it (variables, "
                "commands, ports) is not shown; a TensorFlow runtime needs none of these policies"
            )


def _mistakes(trainjob: raw.JsonObject) -> Iterator[Remark]:
    """What would otherwise look as if it had been taken: a wrong number is no number of nodes."""
    trainer = raw.mapping(raw.at(trainjob, ("spec", "trainer")))
    nodes = trainer.get("numNodes")
    if nodes is not None and _nodes(nodes) is None:
        yield Remark(
            text=f"spec.trainer.numNodes is {nodes!r}, which is no number of nodes from 0 to "
            f"{pattern.MAX_TASKS:,}: write such a number, without quotes",
            refused=True,
        )
    for name in trainer:
        if name not in _TRAINER_FIELDS:
            yield Remark(
                text=f"kubectl refuses this: there is no field spec.trainer.{name}; Trainer 2.3 "
                f"has {', '.join(sorted(_TRAINER_FIELDS))}",
                refused=True,
            )


def _nodes(value: object) -> int | None:
    count = raw.count(value, default=-1)
    return count if 0 <= count <= pattern.MAX_TASKS else None


@dataclass(frozen=True, kw_only=True)
class _Builder:
    """Changes the replicated jobs in place; they are our own copy."""

    trainjob: raw.JsonObject
    runtime: raw.JsonObject
    name: str

    def change(self, jobs: Sequence[dict[str, Any]]) -> None:
        counts = self._counts(jobs)
        for job, count in zip(jobs, counts, strict=True):
            job["template"] = template = dict(raw.mapping(job.get("template")))
            template["spec"] = spec = dict(raw.mapping(template.get("spec")))
            spec["parallelism"] = spec["completions"] = count
            spec["template"] = pod = dict(raw.mapping(spec.get("template")))
            pod["spec"] = pod_spec = dict(raw.mapping(pod.get("spec")))
            step = _step(job)
            if step == _STEP or step in _INITIALIZERS:
                job["replicas"] = 1
            pod_spec["containers"] = [
                self._container(raw.mapping(container), step=step)
                for container in raw.sequence(pod_spec.get("containers"))
            ]
            self._pod_group(pod)

    def _counts(self, jobs: Sequence[raw.JsonObject]) -> list[int]:
        """Give the number of pods of each replicated job.

        `mlPolicy.numNodes` goes to every trainer step, `trainer.numNodes` only to the first.
        """
        counts = [max(self._count(job), 1) for job in jobs]
        wanted = raw.at(self.trainjob, ("trainer", "numNodes"))
        first = next((index for index, job in enumerate(jobs) if _step(job) == _STEP), None)
        if first is not None and wanted is not None:
            stated = _nodes(wanted)
            counts[first] = counts[first] if stated is None else stated
        return counts

    def _count(self, job: raw.JsonObject) -> int:
        policy = self.runtime.get("mlPolicy")
        if policy is not None and _step(job) == _STEP:
            return raw.count(raw.mapping(policy).get("numNodes"), default=1)
        return raw.count(raw.at(job, ("template", "spec", "parallelism")), default=1)

    def _container(self, container: raw.JsonObject, *, step: str) -> raw.JsonObject:
        name = container.get("name")
        if step == _STEP and name == _CONTAINER:
            return self._trainer_container(container)
        if name == step and step in _INITIALIZERS:
            return self._initializer_container(container, kind=_INITIALIZERS[step])
        return container

    def _trainer_container(self, container: raw.JsonObject) -> raw.JsonObject:
        trainer = merge.without_nulls(raw.mapping(self.trainjob.get("trainer")))
        changed = dict(container)
        if "image" in trainer:
            changed["image"] = trainer["image"]
        for key in ("command", "args"):
            if trainer.get(key):
                changed[key] = trainer[key]
        if trainer.get("env"):
            changed["env"] = merge.upsert(container.get("env"), trainer["env"], key="name")
        # Without a policy Trainer ignores the resources.
        if "resourcesPerNode" in trainer and self.runtime.get("mlPolicy") is not None:
            present = raw.mapping(container.get("resources"))
            changed["resources"] = merge.strategic(dict(present), trainer["resourcesPerNode"])
        return changed

    def _initializer_container(self, container: raw.JsonObject, *, kind: str) -> raw.JsonObject:
        stated = raw.at(self.trainjob, ("initializer", kind))
        if not isinstance(stated, dict):
            return container
        stated = merge.without_nulls(stated)
        changed = dict(container)
        env: list[Any] = []
        if "storageUri" in stated:
            env.append({"name": "STORAGE_URI", "value": stated["storageUri"]})
        env += raw.sequence(stated.get("env"))
        if env:
            changed["env"] = merge.upsert(container.get("env"), env, key="name")
        if "secretRef" in stated:
            secret = {"secretRef": {"name": raw.mapping(stated["secretRef"]).get("name")}}
            changed["envFrom"] = [*raw.sequence(container.get("envFrom")), secret]
        return changed

    def _pod_group(self, pod: dict[str, Any]) -> None:
        policy = raw.mapping(self.runtime.get("podGroupPolicy"))
        additions = {}
        if policy.get("coscheduling") is not None:
            additions["labels"] = {"scheduling.x-k8s.io/pod-group": self.name}
        if policy.get("volcano") is not None:
            additions["annotations"] = {"scheduling.k8s.io/group-name": self.name}
        if additions:
            pod["metadata"] = merge.strategic(dict(raw.mapping(pod.get("metadata"))), additions)


def _step(job: raw.JsonObject) -> str:
    labels = raw.at(job, ("template", "metadata", "labels"))
    return raw.text(raw.mapping(labels).get(contract.ANCESTOR_LABEL))
