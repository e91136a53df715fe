"""The cluster as an object that TensorFlow takes instead of TF_CONFIG.

A TF_CONFIG over 128 KiB in `os.environ` makes every later child process fail with E2BIG; an object
has no such limit. TensorFlow is imported inside of the function.
"""

from typing import Final

from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.contract import Role
from tfadmit_trainer.untyped import Unknown

# The evaluator is listed for nobody: ParameterServerStrategy waits for it without end.
_MEMBERS: Final[tuple[Role, ...]] = ("chief", "worker", "ps")


def of(context: TaskContext) -> Unknown:
    """Make the resolver of a task that trains."""
    import tensorflow as tf  # noqa: PLC0415 - only where it is used

    jobs = {role: context.addresses(role) for role in _MEMBERS if context.cluster.size(role)}
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(jobs),
        task_type=context.role,
        task_id=context.index,
        rpc_layer="grpc",
    )
