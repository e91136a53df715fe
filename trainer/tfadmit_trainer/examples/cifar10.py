"""CIFAR-10 on any number of workers: `python -m tfadmit_trainer.examples.cifar10`.

A loop of its own instead of `model.fit`, so that it is the same on Keras 2 and 3. All workers
train, evaluate and save; the chief prints, reports, and only its files count.

Environment, each optional:

| name                 | default                               | meaning                     |
|----------------------|---------------------------------------|-----------------------------|
| `CIFAR10_DIR`        | `/workspace/data/cifar-10-batches-py` | the python batches          |
| `EPOCHS`             | 10                                    | passes over the images      |
| `BATCH_SIZE`         | 64                                    | images per replica and step |
| `LEARNING_RATE`      | 0.001                                 | of Adam                     |
| `WIDTH`              | 32                                    | filters of the first layer  |
| `SEED`               | 1                                     | of weights and order        |
| `TFADMIT_OUTPUT_DIR` | `/workspace/output`                   | checkpoints, logs, model    |
"""

import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfadmit_trainer import checkpoint, exits, fingerprint, setup, strategy, voice
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.examples import cifar10_data, cifar10_model
from tfadmit_trainer.fault import StartError
from tfadmit_trainer.preemption import Preemption
from tfadmit_trainer.progress import Reporter
from tfadmit_trainer.untyped import Strategy, Writer


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a user may choose."""

    epochs: int = 10
    batch_size: int = 64
    learning_rate: float = 0.001
    width: int = 32
    seed: int = 1

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> "Options":
        """Read the environment.

        Raises:
            DataError: a value is no number.
        """
        chosen: dict[str, Any] = {}
        for name, kind in (
            ("epochs", int), ("batch_size", int), ("learning_rate", float), ("width", int),
            ("seed", int),
        ):  # fmt: skip
            if stated := environ.get(name.upper()):
                try:
                    chosen[name] = kind(stated)
                except ValueError as error:
                    raise cifar10_data.DataError(
                        f"{name.upper()}={stated!r} is no number"
                    ) from error
        return cls(**chosen)


class Training:
    """One training: what it learns from, what it learns, and where it stands."""

    def __init__(
        self, context: TaskContext, *, chosen: Strategy, options: Options, data: tuple[Any, ...]
    ) -> None:
        self._context, self._strategy, self._options = context, chosen, options
        images, labels, test_images, test_labels = data
        self._images, self._test_images = len(images), len(test_images)
        self._batch = options.batch_size * chosen.num_replicas_in_sync
        if self._batch > self._images:
            raise cifar10_data.DataError(
                f"{self._images} images are less than one step of {chosen.num_replicas_in_sync} "
                f"replicas with {options.batch_size} each: lower BATCH_SIZE"
            )
        with chosen.scope():
            self.model, optimizer = cifar10_model.build(
                seed=options.seed, learning_rate=options.learning_rate, width=options.width
            )
        both = {"model": self.model, "optimizer": optimizer, "batch": self._batch}
        self._train = cifar10_model.steps(chosen, images=images, labels=labels, **both).train
        self._test = cifar10_model.steps(
            chosen, images=test_images, labels=test_labels, **both
        ).evaluate
        # Where the training stands. Images, not steps: the next attempt may have more workers.
        self._epoch = checkpoint.counter(chosen, name="epoch")
        self._seen = checkpoint.counter(chosen, name="seen")
        self._saver = checkpoint.Saver(
            chosen, context=context, model=self.model, optimizer=optimizer,
            epoch=self._epoch, seen=self._seen,
        )  # fmt: skip
        self._same = fingerprint.Fingerprint(chosen, self.model.trainable_variables)

    def run(self) -> tuple[float, float]:
        """Train what is left of it; give loss and accuracy on the test images."""
        self._saver.restore()
        reporter = Reporter(self._context)
        guard = Preemption(self._strategy, context=self._context, save=self._saver.save)
        writer = self._writer()
        result: tuple[float, float] | None = None
        for epoch in range(int(self._epoch.numpy()), self._options.epochs):
            loss = self._one_epoch(epoch, guard=guard)
            same = self._same.check(when=f"after epoch {epoch + 1}")
            self._epoch.assign(epoch + 1)
            self._seen.assign(0)
            self._saver.save()
            result = test_loss, accuracy = self.evaluate()
            metrics = {"loss": loss, "test_loss": test_loss, "test_accuracy": accuracy}
            self._record(writer, metrics, epoch=epoch)
            reporter.report(
                fraction=(epoch + 1) / self._options.epochs,
                metrics=metrics,
                what=f"epoch {epoch + 1}/{self._options.epochs}",
            )
            voice.say(f"weights after epoch {epoch + 1} are the same on all workers: {same:.9g}")
        # Without an epoch when an earlier attempt had done them all.
        return result or self.evaluate()

    def evaluate(self) -> tuple[float, float]:
        """Give loss and accuracy on the test images; all workers must call it."""
        import numpy as np  # noqa: PLC0415

        order = np.arange(self._test_images)
        batches = cifar10_model.numbers(self._strategy, order, batch=self._batch, whole=False)
        sums = sum(self._test(batch).numpy() for batch in batches)
        return float(sums[0] / sums[2]), float(sums[1] / sums[2])

    def save_model(self) -> None:
        """Save the whole network; all workers must call it."""
        import tensorflow as tf  # noqa: PLC0415

        path = f"{self._context.directories.model}/cifar10.keras"
        own = checkpoint.chief_only(path, context=self._context)
        tf.io.gfile.makedirs(own.rpartition("/")[0])
        self.model.save(own)

    def _one_epoch(self, epoch: int, *, guard: Preemption) -> float:
        import numpy as np  # noqa: PLC0415

        # The same order on every worker and in every attempt.
        order = np.random.default_rng((self._options.seed, epoch)).permutation(self._images)
        rest = order[int(self._seen.numpy()) :]
        losses: list[float] = []
        for batch in cifar10_model.numbers(self._strategy, rest, batch=self._batch, whole=True):
            losses.append(float(guard.run(self._train, batch)))
            self._seen.assign_add(self._batch)
            if epoch == 0 and len(losses) == 1:
                self._same.check(when="after the first step")
        return float(np.mean(losses)) if losses else float("nan")

    def _writer(self) -> Writer | None:
        import tensorflow as tf  # noqa: PLC0415

        if not self._context.is_chief:
            return None
        if importlib.util.find_spec("tensorboard") is None:
            voice.say("no TensorBoard logs: the package tensorboard is not in this image")
            return None
        return tf.summary.create_file_writer(self._context.directories.logs)

    def _record(self, writer: Writer, metrics: Mapping[str, float], *, epoch: int) -> None:
        import tensorflow as tf  # noqa: PLC0415

        if writer is None:
            return
        with writer.as_default(step=epoch + 1):
            for name, value in metrics.items():
                tf.summary.scalar(name, value)
        writer.flush()


def main() -> int:
    """Train, print the result on the chief, and give the exit code."""
    try:
        context = setup()
        options = Options.read(os.environ)
        data = cifar10_data.load_cifar10_local()
    except StartError as error:
        voice.warn(str(error))
        exits.leave_reason(str(error))
        return error.exit_code
    # Before anything else of TensorFlow's.
    chosen = strategy.create(context)
    training = Training(context, chosen=chosen, options=options, data=data)
    loss, accuracy = training.run()
    training.save_model()
    if context.is_chief:
        sys.stdout.write(f"Test Loss: {loss:.4f}\nTest Accuracy: {accuracy:.4f}\n")
    return exits.OK


if __name__ == "__main__":
    sys.exit(main())
