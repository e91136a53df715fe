"""Counting the workers by their names in DNS, where nobody states their number.

The last resort: DNS shows who is there by now, not who will come, so two tasks that look at
different moments may count differently. `TF_NUM_WORKERS` makes it exact. The lines of the log are
those that users of the recipe know.

A pod's host name is `{trainjob}-node-{job}-{completion}`. With one Job of N completions the last
number is the index of the worker, with N jobs of one completion the one before it; whoever reads
the wrong one finds one worker for ever.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tfadmit_trainer import contract, downward, pattern
from tfadmit_trainer.contract import Cluster, Task
from tfadmit_trainer.fault import DiscoveryError, SetupError
from tfadmit_trainer.host import Host

ATTEMPTS: Final = 60
GAP_SECONDS: Final = 5.0
# One worker is what every task sees before the others have come.
_LEAST: Final = 2
_HOST: Final = re.compile(r"^(.+)-node-(\d+)-(\d+)$")

Name = Callable[[object], str]
"""Gives the host name of a worker, from its number or a range of numbers."""


@dataclass(frozen=True, kw_only=True)
class _Own:
    """What the own host name says."""

    trainjob: str
    job: int
    completion: int

    @property
    def index(self) -> int:
        return self.job or self.completion

    def names(self) -> list[Name]:
        """Give the naming patterns that this host can belong to."""
        names: list[Name] = []
        if self.job == 0:
            names.append(lambda number: f"{self.trainjob}-node-0-{number}")
        if self.completion == 0:
            names.append(lambda number: f"{self.trainjob}-node-{number}-0")
        return names


def claims(host: Host) -> bool:
    """Whether this host is called as a task of a TrainJob."""
    return _HOST.match(host.name) is not None


def discover_workers(host: Host, *, attempts: int = ATTEMPTS) -> Task:
    """Count the workers.

    Raises:
        DiscoveryError: fewer than two, or than TF_NUM_WORKERS states, in all attempts.
        SetupError: the host's name does not say which worker it is.
    """
    own = _own(host)
    search = _Search(host, own)
    if search.stated == 1:
        return search.task(own.names()[0], count=1)
    names = own.names()
    counts = [0] * len(names)
    for attempt in range(1, attempts + 1):
        before = counts
        counts = [search.count(n, known=k) for n, k in zip(names, before, strict=True)]
        _check_only(counts)
        for name, found, last in zip(names, counts, before, strict=True):
            if search.settled(found, before=last):
                host.say(f"[Discovery] Discovered {found} workers via DNS")
                return search.task(name, count=found)
        if attempt < attempts:
            host.say(
                f"[Discovery] attempt {attempt}/{attempts}: found {max(counts)} workers, "
                f"retrying in {GAP_SECONDS:.0f}s..."
            )
            host.sleep(GAP_SECONDS)
    raise DiscoveryError(search.failure(max(counts), attempts=attempts))


def _own(host: Host) -> _Own:
    match = _HOST.match(host.name)
    if match is None:
        raise SetupError(f"host name {host.name!r} is not like train-node-0-1")
    own = _Own(trainjob=match[1], job=int(match[2]), completion=int(match[3]))
    if own.job and own.completion:
        raise SetupError(
            f"host name {host.name!r} has both a job and a task index, so its number among the "
            "workers cannot be told: state the JobSet's sizes (see tfadmit_trainer.downward), or "
            "let the webhook of tfadmit do it"
        )
    return own


def _check_only(counts: Sequence[int]) -> None:
    if len(counts) > 1 and min(counts) >= _LEAST:
        raise SetupError(
            "both …-node-0-1 and …-node-1-0 exist: several jobs of several tasks. Their sizes "
            "cannot be told by DNS: state them (see tfadmit_trainer.downward), or let the webhook "
            "of tfadmit do it"
        )


class _Search:
    """Looks names up, and knows what is enough."""

    def __init__(self, host: Host, own: _Own) -> None:
        self._host = host
        self._own = own
        self._domain = downward.domain(host, subdomain=own.trainjob)
        self.stated = self._stated()

    def _stated(self) -> int | None:
        if not self._host.environ.get(contract.NUM_WORKERS_ENV):
            return None
        return downward.Place(self._host).number(contract.NUM_WORKERS_ENV, low=1)

    def count(self, name: Name, *, known: int) -> int:
        """Count from 0 to the first name that does not resolve; known ones are not asked again."""
        number = known
        while number < (self.stated or pattern.MAX_TASKS):
            answer = self._host.lookup(f"{name(number)}.{self._domain}")
            if not answer.addresses:
                break
            number += 1
        return number

    def settled(self, found: int, *, before: int) -> bool:
        """Whether a count is taken: the stated one, or the same twice in a row."""
        if self.stated is not None:
            return found == self.stated
        return found >= _LEAST and found == before and found > self._own.index

    def task(self, name: Name, *, count: int) -> Task:
        """Give this task in a cluster of so many workers."""
        if self._own.index >= count:
            raise SetupError(
                f"{contract.NUM_WORKERS_ENV}={count}, but this host is {self._host.name}, worker "
                f"{self._own.index} counted from 0: correct the number of workers"
            )
        address = f"{name(pattern.numbers(count))}.{self._domain}:{downward.port(self._host)}"
        return Task(cluster=Cluster(worker=(address,)), role="worker", index=self._own.index)

    def failure(self, found: int, *, attempts: int) -> str:
        """Say what was wanted and what to do."""
        wanted = f"{self.stated} workers" if self.stated else f"at least {_LEAST} workers"
        first = f"{self._own.trainjob}-node-0-0.{self._domain}"
        cause = (
            f"not even {first} resolves: set network.publishNotReadyAddresses: true in the runtime "
            "(pods are not ready before they have met)"
            if found == 0
            else "are the other pods running? kubectl get pods -l "
            f"jobset.sigs.k8s.io/jobset-name={self._own.trainjob}"
        )
        return (
            f"[Discovery] found {found} workers by DNS in {attempts} attempts, {wanted} are "
            f"needed: {cause}\nFor a training on one node set env {contract.NUM_WORKERS_ENV}=1"
        )
