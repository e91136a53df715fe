"""Whether TensorFlow has already been used in this process, told without importing it.

TensorFlow reads TF_CONFIG when a strategy is created, not when it is imported. `import tensorflow`,
listing physical devices, seeds and unbuilt Keras 3 models are harmless. Two things are not: after
the first operation, `tf.data.Dataset`, Keras 2 model or list of logical devices a multi-worker
strategy refuses to start, and a strategy that was created before trains alone without a word. Both
leave a trace in TensorFlow's context object, under names that 2.15 and 2.21 share (both tried).
"""

from collections.abc import Mapping
from typing import Final, Literal

Stage = Literal["unused", "imported", "operation", "strategy", "unknown"]

_CONTEXT_MODULE: Final = "tensorflow.python.eager.context"


def stage(modules: Mapping[str, object]) -> Stage:
    """Tell how far TensorFlow has been used, from `sys.modules`."""
    if "tensorflow" not in modules:
        return "unused"
    module = modules.get(_CONTEXT_MODULE)
    if module is None or not hasattr(module, "_context"):
        return "unknown"
    context = module._context  # noqa: SLF001 - the only trace there is
    if context is None:
        return "imported"
    if not hasattr(context, "_context_handle") or not hasattr(context, "_collective_leader"):
        return "unknown"
    if context._collective_leader is not None:  # noqa: SLF001
        return "strategy"
    return "imported" if context._context_handle is None else "operation"  # noqa: SLF001


def complaint(found: Stage) -> str | None:
    """Say what is wrong with setting up a cluster at this stage; None when nothing is."""
    if found in ("unused", "imported"):
        return None
    seen = {
        "operation": "TensorFlow has already run an operation, made a tf.data.Dataset or listed "
        "logical devices, so a multi-worker strategy will fail with 'Collective ops must be "
        "configured at program startup'",
        "strategy": "a strategy was created before the cluster was known: it trains alone, with "
        "its own 1 replica, and overwrites what the others save",
        "unknown": "TensorFlow is imported, and this version does not show whether it has run "
        "anything; if it has, the strategy fails or trains alone",
    }[found]
    return (
        f"setup() comes too late: {seen}.\nMove it to the top of the program:\n"
        "    from tfadmit_trainer import setup\n    setup()\n    import tensorflow as tf"
    )
