"""The labels and annotations that the JobSet controller puts on a Job and on its pod template.

Pure. Follows `labelAndAnnotateObject` in JobSet's `pkg/controllers/jobset_controller.go`. Also the
view of a JobSet that these and the making of Jobs (`jobset`) share.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

from tfadmit_trainer import contract
from tfadmit_webhook import raw

EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
_PREFIX = "jobset.sigs.k8s.io/"


class View:
    """A JobSet, with the sums that stand on each of its Jobs."""

    def __init__(self, content: raw.JsonObject) -> None:
        metadata = raw.mapping(content.get("metadata"))
        self.spec = raw.mapping(content.get("spec"))
        self.name, self.uid = raw.text(metadata.get("name")), raw.text(metadata.get("uid"))
        self.namespace = raw.text(metadata.get("namespace"))
        self.annotations = raw.strings(metadata.get("annotations"))
        self.subdomain = raw.text(raw.at(self.spec, ("network", "subdomain"))) or self.name
        self.jobs = [raw.mapping(item) for item in raw.sequence(self.spec.get("replicatedJobs"))]

    @staticmethod
    def replicas(job: raw.JsonObject) -> int:
        """How many Jobs a replicated job has."""
        return raw.count(job.get("replicas"), default=1)

    def total(self, *, group: str | None = None) -> int:
        """How many Jobs there are, in all or in a group."""
        return sum(self.replicas(job) for job in self.jobs if group in (None, job.get("groupName")))

    def before(self, name: str, *, group: str | None = None) -> int:
        """How many Jobs stand before those of a replicated job."""
        count = 0
        for job in self.jobs:
            if job.get("name") == name:
                break
            count += self.replicas(job) if group in (None, job.get("groupName")) else 0
        return count


@dataclass(frozen=True, kw_only=True)
class Marks:
    """Labels and annotations that a Job and its pod template get."""

    labels: dict[str, str]
    annotations: dict[str, str]

    def on(self, metadata: object) -> dict[str, Any]:
        """Give metadata with the marks."""
        present = raw.mapping(metadata)
        return {
            **present,
            "labels": {**raw.mapping(present.get("labels")), **self.labels},
            "annotations": {**raw.mapping(present.get("annotations")), **self.annotations},
        }


def marks_of(view: View, replicated: raw.JsonObject, index: int, *, job: str) -> Marks:
    """Give the marks of one Job; `job` is its name."""
    name, group = raw.text(replicated.get("name")), raw.text(replicated.get("groupName"))
    # Not a secret: JobSet names the Job by it.
    key = hashlib.sha1(f"{view.namespace}/{job}".encode(), usedforsecurity=False).hexdigest()
    marks = {
        contract.JOBSET_NAME_LABEL: view.name,
        contract.JOBSET_UID_ANNOTATION: view.uid,
        contract.REPLICATED_JOB_LABEL: name,
        f"{_PREFIX}restart-attempt": "0",
        f"{_PREFIX}replicatedjob-replicas": str(view.replicas(replicated)),
        f"{_PREFIX}global-replicas": str(view.total()),
        contract.JOB_INDEX_LABEL: str(index),
        f"{_PREFIX}job-key": key,
        f"{_PREFIX}job-global-index": str(view.before(name) + index),
        f"{_PREFIX}group-name": group,
        f"{_PREFIX}group-replicas": str(view.total(group=group)),
        f"{_PREFIX}job-group-index": str(view.before(name, group=group) + index),
    }
    if coordinator := raw.mapping(view.spec.get("coordinator")):
        marks[f"{_PREFIX}coordinator"] = (
            f"{view.name}-{raw.text(coordinator.get('replicatedJob'))}-"
            f"{raw.count(coordinator.get('jobIndex'), default=0)}-"
            f"{raw.count(coordinator.get('podIndex'), default=0)}.{view.subdomain}"
        )
    return Marks(labels=marks, annotations={**marks, **_placement(view, replicated)})


def _placement(view: View, replicated: raw.JsonObject) -> dict[str, str]:
    """Give the annotations of exclusive placement; those of the replicated job come last."""
    found: dict[str, str] = {}
    own = raw.strings(raw.at(replicated, ("template", "metadata", "annotations")))
    for annotations in (view.annotations, own):
        if EXCLUSIVE in annotations:
            names = (EXCLUSIVE, _NODE_SELECTOR)
            found |= {name: annotations[name] for name in names if name in annotations}
    return found
