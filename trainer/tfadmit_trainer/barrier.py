"""Waiting until every task of the training can be found by its name, this one's included.

TensorFlow resolves names late and without a word: a peer that does not resolve makes it wait for
3,600 s, and a name that only some tasks can resolve breaks the first step. So all wait for all,
before the strategy is created. Here is who waits for whom and how it ends; the waiting itself
stands in `waiting`, and what a failure means in `diagnosis`.

Names, not ports: a task opens TensorFlow's port only while it creates its strategy, so tasks that
waited for each other's ports before that would wait for ever.
"""

from collections.abc import Sequence
from typing import Final

from tfadmit_trainer import diagnosis, fault, peers
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.diagnosis import Missing
from tfadmit_trainer.peers import Peer
from tfadmit_trainer.waiting import Tools, Waiting

# Half of TensorFlow's own silent hour. Less would use up a gang's restarts while an autoscaler
# still brings nodes with GPUs (5 to 15 minutes).
TIMEOUT_SECONDS: Final = 1800.0
# One look at all peers, for a watchdog that is about to speak.
LOOK_SECONDS: Final = 10.0


class PeersMissingError(fault.StartError):
    """Peers did not appear in time; they may on the next attempt."""

    exit_code = fault.RETRYABLE

    def __init__(self, message: str, *, missing: Sequence[Missing]) -> None:
        super().__init__(message)
        self.missing = tuple(missing)


def wait(
    context: TaskContext,
    *,
    timeout: float = TIMEOUT_SECONDS,
    connect: bool = False,
    port: int | None = None,
    tools: Tools | None = None,
) -> None:
    """Wait until all members resolve.

    The evaluator waits for nobody: it reads checkpoints and must not hold up, or be held up by, a
    training that it is no member of. A task without a cluster has nobody to wait for.

    Args:
        context: this task, from `setup`.
        timeout: seconds after which it is an error.
        connect: also wait until the other members accept TCP connections.
        port: the port for `connect`; TensorFlow's own when left out, which is right only for the
            chief of a cluster with parameter servers.
        tools: for tests.

    Raises:
        PeersMissingError: not all were there in time; says who, the likely cause and where to look.
    """
    tools = tools or Tools()
    everybody = _awaited(context)
    if not everybody:
        return
    if connect:
        _warn_of_waiting_for_ports(context, port=port, tools=tools)
    waiting = Waiting(context, everybody, connect=connect, port=port, tools=tools)
    missing = waiting.run(timeout=timeout, once=False)
    seconds = waiting.seconds()
    if missing:
        raise _missing_error(missing, context=context, total=len(everybody), seconds=seconds)
    if len(everybody) > 1:
        tools.say(f"all {len(everybody)} tasks found, {seconds:.1f} s")


def missing(
    context: TaskContext,
    *,
    connect: bool = True,
    timeout: float = LOOK_SECONDS,
    tools: Tools | None = None,
) -> list[Missing]:
    """Look once who is not there, for a watchdog while the strategy is being created.

    By then every task should have its TensorFlow port open, so connections are tried as well.
    Those that could not be asked in time are not in the answer.
    """
    tools = tools or Tools()
    waiting = Waiting(context, _awaited(context), connect=connect, port=None, tools=tools)
    return [item for item in waiting.run(timeout=timeout, once=True) if item.why != "unasked"]


def _awaited(context: TaskContext) -> list[Peer]:
    if context.source == "single" or context.role == "evaluator":
        return []
    return peers.members(context)


def _warn_of_waiting_for_ports(context: TaskContext, *, port: int | None, tools: Tools) -> None:
    coordinates = context.role == "chief" and context.cluster.size("ps") > 0
    own = peers.is_own
    theirs = {peer.port for peer in peers.members(context) if not own(peer, context=context)}
    if coordinates or (port is not None and port not in theirs):
        return
    tools.warn(
        f"{context.role} {context.index} waits for TensorFlow's own port of its peers. They open "
        "it while they create their strategy, so tasks that all wait for it before that wait for "
        "ever.\nWait for names only (leave out connect=True), or give the port of something that "
        "is up before: barrier.wait(context, connect=True, port=...)"
    )


def _missing_error(
    missing: Sequence[Missing], *, context: TaskContext, total: int, seconds: float
) -> PeersMissingError:
    absent = peers.describe([item.peer for item in missing])
    own = Peer(role=context.role, index=context.index, address=context.address)
    cause = diagnosis.explain(missing, own=own, total=total)
    return PeersMissingError(
        f"{absent} ({len(missing)} of {total}) not found in {seconds:.0f} s by {own}: {cause}",
        missing=missing,
    )
