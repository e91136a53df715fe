"""`tfadmit-run --check`: what this task sees, judged line by line.

Here is the judgement of the task, its peers and its port; that of the machine is in `machine`. A
fault is what keeps the training from starting, or makes it start otherwise than meant; what may be
on purpose is a note.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from tfadmit_trainer import configure, contract, fault, findings, machine, peers
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.findings import Finding
from tfadmit_trainer.host import Host
from tfadmit_trainer.machine import Looks
from tfadmit_trainer.peers import Peer
from tfadmit_trainer.pool import Pool

# Two looks at DNS are what the count of workers needs to settle; a check is not to take minutes.
_ATTEMPTS: Final = 2
# A dead name server costs 5 s for each of two attempts and each of a few search domains.
_LOOKUP_SECONDS: Final = 60.0
# Names that resolve are printed each up to here; faults always, up to the second.
_LISTED: Final = 16
_FAULTS_LISTED: Final = 20


def main(host: Host, *, output: str, looks: Looks | None = None) -> int:
    """Print what was found; 0 when this task can start, else 1."""
    found = list(look(host, looks=looks or Looks()))
    shown = findings.document(found) if output == "json" else findings.text(found)
    print(shown)  # noqa: T201 - the output of a command
    return 1 if findings.faults(found) else 0


def look(host: Host, *, looks: Looks) -> Iterator[Finding]:
    """Look at everything."""
    try:
        context = configure.setup(host=host, attempts=_ATTEMPTS)
    except fault.StartError as error:
        context = None
        yield Finding(topic="task", text=str(error), level="fault")
    if context is not None:
        yield from _task(context)
        yield from _names(context, host)
        yield _port(context, looks)
    distributed = context is not None and context.is_distributed
    yield from machine.look(host.environ, looks=looks, distributed=distributed)


def _task(context: TaskContext) -> Iterator[Finding]:
    chief = ", saves and prints" if context.is_chief else ""
    yield Finding(topic="task", text=f"{context.role} {context.index}{chief}")
    yield Finding(
        topic="source",
        text=context.source,
        level="note" if context.source in ("single", "discovery") else "ok",
    )
    for role in contract.ROLES:
        if size := context.cluster.size(role):
            patterns = context.cluster.patterns(role)
            more = f", … ({len(patterns)} addresses)" if len(patterns) > 2 else ""
            yield Finding(topic="cluster", text=f"{size:,} {role}: {', '.join(patterns[:2])}{more}")
    yield Finding(topic="attempt", text=str(context.attempt))


def _names(context: TaskContext, host: Host) -> Iterator[Finding]:
    if context.source == "single":
        return
    everybody = peers.members(context)
    answers = _look_up(sorted({peer.host for peer in everybody}), host)
    lost: list[Peer] = []
    shown = 0
    for peer in everybody:
        answer = answers.get(peer.host, "no answer in time")
        if isinstance(answer, tuple):
            shown += 1
            if shown <= _LISTED:
                yield Finding(topic="names", text=f"{peer} {peer.host} = {', '.join(answer)}")
            continue
        lost.append(peer)
        if len(lost) <= _FAULTS_LISTED:
            yield Finding(topic="names", text=f"{peer} {peer.host}: {answer}", level="fault")
    if shown > _LISTED:
        yield Finding(topic="names", text=f"and {shown - _LISTED:,} more that resolve")
    if len(lost) > _FAULTS_LISTED:
        names = peers.describe(lost)
        yield Finding(topic="names", text=f"in all {len(lost):,}: {names}", level="fault")


def _look_up(hosts: Sequence[str], host: Host) -> dict[str, tuple[str, ...] | str]:
    pool: Pool[str, tuple[str, ...] | str] = Pool(lambda name: _answer(name, host))
    try:
        for name in hosts:
            pool.submit(name)
        found: dict[str, tuple[str, ...] | str] = {}
        deadline = host.clock() + _LOOKUP_SECONDS
        while pool.in_flight and (left := deadline - host.clock()) > 0:
            found.update(pool.collect(timeout=left))
        return found
    finally:
        pool.close()


def _answer(name: str, host: Host) -> tuple[str, ...] | str:
    answer = host.lookup(name)
    if answer.addresses:
        return answer.addresses
    if answer.fault == "unanswered":
        return "the name servers did not answer"
    return "no such name"


def _port(context: TaskContext, looks: Looks) -> Finding:
    own = Peer(role=context.role, index=context.index, address=context.address)
    if context.role == "evaluator":
        return Finding(topic="port", text="none needed: the evaluator is no server")
    if error := looks.port_error(own.port):
        text = f"{own.port} cannot be used: {error}. TensorFlow listens on it on all addresses"
        return Finding(topic="port", text=text, level="fault")
    return Finding(topic="port", text=f"{own.port} is free")
