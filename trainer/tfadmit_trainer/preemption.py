"""SIGTERM: finish the step, save on all workers at the same step, end with a retryable code.

Kubernetes asks one pod to end; all workers must save together. TensorFlow's own handler agrees on
the step over its coordination service; what is saved and how the process ends is ours. TensorFlow
is imported inside of functions. I/O: signals, and what `save` does.
"""

import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from tfadmit_trainer import collective, exits
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.untyped import Strategy, Unknown

# The others lose their coordination service with the chief; so much later it ends.
_CHIEF_SECONDS: Final = 2.0


class Preemption:
    """Runs the steps of a training, and ends it between two steps after SIGTERM.

    All workers must run every step with it. Make it in the main thread, after restoring.
    """

    def __init__(
        self, strategy: Strategy, *, context: TaskContext, save: Callable[[], Any]
    ) -> None:
        self._strategy = strategy
        self._context = context
        self._save = save
        # Not a lock of any kind: a handler may run in the middle of anything.
        self._asked = False
        self._handler = self._agreeing() if collective.synchronous(context) else None
        if self._handler is None:
            signal.signal(signal.SIGTERM, self._ask)

    def run(self, step: Callable[..., Any], *args: Unknown) -> Unknown:
        """Run one step."""
        if self._handler is not None:
            return self._handler.run(step, *args)
        if self._asked:
            self._save()
            self._leave()
        return step(*args)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self._asked = True

    def _agreeing(self) -> Unknown:
        import tensorflow as tf  # noqa: PLC0415 - only where it is used

        # The handler insists on a checkpoint of its own, which stays empty: it would restore on
        # every worker from a directory that all must share.
        scratch = tempfile.mkdtemp(prefix="tfadmit-")
        return tf.distribute.experimental.PreemptionCheckpointHandler(
            self._strategy.cluster_resolver,
            tf.train.Checkpoint(),
            checkpoint_dir=str(Path(scratch, "handler")),
            termination_config=tf.distribute.experimental.TerminationConfig(
                exit_fn=self._leave, save_fn=self._save
            ),
        )

    def _leave(self) -> NoReturn:
        if self._handler is not None:
            collective.exchange(self._strategy, [0.0])
            if self._context.is_chief:
                time.sleep(_CHIEF_SECONDS)
        exits.leave(
            exits.TERMINATED,
            f"{self._context.role} {self._context.index} saved the training and ends, because a "
            "pod of it was asked to end (SIGTERM); the next attempt resumes here",
        )
