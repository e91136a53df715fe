"""What all workers do together, and what it means when that fails.

Here belong a small exchange of numbers, the step that all must come to, and the sentences for
TensorFlow's errors. Any such error ends the process with a code after which all tasks start again:
a single task that comes back is a "different incarnation" to its peers.
"""

import os
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Final, NoReturn

from tfadmit_trainer import exits, start, voice
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.untyped import Strategy, Tensor
from tfadmit_trainer.watchdog import Watchdog, watching

# Who only noticed a failure ends after whom it happened to, so that Kubernetes judges the cause
# first: a program's fault on one worker must not be taken for a lost peer.
NOTICE_SECONDS: Final = 5.0
# A step that all take part in may be preceded by an unequal amount of work, such as loading data.
TOGETHER_SECONDS: Final = 600.0
# A user may set it.
TOGETHER_ENV: Final = "TFADMIT_STEP_TIMEOUT"

_INCARNATION: Final = (
    "another task was started again alone, which TensorFlow does not allow: all tasks must start "
    "again together"
)
_OTHER_CLUSTER: Final = "the tasks do not see the same cluster"
_LOST: Final = "the connection to another task broke: it ended, or its node is gone"

# Part of TensorFlow's text, code, our sentence. The first that fits wins.
_KNOWN: Final[tuple[tuple[str, int, str], ...]] = (
    ("Could not start gRPC server", exits.PORT_IN_USE, "the port of this task is in use"),
    ("Unexpected task registered", exits.PEER_LOST, _OTHER_CLUSTER),
    ("is joining a group with size", exits.PEER_LOST, _OTHER_CLUSTER),
    ("different incarnation", exits.PEER_LOST, _INCARNATION),
    ("already in error", exits.PEER_LOST, _INCARNATION),
    ("must be registered before", exits.PEER_LOST, _INCARNATION),
    ("hostname lookup", exits.PEERS_MISSING, "the name of another task does not resolve"),
    ("errors resolving", exits.PEERS_MISSING, "the name of another task does not resolve"),
    ("heartbeat", exits.PEER_LOST, _LOST),
    ("Collective ops is aborted", exits.PEER_LOST, _LOST),
    ("expected type", exits.STALLED, "the tasks do not run the same steps in the same order"),
    ("RegisterTask", exits.PEERS_MISSING, "the chief or worker 0 did not come up in time"),
    ("Barrier timed out", exits.PEERS_MISSING, "other tasks did not come up in time"),
)
# What these say is always about another task.
_REMOTE: Final = frozenset({"UnavailableError", "AbortedError", "DeadlineExceededError"})


def synchronous(context: TaskContext) -> bool:
    """Whether this task computes gradients together with others, step by step."""
    trains = context.role in ("chief", "worker")
    return trains and context.replicas > 1 and not context.cluster.size("ps")


def explain(error: BaseException) -> tuple[int, str] | None:
    """Give the code and the sentence for an error of TensorFlow's, or nothing for any other."""
    if not type(error).__module__.startswith("tensorflow."):
        return None
    text = str(error)
    for part, code, sentence in _KNOWN:
        if part in text:
            return code, sentence
    if type(error).__name__ in _REMOTE:
        return exits.PEER_LOST, _LOST
    return None


def give_up(error: BaseException, *, code: int, sentence: str, context: TaskContext) -> NoReturn:
    """End this process because of what happened to another one."""
    first = next(iter(str(error).splitlines()), "")
    time.sleep(NOTICE_SECONDS)
    exits.leave(
        code,
        f"{context.role} {context.index} ends: {sentence} ({type(error).__name__}: {first[:300]})",
    )


@contextmanager
def guarded(context: TaskContext) -> Iterator[None]:
    """End the process when an error in the block concerns other tasks; pass on any other error."""
    try:
        yield
    except Exception as error:
        if known := explain(error):
            code, sentence = known
            give_up(error, code=code, sentence=sentence, context=context)
        raise


def guard_process(context: TaskContext) -> None:
    """Do the same for errors that nobody catches, in the whole process."""
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        previous(kind, error, trace)
        if known := explain(error):
            code, sentence = known
            give_up(error, code=code, sentence=sentence, context=context)

    sys.excepthook = hook


_exchanges: weakref.WeakKeyDictionary[Strategy, Callable[[Tensor], Tensor]] = (
    weakref.WeakKeyDictionary()
)


def gathering(strategy: Strategy, measure: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Make a function that gives a row of numbers of each replica, in the order of replicas.

    `measure` runs on each replica and gives its row. All workers must call what is made.
    """
    import tensorflow as tf  # noqa: PLC0415 - only where it is used

    replicas = strategy.num_replicas_in_sync

    def replica(*args: Tensor) -> Tensor:
        row = tf.cast(measure(*args), tf.float64)
        here = tf.distribute.get_replica_context()
        own = tf.equal(tf.range(replicas), tf.cast(here.replica_id_in_sync_group, tf.int32))
        # Not a product with 0 and 1: a NaN of one replica would reach all rows.
        table = tf.where(own[:, tf.newaxis], row[tf.newaxis, :], tf.zeros_like(row))
        return here.all_reduce(tf.distribute.ReduceOp.SUM, table)

    def everywhere(*args: Tensor) -> Tensor:
        return strategy.experimental_local_results(strategy.run(replica, args=args))[0]

    function: Callable[..., Tensor] = tf.function(everywhere, autograph=False)
    return function


def exchange(strategy: Strategy, values: Sequence[float]) -> list[list[float]]:
    """Give the numbers of every replica, in the order of replicas. All workers must call it."""
    import tensorflow as tf  # noqa: PLC0415

    if strategy not in _exchanges:
        _exchanges[strategy] = gathering(strategy, lambda given: given)
    return rows(_exchanges[strategy](tf.constant([float(value) for value in values], tf.float64)))


def rows(table: Tensor) -> list[list[float]]:
    """Give a table of TensorFlow's as numbers."""
    return [[float(value) for value in row] for row in table.numpy()]


def together(
    strategy: Strategy, *, step: str, context: TaskContext, deadline: float | None = None
) -> None:
    """Wait until all workers have come to this step; end the process when some do not.

    Called before a collective operation that is easily run by worker 0 alone, such as
    `model.evaluate()`: TensorFlow would wait without end.
    """
    watchdog = Watchdog(
        context=context,
        what=f"{step}, which all workers must call",
        deadline=start.seconds(os.environ, name=TOGETHER_ENV, default=TOGETHER_SECONDS)
        if deadline is None
        else deadline,
    )
    started = time.monotonic()
    with watching(watchdog), guarded(context):
        exchange(strategy, [0.0])
    if (waited := time.monotonic() - started) > watchdog.first_line:
        voice.say(f"all workers came to {step} after {waited:.0f} s")
