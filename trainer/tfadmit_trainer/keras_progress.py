"""The callback that reports the progress of `model.fit`, to the log and to Trainer.

    model.fit(..., callbacks=[keras_progress.callback(context)])

Keras is imported inside of functions.
"""

import os

from tfadmit_trainer import keras_gate
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.progress import Reporter
from tfadmit_trainer.untyped import Unknown


def callback(context: TaskContext) -> Unknown:
    """Make the callback, of the Keras in use."""
    keras: Unknown = keras_gate.module(os.environ)
    if keras is None:
        raise ImportError("there is no Keras on TensorFlow here: pip install keras")

    class Progress(keras.callbacks.Callback):  # type: ignore[misc]
        """Reports at the end of each epoch."""

        reporter = Reporter(context)

        def on_epoch_end(self, epoch: int, logs: Unknown = None) -> None:
            """Report what Keras measured."""
            epochs = int(self.params.get("epochs") or epoch + 1)
            self.reporter.report(
                fraction=(epoch + 1) / epochs,
                metrics={name: float(value) for name, value in (logs or {}).items()},
                what=f"epoch {epoch + 1}/{epochs}",
            )

    return Progress()
