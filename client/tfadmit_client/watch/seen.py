"""What was read of one TrainJob.

Values only; which objects belong to it is `belong`, what it means `state` and `why`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tfadmit_client.watch import event
from tfadmit_trainer import contract
from tfadmit_webhook import raw

Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A TrainJob and all that is known of it."""

    trainjob: raw.JsonObject
    jobset: raw.JsonObject | None = None
    stranger: bool = False
    """Whether the JobSet of this name belongs to something else."""

    jobs: Sequence[raw.JsonObject] = ()
    pods: Sequence[raw.JsonObject] = ()
    pods_known: bool = True
    """False when pods may not be read: then only the counts of the TrainJob are known."""

    events: Sequence[event.Event] = ()
    """About any of these objects, by time."""

    workload: raw.JsonObject | None = None
    """Kueue's object for the job."""

    flags: str = ""
    """What reaches its cluster by a command line, each option after a space."""

    runtime_gone: bool = False

    @property
    def name(self) -> str:
        """The name of the TrainJob."""
        return key(self.trainjob)[1]

    @property
    def namespace(self) -> str:
        """The namespace of the TrainJob."""
        return key(self.trainjob)[0]

    @property
    def suspended(self) -> bool:
        """Whether the TrainJob is asked to stand still."""
        return raw.at(self.trainjob, ("spec", "suspend")) is True

    @property
    def leaving(self) -> bool:
        """Whether the TrainJob is being deleted."""
        return bool(raw.at(self.trainjob, ("metadata", "deletionTimestamp")))

    @property
    def queue(self) -> str:
        """The queue of Kueue that the job is in; empty for none."""
        labels = raw.strings(raw.at(self.trainjob, ("metadata", "labels")))
        return labels.get(contract.QUEUE_LABEL, "")

    @property
    def attempt(self) -> int:
        """How often JobSet has started all tasks again."""
        return raw.count(raw.at(self.jobset, ("status", "restarts")), default=0)


def key(content: raw.JsonObject) -> Key:
    """Give namespace and name of an object."""
    metadata = raw.mapping(content.get("metadata"))
    return raw.text(metadata.get("namespace")), raw.text(metadata.get("name"))


def uid(content: raw.JsonObject | None) -> str:
    """Give the uid of an object."""
    return raw.text(raw.at(content, ("metadata", "uid")))
