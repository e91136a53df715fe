"""The tasks of a job, by role and index, each with its newest pod.

Which tasks there should be stands in the JobSet; without it (after a deadline Trainer deletes it)
those are known that have pods. A replicated job without the framework's label, such as an
initializer or another framework's `node`, counts by its own name.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from tfadmit_client.watch import container
from tfadmit_client.watch.seen import Seen
from tfadmit_trainer import contract
from tfadmit_webhook import raw, workload

_Place = tuple[str, int, int]
"""Replicated job, index of the job, completion index."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One task; its pod may not be there yet, or not any more."""

    role: str
    index: int
    replicated_job: str
    job_index: int = 0
    pod: raw.JsonObject | None = None

    @property
    def name(self) -> str:
        """The name for people, which prefixes its log."""
        return f"{self.role}-{self.index}"

    @property
    def phase(self) -> str:
        """The phase of its pod; empty without one."""
        return raw.text(raw.at(self.pod, ("status", "phase")))

    @property
    def leaving(self) -> bool:
        """Whether its pod is being deleted."""
        return bool(raw.at(self.pod, ("metadata", "deletionTimestamp")))

    @property
    def node(self) -> str:
        """The node that its pod is on."""
        return raw.text(raw.at(self.pod, ("spec", "nodeName")))

    @functools.cached_property
    def containers(self) -> list[container.Container]:
        """The containers of its pod."""
        return container.containers(self.pod) if self.pod else []

    @property
    def disruption(self) -> raw.JsonObject | None:
        """The condition by which the cluster takes its pod away; None when it does not."""
        for item in map(raw.mapping, raw.sequence(raw.at(self.pod, ("status", "conditions")))):
            if item.get("type") == "DisruptionTarget" and item.get("status") == "True":
                return item
        return None

    @property
    def is_running(self) -> bool:
        """Whether its program runs: no regular container waits for anything."""
        regular = [item for item in self.containers if not item.init]
        return self.phase == "Running" and not any(item.waiting for item in regular)

    @property
    def restarts(self) -> int:
        """How often its containers were started again in place."""
        regular = [item for item in self.containers if not item.init]
        return max((item.restarts + item.crashed for item in regular), default=0)


def tasks(seen: Seen) -> list[Task]:
    """Give all tasks, in the order of the JobSet, each with its newest pod."""
    expected = dict(_expected(seen.jobset))
    newest = {_place(item): item for item in sorted(seen.pods, key=_age) if not _is_old(item, seen)}
    found = [
        Task(role=role, index=index, replicated_job=place[0], job_index=place[1],
             pod=newest.pop(place, None))
        for place, (role, index) in expected.items()
    ]  # fmt: skip
    return [*found, *(_unexpected(place, pod) for place, pod in sorted(newest.items()))]


def named(pods: Iterable[raw.JsonObject], seen: Seen) -> Iterator[tuple[str, raw.JsonObject]]:
    """Give each pod, of any attempt, with the name of its task."""
    expected = dict(_expected(seen.jobset))
    for item in sorted(pods, key=_age):
        place = _place(item)
        role, index = expected.get(place) or _role_and_index(place, item)
        yield f"{role}-{index}", item


def attempt(pod: raw.JsonObject) -> int:
    """Give the attempt of the whole training that a pod belongs to."""
    found = _texts(pod).get(contract.RESTART_ATTEMPT_ANNOTATION, "")
    return int(found) if found.isdecimal() else 0


def _expected(jobset: raw.JsonObject | None) -> Iterator[tuple[_Place, tuple[str, int]]]:
    counts: Counter[str] = Counter()
    for item in map(raw.mapping, raw.sequence(raw.at(jobset, ("spec", "replicatedJobs")))):
        name = raw.text(item.get("name"))
        spec = raw.mapping(raw.at(item, ("template", "spec")))
        role = _role(name, raw.mapping(spec.get("template")))
        # The Job API: completions unset means parallelism, which defaults to 1.
        size = raw.count(
            spec.get("completions"), default=raw.count(spec.get("parallelism"), default=1)
        )
        for job_index in range(raw.count(item.get("replicas"), default=1)):
            for completion in range(size):
                yield (name, job_index, completion), (role, counts[role])
                counts[role] += 1


def _role(replicated_job: str, template: raw.JsonObject) -> str:
    view = workload.pod(template, namespace="")
    if view.is_tensorflow or contract.ROLE_LABEL in view.labels:
        labels = {**view.labels, contract.REPLICATED_JOB_LABEL: replicated_job}
        view = workload.pod({"metadata": {"labels": labels}}, namespace="")
        return workload.stated_role(view)[0] or "worker"
    return replicated_job


def _unexpected(place: _Place, pod: raw.JsonObject) -> Task:
    role, index = _role_and_index(place, pod)
    return Task(role=role, index=index, replicated_job=place[0], job_index=place[1], pod=pod)


def _role_and_index(place: _Place, pod: raw.JsonObject) -> tuple[str, int]:
    """Give what the webhook has told the pod, else what follows from the pod alone."""
    for item in workload.target_containers(workload.pod(pod, namespace="")):
        told = {name: raw.text(entry.get("value")) for name, entry in item.env().items()}
        index = told.get(contract.TASK_INDEX_ENV, "")
        if told.get(contract.TASK_TYPE_ENV) and index.isdecimal():
            return told[contract.TASK_TYPE_ENV], int(index)
    return _role(place[0], pod), place[1] + place[2]


def _place(pod: raw.JsonObject) -> _Place:
    texts = _texts(pod)
    numbers = (texts.get(contract.JOB_INDEX_LABEL), texts.get(contract.COMPLETION_INDEX_ANNOTATION))
    job_index, completion = (int(text) if text and text.isdecimal() else 0 for text in numbers)
    return texts.get(contract.REPLICATED_JOB_LABEL, ""), job_index, completion


def _texts(pod: raw.JsonObject) -> Mapping[str, str]:
    """Labels and annotations together: JobSet writes its own to both."""
    metadata = raw.mapping(pod.get("metadata"))
    return {**raw.strings(metadata.get("annotations")), **raw.strings(metadata.get("labels"))}


def _age(pod: raw.JsonObject) -> tuple[int, str, str]:
    metadata = raw.mapping(pod.get("metadata"))
    return (
        attempt(pod),
        raw.text(metadata.get("creationTimestamp")),
        raw.text(metadata.get("name")),
    )


def _is_old(pod: raw.JsonObject, seen: Seen) -> bool:
    """Whether a pod belongs to an attempt that JobSet has given up."""
    return seen.jobset is not None and attempt(pod) < seen.attempt
