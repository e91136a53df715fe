"""The distribution strategy of a task, created so that a fault is loud and bounded in time.

Here belongs which strategy a task needs and the order of its start. Each step is in a module of
its own and can be used alone. TensorFlow is imported inside of functions.
"""

import sys
from collections.abc import Mapping
from typing import Any, Final, Literal

from tfadmit_trainer import alarm, collective, keras_gate, late, resolver, server, start, voice
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.untyped import Strategy, Unknown

Kind = Literal["none", "mirrored", "parameter-server"]

# With all tasks there it takes seconds; a minute where many GPUs are opened.
_START_SECONDS: Final = 300.0


class StrategyError(RuntimeError):
    """No strategy can be made for this task; the message says why and what to do."""


def kind(context: TaskContext) -> Kind:
    """Say which strategy a task needs.

    | cluster                  | chief, worker    | ps    | evaluator |
    |--------------------------|------------------|-------|-----------|
    | one task                 | none             |       | none      |
    | workers, perhaps a chief | mirrored         |       | none      |
    | with ps                  | parameter-server | the same | none   |
    """
    if context.role == "evaluator" or not context.is_distributed:
        return "none"
    return "parameter-server" if context.cluster.size("ps") else "mirrored"


def create(context: TaskContext, *, deadline: float | None = None, **options: Unknown) -> Strategy:
    """Make the strategy of this task; all tasks call it, before any other use of TensorFlow.

    A ps, and a worker of a training with ps, serves here until the chief has ended and does not
    return: the same script fits every role.

    Args:
        context: what `setup()` returned.
        deadline: seconds until a start without all tasks is given up.
        options: passed on to ParameterServerStrategy, for example `variable_partitioner`.

    Raises:
        StrategyError: TensorFlow was used before, or made another strategy than expected.
        KerasRefusedError: the Keras in use would train wrongly.
    """
    chosen = kind(context)
    if chosen == "none":
        return _local()
    if chosen == "parameter-server" and context.role != "chief":
        raise SystemExit(server.serve(context, deadline=deadline))
    _check_unused(late.stage(sys.modules))
    collective.guard_process(context)
    start.together(context, deadline=deadline)
    with (
        alarm.ending_after(_START_SECONDS, what="all tasks are there, TensorFlow starts"),
        collective.guarded(context),
    ):
        if chosen == "parameter-server":
            return _parameter_server(context, options)
        strategy = _mirrored(context)
    keras_gate.install(strategy, context=context)
    voice.say(f"{context.role} {context.index}: {strategy.num_replicas_in_sync} replicas in sync")
    return strategy


def _local() -> Strategy:
    """Give the strategy of a task that trains alone: all of its GPUs."""
    import tensorflow as tf  # noqa: PLC0415

    if len(tf.config.list_physical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def _mirrored(context: TaskContext) -> Strategy:
    import tensorflow as tf  # noqa: PLC0415

    gpus = len(tf.config.list_physical_devices("GPU"))
    # AUTO would take RING on GPUs where NCCL is a mistake away, and slowly so.
    means = tf.distribute.experimental.CommunicationImplementation
    chosen = tf.distribute.experimental.CommunicationOptions(
        implementation=means.NCCL if gpus else means.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(
        cluster_resolver=resolver.of(context), communication_options=chosen
    )
    check_replicas(strategy.num_replicas_in_sync, context=context, gpus=gpus)
    return strategy


def _parameter_server(context: TaskContext, options: Mapping[str, Any]) -> Strategy:
    import tensorflow as tf  # noqa: PLC0415

    return tf.distribute.ParameterServerStrategy(resolver.of(context), **options)


def _check_unused(stage: late.Stage) -> None:
    """Refuse a start that TensorFlow would refuse, before anybody waits for it."""
    if stage in ("operation", "strategy"):
        raise StrategyError(
            "TensorFlow was used before the strategy was created (an operation, a tf.data.Dataset "
            "or another strategy): call strategy.create() first, right after `import tensorflow`"
        )


def check_replicas(found: int, *, context: TaskContext, gpus: int) -> None:
    """Refuse a strategy that is not the one of the whole training."""
    expected = context.replicas * max(1, gpus)
    if found != expected:
        raise StrategyError(
            f"TensorFlow has {found} replicas in sync, but {context.replicas} workers with "
            f"{max(1, gpus)} each make {expected}: every worker needs the same number of GPUs"
        )
