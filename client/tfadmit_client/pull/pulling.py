"""Pulling by name, for the command and for programs: the place is found, its faults are told.

Above `bring`, which brings, and `saved_place`, which finds; below whoever prints.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tfadmit_client import fault
from tfadmit_client.cluster import listing
from tfadmit_client.jobs import read
from tfadmit_client.pull import bring, saved, saved_place
from tfadmit_transfer import fault as transfer_fault
from tfadmit_transfer import results, retry, store

# Somebody waits for it: no longer than a store takes to start again.
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is to be brought where."""

    job: str
    folder: Path
    partial: bool = False
    base: str = ""
    """Where it is saved, when the cluster need not be asked."""


def run(
    wish: Wish,
    *,
    connect: Callable[[], tuple[read.Cluster, str]],
    environ: Mapping[str, str],
    say: Callable[[str], None],
    bar: Callable[[str], None] | None = None,
) -> bring.Pulled:
    """Bring results; `connect` gives cluster and namespace when they are needed.

    Raises:
        ClientError: nothing is saved, or it cannot be read, and why.
        ClusterError: the cluster or the store does not answer.
    """
    place = saved_place.Place(bases=(wish.base,), environ=environ)
    try:
        if not wish.base:
            cluster, namespace = connect()
            place = saved_place.find(cluster, namespace=namespace, name=wish.job, environ=environ)
        work = bring.Pull(
            at=_opened(wish.job, place),
            job=wish.job,
            folder=wish.folder,
            patience=retry.Patience(say=say, limit=_PATIENCE_SECONDS),
            bar=bar,
        )
        with bring.told():
            return work.run(partial=wish.partial)
    except (listing.UnreachableError, transfer_fault.PassingError) as error:
        raise fault.ClusterError(_noted(error, place)) from error
    except transfer_fault.TransferError as error:
        raise fault.ClientError(_noted(error, place)) from error


def _opened(job: str, place: saved_place.Place) -> store.Store:
    """Open the first place that has something, the last one in any case."""
    *others, last = place.bases
    for base in others:
        at = saved.opened(base, job, environ=place.environ)
        if results.read(at) is not None:
            return at
    return saved.opened(last, job, environ=place.environ)


def _noted(error: Exception, place: saved_place.Place) -> str:
    return f"{error}; {place.note}" if place.note else str(error)
