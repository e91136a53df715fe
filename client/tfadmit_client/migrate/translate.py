"""From a TFJob to a runtime and a TrainJob, and what became of each field. Pure.

One replicated job per replica type, `parallelism` = `completions` = replicas. The workers are the
step `node` that Trainer gives numNodes to; without workers the chief is.
"""

import difflib
from dataclasses import dataclass
from typing import Any

from tfadmit_client.migrate import ending, gang, metadata, pods, restart, tfjob
from tfadmit_client.migrate import ledger as book
from tfadmit_trainer import contract
from tfadmit_webhook import raw, runtime

API_VERSION = "trainer.kubeflow.org/v1alpha1"
_KNOWN = (
    "metadata.name", "spec.successPolicy", "spec.enableDynamicWorker", "spec.tfReplicaSpecs",
    *(f"spec.runPolicy.{name}" for name in (
        "cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit",
        "suspend", "managedBy",
    )),
    *(f"spec.runPolicy.schedulingPolicy.{name}" for name in (
        "minAvailable", "queue", "minResources", "priorityClass", "scheduleTimeoutSeconds",
    )),
    *(f"spec.tfReplicaSpecs.Worker.{name}" for name in ("replicas", "restartPolicy", "template")),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a TFJob does not say."""

    scheduler: gang.Scheduler | None = None
    """The gang scheduler; None to find it out."""

    gang_restart: bool = False
    """Whether all tasks start again together, instead of one by one."""

    name: str | None = None
    """Name of the output, when not the TFJob's own."""


@dataclass(frozen=True, kw_only=True)
class Translation:
    """The output, and the report."""

    runtime: dict[str, Any]
    trainjob: dict[str, Any]
    entries: tuple[book.Entry, ...]


def translate(job: tfjob.TFJob, options: Options) -> Translation:
    """Translate a TFJob."""
    work = _Work(job, options)
    made_runtime, made_trainjob = work.runtime(), work.trainjob()
    work.tell_rest()
    return Translation(
        runtime=made_runtime,
        trainjob=made_trainjob,
        entries=tuple(work.ledger.entries),
    )


class _Work:
    """One translation."""

    def __init__(self, job: tfjob.TFJob, options: Options) -> None:
        self._job = job
        self._options = options
        self._name = options.name or job.name
        self._scheduler = gang.choose(job, stated=options.scheduler)
        self._names = [metadata.replicated_job(job, replica) for replica in job.replicas]
        self.ledger = book.Ledger()

    def runtime(self) -> dict[str, Any]:
        """Give the runtime."""
        job, ledger = self._job, self.ledger
        metadata.tell_names(job, name=self._name, ledger=ledger)
        place = {"name": self._name}
        if namespace := raw.text(job.metadata.get("namespace")):
            place["namespace"] = namespace
        spec: dict[str, Any] = {"mlPolicy": {"numNodes": job.step.count}}
        if policy := gang.policy(job, scheduler=self._scheduler, ledger=ledger):
            spec["podGroupPolicy"] = policy
        template: dict[str, Any] = {}
        if annotations := gang.annotations(job, scheduler=self._scheduler):
            template["metadata"] = {"annotations": annotations}
        spec["template"] = {**template, "spec": self._jobset()}
        return {
            "apiVersion": API_VERSION,
            "kind": "TrainingRuntime",
            "metadata": {**place, "labels": {contract.FRAMEWORK_LABEL: contract.FRAMEWORK}},
            "spec": spec,
        }

    def trainjob(self) -> dict[str, Any]:
        """Give the TrainJob."""
        return {
            "apiVersion": API_VERSION,
            "kind": "TrainJob",
            "metadata": metadata.trainjob(self._job, name=self._name, ledger=self.ledger),
            "spec": {
                **metadata.spec(self._job, self.ledger),
                "runtimeRef": {"kind": "TrainingRuntime", "name": self._name},
                "trainer": {"numNodes": self._job.step.count},
            },
        }

    def _jobset(self) -> dict[str, Any]:
        job, ledger = self._job, self.ledger
        made: dict[str, Any] = {
            "network": {"publishNotReadyAddresses": True},
            "successPolicy": ending.success_policy(job, names=self._names, ledger=ledger),
        }
        ending.tell_cleaning(job, ledger=ledger)
        failure = restart.failure_policy(job, gang=self._options.gang_restart, ledger=ledger)
        if failure:
            made["failurePolicy"] = failure
        made["replicatedJobs"] = [
            self._replicated(index, replica) for index, replica in enumerate(job.replicas)
        ]
        return made

    def _replicated(self, index: int, replica: tfjob.Replica) -> dict[str, Any]:
        at = (*runtime.JOBS_PATH, index)
        to = (*at, "template", "spec")
        pod = pods.translate(self._job, replica, to=(*to, "template"), ledger=self.ledger)
        gang.apply(
            self._job, replica=replica, pod=pod, to=(*to, "template"),
            scheduler=self._scheduler, ledger=self.ledger,
        )  # fmt: skip
        fields = restart.apply(
            self._job, replica, pod=pod, to=to,
            gang=self._options.gang_restart, ledger=self.ledger,
        )  # fmt: skip
        self._tell_count(replica, at=at)
        spec = {
            "completionMode": "Indexed",
            "parallelism": replica.count,
            "completions": replica.count,
            **ending.worker_success(self._job, replica, to=to, ledger=self.ledger),
            **fields,
            "template": pod,
        }
        template: dict[str, Any] = {"spec": spec}
        if replica is self._job.step:
            labels = {contract.ANCESTOR_LABEL: runtime.TRAINER_STEP}
            template = {"metadata": {"labels": labels}, **template}
        return {"name": self._names[index], "template": template}

    def _tell_count(self, replica: tfjob.Replica, *, at: raw.Path) -> None:
        if replica.content.get("replicas") is None:
            return
        path = (*replica.path, "replicas")
        if replica is self._job.step:
            to = book.trainjob("spec", "trainer", "numNodes")
            self.ledger.exactly(path, "the number of nodes", to=to)
        else:
            to = book.runtime(*at, "template", "spec", "completions")
            self.ledger.exactly(path, "the number of pods", to=to)

    def tell_rest(self) -> None:
        """Tell of what has no counterpart, and of fields that TFJob does not have."""
        job, ledger = self._job, self.ledger
        for replica in job.idle:
            ledger.nearly(
                replica.path,
                "left out: it has 0 replicas, so no pods",
                advice="write its replicated job into the runtime when you need it",
            )
        self._tell_dynamic()
        for path in ((), *(("spec",), tfjob.SPECS, tfjob.POLICY, ("metadata",))):
            self._tell_empty(path)
        for key in ("apiVersion", "kind"):
            ledger.exactly((key,), f"{API_VERSION}, a TrainingRuntime and a TrainJob")
        for path in list(book.untold(job.content, ledger.entries)):
            ledger.missing(
                path, "TFJob has no such field, and nothing was done by it", advice=_near(path)
            )

    def _tell_empty(self, path: raw.Path) -> None:
        """Tell of maps without any content, which state nothing."""
        for key, value in raw.mapping(raw.at(self._job.content, path)).items():
            if value in ({}, []) and (*path, key) != tfjob.SPECS:
                self.ledger.exactly((*path, key), "left out: it is empty")

    def _tell_dynamic(self) -> None:
        path = ("spec", "enableDynamicWorker")
        if not self._job.is_dynamic:
            if raw.at(self._job.content, path) is not None:
                self.ledger.exactly(path, "the default of TFJob")
            return
        self.ledger.missing(
            path,
            "the number of workers cannot be changed while it trains (Trainer lets nobody change "
            "spec.trainer), and each TF_CONFIG has all tasks, not only the task's own",
            advice="another number is another TrainJob on the same runtime; programs read "
            "TF_CONFIG as before",
        )


def _near(path: raw.Path) -> str:
    """Say which field may have been meant."""
    words = [step for step in path if isinstance(step, str)]
    for word in words[1:]:
        same = [known for known in _KNOWN if known.rpartition(".")[2] == word]
        if same and same[0] != ".".join(words):
            return f"it stands in {same[0]}; if you meant that, write it there and migrate again"
    known = [item.rpartition(".")[2] for item in _KNOWN]
    if found := difflib.get_close_matches(words[-1], known, n=1, cutoff=0.85):
        return f"perhaps {_at(found[0])} was meant: write it there and migrate again"
    return "remove it, or find out what it was meant to do"


def _at(name: str) -> str:
    return next(item for item in _KNOWN if item.rpartition(".")[2] == name)
