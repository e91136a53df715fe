"""The library inside the training container: standard library only.

    from tfadmit_trainer import setup

    context = setup()

Names are loaded when they are first used, so that `import tfadmit_trainer` costs next to nothing
and never imports TensorFlow. A name here must not be the name of a module of this package: the
module, once imported, would take its place.
"""

import importlib
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tfadmit_trainer.barrier import PeersMissingError
    from tfadmit_trainer.checkpoint import chief_only
    from tfadmit_trainer.configure import setup
    from tfadmit_trainer.configure import setup as setup_tf_config
    from tfadmit_trainer.context import TaskContext
    from tfadmit_trainer.fault import SetupError, StartError

__version__ = "0.1.0"

__all__ = [
    "PeersMissingError",
    "SetupError",
    "StartError",
    "TaskContext",
    "chief_only",
    "setup",
    "setup_tf_config",
]

# Public name -> module and name there.
_PLACES: Final = {
    "PeersMissingError": ("barrier", "PeersMissingError"),
    "SetupError": ("fault", "SetupError"),
    "StartError": ("fault", "StartError"),
    "TaskContext": ("context", "TaskContext"),
    "chief_only": ("checkpoint", "chief_only"),
    "setup": ("configure", "setup"),
    "setup_tf_config": ("configure", "setup"),
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        return _module(name)
    module, attribute = _PLACES[name]
    value: object = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    globals()[name] = value
    return value


def _module(name: str) -> object:
    """Give a module of this package: `tfadmit_trainer.strategy` without importing it by hand."""
    path = f"{__name__}.{name}"
    try:
        if not name.startswith("_"):
            return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
