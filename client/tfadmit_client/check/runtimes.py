"""The runtimes of a cluster, read once for all parts of `check` that look at them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tfadmit_client.audit import report
from tfadmit_client.check.line import Cluster
from tfadmit_client.cluster import listing
from tfadmit_trainer import contract
from tfadmit_webhook import raw


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """A ClusterTrainingRuntime or TrainingRuntime, of any framework."""

    label: str
    content: raw.JsonObject

    @property
    def framework(self) -> str:
        """What its label says, empty without one."""
        labels = raw.strings(raw.at(self.content, ("metadata", "labels")))
        return labels.get(contract.FRAMEWORK_LABEL, "")


def read(cluster: Cluster) -> Sequence[Runtime] | None:
    """Give all of them; None when they cannot be read, which the judging of all objects tells.

    Raises:
        UnreachableError: nobody answers.
    """
    try:
        return list(_all(cluster))
    except listing.UnreachableError:
        raise
    except listing.ReadError:
        return None


def _all(cluster: Cluster) -> Iterator[Runtime]:
    for kind in report.KINDS:
        if not kind.name.endswith("Runtime"):
            continue
        for item in listing.objects(cluster, kind, namespace=None):
            content = raw.mapping(item)
            metadata = raw.mapping(content.get("metadata"))
            namespace, name = raw.text(metadata.get("namespace")), raw.text(metadata.get("name"))
            yield Runtime(label=report.label(kind.name, namespace, name), content=content)
