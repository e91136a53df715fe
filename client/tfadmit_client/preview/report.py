"""What a preview found, as values: runtimes with their verdict, pods with what they were given.

Only values belong here; `previewing` computes them, `table` and `dump` show them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tfadmit_client.expand import remark
from tfadmit_client.files import manifest
from tfadmit_webhook import raw
from tfadmit_webhook.decision import Decision, Operation


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """A runtime and what was decided about it."""

    manifest: manifest.Manifest
    decision: Decision
    content: raw.JsonObject
    """The runtime after tfadmit's own changes to it."""


@dataclass(frozen=True, kw_only=True)
class Pod:
    """A pod and what was decided about it."""

    content: raw.JsonObject
    """As it was admitted; when it was refused, as it was sent."""

    decision: Decision
    patch: Sequence[Operation] = ()
    address: str = ""
    containers: tuple[str, ...] = ()
    note: str = ""
    """Why the webhook was not asked."""

    @property
    def name(self) -> str:
        """The host name; pods without one are known by their name, or one like it."""
        metadata = raw.mapping(self.content.get("metadata"))
        host = raw.text(raw.at(self.content, ("spec", "hostname")))
        prefix = raw.text(metadata.get("generateName"))
        generated = f"{prefix}xxxxx" if prefix else "(no name)"
        return host or raw.text(metadata.get("name")) or generated


@dataclass(frozen=True, kw_only=True)
class Section:
    """The pods of one object in the files."""

    manifest: manifest.Manifest
    runtime: str
    remarks: tuple[remark.Remark, ...]
    pods: tuple[Pod, ...]


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything there is to show."""

    runtimes: tuple[Runtime, ...]
    sections: tuple[Section, ...]
    others: tuple[str, ...] = field(default=())
    """Objects that were passed over, with the reason."""

    @property
    def refused(self) -> bool:
        """Whether a cluster would refuse anything of it."""
        decisions = [item.decision for item in self.runtimes]
        decisions += [pod.decision for section in self.sections for pod in section.pods]
        remarks = (item for section in self.sections for item in section.remarks)
        return any(not item.allowed for item in decisions) or any(item.refused for item in remarks)
