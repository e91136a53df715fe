"""Which Keras is in use, and what it may do under a strategy with several replicas.

Keras 3 was made for one process. Measured (tests/training/test_keras.py), on two workers against
one:

| Keras      | own loop             | `fit` and `evaluate`                                    |
|------------|----------------------|---------------------------------------------------------|
| 2          | right                | right                                                   |
| 3.0 to 3.4 | gradients not summed | fail, or gradients not summed                           |
| 3.5 to 3.7 | right                | fail, or the loss is not scaled                         |
| 3.8, 3.9   | right                | fail, or loss and metrics are of one replica's batches  |
| 3.10 on    | right                | fail; right with the layer in `keras_compat`            |

What is refused is refused where it is used, so that an image may carry a Keras that nobody uses.
Keras and TensorFlow are imported inside of functions.
"""

import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from tfadmit_trainer import keras_compat, keras_guard
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.untyped import Module, Strategy, Unknown

Verdict = Literal["fine", "unsummed", "no fit", "compat"]

_LEGACY_ENV: Final = "TF_USE_LEGACY_KERAS"
_SUMS_GRADIENTS: Final = (3, 5)
_MEASURES: Final = (3, 10)

_WAY_OUT: Final = (
    "use Keras 3.10 or newer (pip install 'keras>=3.10'), or Keras 2: pip install tf_keras in the "
    "version of TensorFlow, and set TF_USE_LEGACY_KERAS=1 in the environment"
)


class KerasRefusedError(RuntimeError):
    """The Keras in use would train wrongly or fail; the message names the way out."""


def judge(version: tuple[int, int]) -> Verdict:
    """Say what a version of Keras may do with several replicas."""
    if version < (3, 0):
        return "fine"
    if version < _SUMS_GRADIENTS:
        return "unsummed"
    return "no fit" if version < _MEASURES else "compat"


def module(environ: Mapping[str, str]) -> Module | None:
    """Give the Keras that `tf.keras` stands for, None when there is none or not on TensorFlow."""
    legacy = environ.get(_LEGACY_ENV, "") in ("1", "true", "True")
    try:
        keras = importlib.import_module("tf_keras" if legacy else "keras")
    except ImportError:
        return None
    backend = getattr(keras, "backend", None)
    name = getattr(backend, "backend", None)
    return keras if name is None or name() == "tensorflow" else None


def version(keras: Module) -> tuple[int, int]:
    """Give major and minor version."""
    major, minor = str(keras.__version__).split(".")[:2]
    return int(major), int(minor)


def install(strategy: Strategy, *, context: TaskContext) -> None:
    """Guard the Keras in use for this strategy. With one replica nothing is done."""
    keras = module(os.environ)
    if strategy.num_replicas_in_sync < 2 or keras is None:
        return
    verdict = judge(version(keras))
    if verdict == "unsummed":
        _refuse_optimizers(keras)
    if verdict in ("unsummed", "no fit"):
        _refuse_fit(keras)
        return
    if verdict == "compat":
        keras_compat.apply(strategy, keras=keras)
    keras_guard.install(strategy, keras=keras, context=context)


def _refuse_optimizers(keras: Module) -> None:
    text = (
        f"Keras {keras.__version__} does not sum gradients over the replicas: every worker would "
        f"train a model of its own, without any error. Before the first step: {_WAY_OUT}"
    )
    for name in ("__init__", "apply", "apply_gradients"):
        if hasattr(keras.optimizers.Optimizer, name):
            setattr(keras.optimizers.Optimizer, name, _refusing(text))


def _refuse_fit(keras: Module) -> None:
    for name in ("fit", "evaluate"):
        text = (
            f"model.{name}() of Keras {keras.__version__} fails, trains wrongly or reports wrong "
            f"numbers with more than one worker: {_WAY_OUT}; or write a loop of your own with "
            "strategy.run(), right from Keras 3.5 on (see tfadmit_trainer.examples.cifar10)"
        )
        setattr(keras.Model, name, _refusing(text))


def _refusing(text: str) -> Callable[..., Any]:
    def refuse(*_args: Unknown, **_keywords: Unknown) -> Unknown:
        raise KerasRefusedError(text)

    return refuse
