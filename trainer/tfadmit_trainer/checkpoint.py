"""Saving and resuming, with and without storage that all workers share.

All workers must save, because reading some variables is a collective operation, but only the
chief's files count; only the chief reads, and the others get its values over the network.
TensorFlow is imported inside of functions. I/O: files below the directory that is named.
"""

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tfadmit_trainer import collective, voice
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.untyped import Strategy, Tensor, Trackable, Variable

# The last one may be cut off by the kill that makes it needed.
_KEEP: Final = 3


# What TensorFlow raises besides its own errors: IndexError for a file that was cut off, the others
# for a model that is not the one that was saved.
_UNREADABLE: Final = (AssertionError, IndexError, RuntimeError, ValueError)


class CheckpointError(RuntimeError):
    """Checkpoints are there but none can be read; the message says where and why."""


def chief_only(path: str, *, context: TaskContext) -> str:
    """Give the path on the chief, and a directory to throw away on every other task.

    For whatever all workers must write together: `model.save(chief_only(...))`.
    """
    if context.is_chief:
        return path
    scratch = tempfile.mkdtemp(prefix="tfadmit-")
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    return str(Path(scratch, Path(path).name))


def counter(strategy: Strategy, *, name: str) -> Variable:
    """Make a variable that counts, such as the number of finished epochs."""
    import tensorflow as tf  # noqa: PLC0415 - only where it is used

    with strategy.scope():
        return tf.Variable(
            0,
            dtype=tf.int64,
            trainable=False,
            name=name,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )


class Saver:
    """Saves and restores what it was given: models, optimizers (built), variables."""

    def __init__(
        self,
        strategy: Strategy,
        *,
        context: TaskContext,
        directory: str | None = None,
        keep: int = _KEEP,
        **trackables: Trackable,
    ) -> None:
        import tensorflow as tf  # noqa: PLC0415

        self._strategy = strategy
        self._context = context
        self._trackables = trackables
        self.directory = directory or context.directories.checkpoints
        self._checkpoint = tf.train.Checkpoint(**trackables, generators=_generators(trackables))
        self._manager = tf.train.CheckpointManager(
            self._checkpoint,
            chief_only(self.directory, context=context),
            max_to_keep=keep,
        )

    def save(self) -> str:
        """Save now; all workers must call it. Give the path, which only the chief's keeps."""
        path = str(self._manager.save())
        if not self._context.is_chief:
            shutil.rmtree(self._manager.directory, ignore_errors=True)
        return path

    def restore(self) -> str | None:
        """Restore the newest checkpoint that can be read; all workers must call it.

        Give its path on the chief, None when there is none or on other workers.

        Raises:
            CheckpointError: there are checkpoints and none can be read.
        """
        path = self._read() if self._context.is_chief else None
        if collective.synchronous(self._context):
            share(self._strategy, variables(self._trackables), context=self._context)
        if path:
            voice.say(f"restored {path}")
        return path

    def _read(self) -> str | None:
        import tensorflow as tf  # noqa: PLC0415

        failures: list[str] = []
        for path in reversed(self._manager.checkpoints):
            try:
                self._checkpoint.restore(path).assert_existing_objects_matched()
            except (tf.errors.OpError, *_UNREADABLE) as error:  # noqa: PERF203 - three at most
                failures.append(f"{path}: {next(iter(str(error).splitlines()), '')[:200]}")
                voice.warn(
                    f"this checkpoint cannot be read, the one before is tried: {failures[-1]}"
                )
            else:
                return str(path)
        if failures:
            raise CheckpointError(
                f"no checkpoint in {self.directory} can be read; was the model changed? Move the "
                f"directory away to start anew. {'; '.join(failures)}"
            )
        return None


def variables(trackables: Mapping[str, Any]) -> list[Any]:
    """Give TensorFlow's variables in what is saved, in an order that all workers have."""
    found: list[Any] = []
    for name in sorted(trackables):
        found += _variables_of(trackables[name])
    return found


def _variables_of(trackable: Trackable) -> Iterator[Any]:
    owned = getattr(trackable, "variables", None)
    if owned is None:
        yield trackable
        return
    # A method in Keras 2's optimizers, a list everywhere else.
    for variable in owned() if callable(owned) else owned:
        value = getattr(variable, "value", None)
        # In Keras 3 a variable holds TensorFlow's; TensorFlow's has a method of that name.
        yield variable if callable(value) or value is None else value


def _generators(trackables: Mapping[str, Trackable]) -> list[Variable]:
    """Give the states of Keras 3's random generators, such as that of a Dropout layer.

    Keras does not let TensorFlow's checkpoints see them; without them a resumed training draws
    numbers again that it has drawn before. They are the whole numbers among a model's variables.
    """
    models = [value for value in trackables.values() if hasattr(value, "layers")]
    found = [variable for model in models for variable in _variables_of(model)]
    return [variable for variable in found if not variable.dtype.is_floating]


def share(strategy: Strategy, shared: Iterable[Any], *, context: TaskContext) -> None:
    """Give every worker the chief's values; all workers must call it."""
    targets = list(shared)
    for variable, value in zip(
        targets, _chief_values(strategy, targets, is_chief=context.is_chief)(), strict=True
    ):
        variable.assign(strategy.experimental_local_results(value)[0])


def _chief_values(strategy: Strategy, targets: list[Any], *, is_chief: bool) -> Callable[[], Any]:
    """Make the function that sums the chief's values and everybody else's zeros."""
    import tensorflow as tf  # noqa: PLC0415

    def replica() -> Tensor:
        here = tf.distribute.get_replica_context()
        # With several GPUs the chief has several replicas, of which one may count.
        first = tf.equal(tf.cast(here.replica_id_in_sync_group, tf.int32), 0)
        values = [tf.convert_to_tensor(variable) for variable in targets]
        # Sums know neither booleans nor unsigned numbers, such as the state of a random generator.
        wide = [v if v.dtype.is_floating else tf.cast(v, tf.int64) for v in values]
        own = [tf.where(first, w, tf.zeros_like(w)) if is_chief else tf.zeros_like(w) for w in wide]
        sums: dict[int, Any] = {}
        # Reduced together are tensors of one type only.
        for kind in dict.fromkeys(tensor.dtype for tensor in own):
            places = [place for place, tensor in enumerate(own) if tensor.dtype == kind]
            totals = here.all_reduce(tf.distribute.ReduceOp.SUM, [own[place] for place in places])
            sums.update(zip(places, totals, strict=True))
        return [tf.cast(sums[place], value.dtype) for place, value in enumerate(values)]

    def everywhere() -> Tensor:
        return strategy.run(replica)

    function: Callable[[], Any] = tf.function(everywhere, autograph=False)
    return function
