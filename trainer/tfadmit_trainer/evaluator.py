"""The evaluator: one task that reads checkpoints beside a training and ends with it.

TensorFlow is imported inside of functions. I/O: reads a directory, holds a connection to the chief.
"""

from collections.abc import Iterator
from typing import Final

from tfadmit_trainer import chief_watch, voice
from tfadmit_trainer.context import TaskContext

_LOOK_SECONDS: Final = 5.0


def checkpoints(
    context: TaskContext, *, directory: str | None = None, look: float = _LOOK_SECONDS
) -> Iterator[str]:
    """Give the path of each new checkpoint, until the chief has ended and all were given.

    TensorFlow's own iterator ends by a timeout only, which is too early for a slow epoch and too
    late for every end.
    """
    import tensorflow as tf  # noqa: PLC0415 - only where it is used

    watch = chief_watch.of(context)
    place = directory or context.directories.checkpoints
    yield from tf.train.checkpoints_iterator(place, timeout=look, timeout_fn=watch.ended.is_set)
    voice.say("the evaluator ends, because the chief has ended")
