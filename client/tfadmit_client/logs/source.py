"""Where logs come from: one run of one container, and whether it is still going on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from tfadmit_client.cluster import kinds, listing
from tfadmit_client.jobs import read
from tfadmit_client.watch import container, seen


class Stream(Protocol):
    """Lines as they come, each with its line feed if it has one."""

    def __iter__(self) -> Iterator[bytes]:
        """Give the lines.

        Raises:
            UnreachableError: the connection broke.
        """

    def interrupt(self) -> None:
        """Let the iteration end soon; from any thread."""


class Cluster(read.Cluster, Protocol):
    """Where objects and logs are read."""

    def log(self, namespace: str, pod: str, *, query: Mapping[str, str], silence: float) -> Stream:
        """Begin the log of a container.

        Raises:
            ReadError: there is none, and why.
        """

    def changes(
        self, kind: listing.Kind, *, namespace: str, silence: float, **selectors: str
    ) -> Stream:
        """Begin to watch objects of a kind: a line for each change.

        Raises:
            ReadError: they cannot be watched, and why.
        """


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of a container; when it is started again in place, that is another run."""

    namespace: str
    pod: str
    uid: str
    container: str
    number: int
    """How often the container had been started before."""

    replica: str
    attempt: int


Standing = Literal["waiting", "running", "ended", "previous", "gone"]


def standing(cluster: Cluster, run: Run) -> Standing:
    """Ask how a run stands; `previous` when another has followed it.

    Raises:
        ReadError: it cannot be asked.
    """
    pod = cluster.get(kinds.POD, namespace=run.namespace, name=run.pod)
    if pod is None or seen.uid(pod) != run.uid:
        return "gone"
    for item in container.containers(pod):
        if item.name == run.container:
            if item.restarts > run.number:
                # The kubelet keeps one log beside the present one.
                return "previous" if item.restarts == run.number + 1 else "gone"
            if item.ended or item.crashed:
                return "ended"
            return "running" if item.running else "waiting"
    return "gone"
