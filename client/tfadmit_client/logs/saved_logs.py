"""Logs that were saved beside a job's results, for when its pods are gone: the seam.

What reads an object store is `tfadmit_client.pull.saved`, whose function `logs` is a `SavedLogs`;
it is imported when it is needed, with the library for the store.
"""

import importlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from tfadmit_client import fault
from tfadmit_client.cluster import kinds, listing
from tfadmit_client.jobs import read
from tfadmit_client.logs.line import Line
from tfadmit_trainer import contract
from tfadmit_webhook import raw

_MODULE = "tfadmit_client.pull.saved"


class SavedLogs(Protocol):
    """Reads saved logs."""

    def __call__(
        self, base: str, job: str, *, attempt: int | None, replicas: Sequence[str]
    ) -> Iterator[Line]:
        """Give the lines below `<base>/<job>/logs`, attempt by attempt and task by task.

        `attempt` None is all of them; `replicas` are roles and tasks, none for all.

        Raises:
            ClientError: there are none, or they cannot be read, and why.
        """


def find() -> SavedLogs | None:
    """Give the reader; None where this installation has none."""
    try:
        module = importlib.import_module(_MODULE)
    except ModuleNotFoundError as error:
        if error.name != _MODULE:
            raise
        return None
    found: SavedLogs = module.logs
    return found


def bases(cluster: read.Cluster, *, namespace: str) -> list[str]:
    """Give where jobs are saved by the runtimes that a namespace can use.

    Raises:
        ClientError: runtimes cannot be read.
        UnreachableError: nobody answers.
    """
    try:
        runtimes = [
            item
            for kind in kinds.RUNTIMES.values()
            for item in cluster.objects(kind, namespace=namespace if kind.namespaced else None)
        ]
    except listing.UnreachableError:
        raise
    except listing.ReadError as error:
        raise fault.ClientError(str(error)) from error
    notes = (raw.strings(raw.at(item, ("metadata", "annotations"))) for item in runtimes)
    stated = (item.get(contract.DEFAULT_OUTPUT_ANNOTATION, "") for item in notes)
    return list(dict.fromkeys(base for base in stated if base))
