"""What judging a live cluster gives: findings, what could not be judged, and counts.

Values only; judging is `auditing`, how they are written is `output`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tfadmit_client.cluster import listing
from tfadmit_webhook.settings import Level

Outcome = Literal["judged", "skipped", "failed"]

_TRAINER = "trainer.kubeflow.org"
# In this order, so that a TrainJob finds its runtime.
KINDS = (
    listing.Kind(
        name="ClusterTrainingRuntime", group=_TRAINER, version="v1alpha1", namespaced=False
    ),
    listing.Kind(name="TrainingRuntime", group=_TRAINER, version="v1alpha1"),
    listing.Kind(name="TrainJob", group=_TRAINER, version="v1alpha1"),
    listing.Kind(name="JobSet", group="jobset.x-k8s.io", version="v1alpha2"),
)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that is wrong with an object."""

    kind: str
    namespace: str
    """Empty for a runtime of the whole cluster."""

    name: str
    rule: str
    """The identifier of a rule, or the reason for which pods are refused."""

    level: Level
    path: str
    message: str

    @property
    def label(self) -> str:
        """Kind, namespace and name for people."""
        return label(self.kind, self.namespace, self.name)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A kind, or one object of it, that could not be judged."""

    kind: str
    object: str
    """The label of the object; empty when it is the whole kind, or the rest of it."""

    message: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """What judging a cluster gave."""

    findings: tuple[Finding, ...]
    failures: tuple[Failure, ...]
    objects: Mapping[tuple[str, Outcome], int]
    """How many objects of a kind were judged, have no rules, or could not be judged."""

    @property
    def denied(self) -> bool:
        """Whether the webhook would refuse one of the objects, or its pods."""
        return any(item.level == "deny" for item in self.findings)

    def count(self, outcome: Outcome) -> int:
        """How many objects came out like this."""
        return sum(number for (_, was), number in self.objects.items() if was == outcome)

    def is_read(self, kind: str) -> bool:
        """Whether all objects of a kind could be read."""
        return not any(item.kind == kind and not item.object for item in self.failures)


def label(kind: str, namespace: str, name: str) -> str:
    """Write kind, namespace and name for people."""
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
