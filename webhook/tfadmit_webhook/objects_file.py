"""JobSets, Jobs, runtimes and namespaces out of manifests, to answer look-ups without a cluster.

For the demo, for tests and for trying a webhook on a laptop. Pure: texts in, objects or faults
out. Other kinds in the same file are passed by, so that a whole example can be given.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from tfadmit_webhook import facts, raw, workload

_READERS = {"JobSet": workload.jobset, "Job": workload.job}
_RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")


@dataclass(frozen=True, kw_only=True)
class Content:
    """What look-ups can find in a file."""

    workloads: Sequence[facts.Workload]
    runtimes: Sequence[raw.JsonObject]
    namespaces: Mapping[str, Mapping[str, str]]
    """Labels of the namespaces, by name."""


def load(text: str) -> Content | str:
    """Read all that can be looked up in a file, or say why it cannot be read."""
    try:
        items = list(_items(yaml.safe_load_all(text)))
    except RecursionError:
        return "no readable YAML: it is nested too deep"
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date or a number that is none
        return f"no readable YAML: {' '.join(str(error).split())}"
    return Content(
        workloads=[
            _READERS[kind](_with_namespace(item))
            for item in items
            if (kind := raw.text(item.get("kind"))) in _READERS
        ],
        runtimes=[_with_namespace(item) for item in items if item.get("kind") in _RUNTIMES],
        namespaces=dict(
            map(_labelled, (item for item in items if item.get("kind") == "Namespace"))
        ),
    )


def _items(documents: Iterable[object]) -> Iterator[raw.JsonObject]:
    for document in documents:
        item = raw.mapping(document)
        if raw.text(item.get("kind")).endswith("List"):
            yield from _items(raw.sequence(item.get("items")))
        elif item:
            yield item


def _labelled(item: raw.JsonObject) -> tuple[str, Mapping[str, str]]:
    metadata = raw.mapping(item.get("metadata"))
    return raw.text(metadata.get("name")), raw.strings(metadata.get("labels"))


def _with_namespace(item: raw.JsonObject) -> raw.JsonObject:
    """Put a manifest without a namespace where kubectl would: into `default`."""
    metadata = raw.mapping(item.get("metadata"))
    namespace = raw.text(metadata.get("namespace")) or "default"
    return {**item, "metadata": {**metadata, "namespace": namespace}}


class Objects(facts.StaticReader):
    """Manifests as a source of look-ups: nothing to start, nothing to wait for."""

    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""

    def failing(self) -> list[str]:
        """Be ready."""
        return []
