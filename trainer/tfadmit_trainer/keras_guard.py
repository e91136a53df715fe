"""`fit` and `evaluate` under a strategy: all workers take part, with equal weights, or it is said.

Wraps two public methods of the model class of the Keras in use. Keras is handed in.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final

from tfadmit_trainer import collective, fingerprint, voice
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.untyped import Model, Module, Strategy, Unknown

_MARK: Final = "_tfadmit_original"


class _Calls:
    """How deep the calls are nested: `fit` calls `evaluate` for its validation."""

    depth = 0


def install(strategy: Strategy, *, keras: Module, context: TaskContext) -> None:
    """Guard all models of this Keras. Installing it twice equals once."""
    calls = _Calls()
    for name in ("fit", "evaluate"):
        original = getattr(keras.Model, name)
        if not hasattr(original, _MARK):
            guarded = _guard(original, strategy=strategy, keras=keras, context=context, calls=calls)
            setattr(guarded, _MARK, original)
            setattr(keras.Model, name, guarded)


def same_weights(strategy: Strategy, *, keras: Module) -> Unknown:
    """Make the callback that compares the weights of all workers after step 1 and each epoch."""

    class SameWeights(keras.callbacks.Callback):  # type: ignore[misc]
        """Raises DivergedError on all workers."""

        check: fingerprint.Fingerprint | None = None

        def on_train_batch_end(self, batch: int, logs: Unknown = None) -> None:  # noqa: ARG002
            """Compare once; before the first step a model may have no weights."""
            if self.check is None:
                self.check = fingerprint.Fingerprint(strategy, self.model.trainable_variables)
                self.check.check(when="after the first step")

        def on_epoch_end(self, epoch: int, logs: Unknown = None) -> None:  # noqa: ARG002
            """Compare again."""
            if self.check is not None:
                self.check.check(when=f"after epoch {epoch + 1}")

    return SameWeights()


def _guard(
    original: Callable[..., Any],
    *,
    strategy: Strategy,
    keras: Module,
    context: TaskContext,
    calls: _Calls,
) -> Callable[..., Any]:
    name = original.__name__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def guarded(model: Model, *args: Unknown, **keywords: Unknown) -> Unknown:
        if calls.depth or not _is_ours(model, strategy, name=name):
            return original(model, *args, **keywords)
        bound = signature.bind(model, *args, **keywords)
        if name == "fit":
            _add_callback(bound.arguments, same_weights(strategy, keras=keras))
        calls.depth += 1
        try:
            collective.together(strategy, step=f"model.{name}()", context=context)
            with collective.guarded(context):
                return original(*bound.args, **bound.kwargs)
        finally:
            calls.depth -= 1

    return guarded


def _is_ours(model: Model, strategy: Strategy, *, name: str) -> bool:
    if model.distribute_strategy is strategy:
        return True
    voice.warn(
        f"model.{name}() of a model that was made outside of strategy.scope(): every worker trains "
        "or evaluates one of its own. Make and compile the model in `with strategy.scope():`"
    )
    return False


def _add_callback(arguments: dict[str, Any], callback: Unknown) -> None:
    given: Unknown = arguments.get("callbacks")
    if hasattr(given, "append") and not isinstance(given, list):
        given.append(callback)  # a CallbackList
        return
    listed = list(given) if isinstance(given, (list, tuple)) else [given] if given else []
    arguments["callbacks"] = [*listed, callback]
