"""`fit`, `evaluate` and `predict` of Keras 3.10 and newer on several workers.

Keras reduces two things that TensorFlow's strategies cannot reduce: a whole batch (a structure of
values) when it builds a model by a first batch, and numbers along a dimension that they do not have
(keras-team/keras#20585). Both calls always raise, so answering just these two changes nothing that
works, and nothing is left to answer once Keras stops making them. Checked for each version in
tests/training. Keras and TensorFlow are imported inside of functions.
"""

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from tfadmit_trainer.untyped import Module, Strategy, Tensor, Unknown

# In Keras since 3.5, private: without it the first of the two calls is not known to be Keras'.
_BUILD: Final = "_maybe_symbolic_build"
_MARK: Final = "_tfadmit_original"


class _Building(threading.local):
    """Whether this thread builds a model by a first batch."""

    active = False


_building: Final = _Building()


def apply(strategy: Strategy, *, keras: Module) -> None:
    """Answer the two calls, for this strategy. Applying it twice equals once."""
    if hasattr(strategy.reduce, _MARK):
        return
    strategy.reduce = _reduce(strategy, strategy.reduce)
    for owner in keras.Model.__mro__:
        original = vars(owner).get(_BUILD)
        if original is not None and not hasattr(original, _MARK):
            setattr(owner, _BUILD, _marking(original))


def _reduce(strategy: Strategy, original: Callable[..., Any]) -> Callable[..., Any]:
    import tensorflow as tf  # noqa: PLC0415 - only where it is used

    @functools.wraps(original)
    def reduce(reduce_op: Unknown, value: Tensor, axis: int | None = None) -> Tensor:
        if _building.active and isinstance(value, (tuple, list, dict)):
            # Only shapes and types of the batch are wanted.
            return tf.nest.map_structure(lambda part: _first(strategy, part), value)
        if axis == 0 and _is_number(_first(strategy, value)):
            # The mean over replicas is what is meant.
            axis = None
        return original(reduce_op, value, axis=axis)

    setattr(reduce, _MARK, original)
    return reduce


def _first(strategy: Strategy, value: Tensor) -> Tensor:
    return strategy.experimental_local_results(value)[0]


def _is_number(value: Tensor) -> bool:
    return getattr(getattr(value, "shape", None), "rank", None) == 0


def _marking(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def build(*args: Unknown, **keywords: Unknown) -> Unknown:
        with _marked():
            return original(*args, **keywords)

    setattr(build, _MARK, original)
    return build


@contextmanager
def _marked() -> Iterator[None]:
    before, _building.active = _building.active, True
    try:
        yield
    finally:
        _building.active = before
