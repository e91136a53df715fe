"""CIFAR-10's python batches: read from a directory, never downloaded, never trusted.

The files are pickles, which may run any code when read; so only the few names that arrays of
numbers need are allowed. NumPy is imported inside of functions. I/O: reads files.
"""

import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tfadmit_trainer.fault import StartError
from tfadmit_trainer.untyped import Array, Unknown

# The directory with the batches. A user may set it.
DATA_ENV: Final = "CIFAR10_DIR"
DEFAULT_DATA_DIR: Final = "/workspace/data/cifar-10-batches-py"
TRAIN_FILES: Final = tuple(f"data_batch_{number}" for number in range(1, 6))
TEST_FILE: Final = "test_batch"

_SIDE: Final = 32
_CHANNELS: Final = 3
_CLASSES: Final = 10

# What pickles of NumPy arrays of bytes name, in Python 2 and 3 and NumPy 1 and 2.
_ALLOWED: Final = frozenset(
    {
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("_codecs", "encode"),
        ("__builtin__", "bytes"),
        ("builtins", "bytes"),
    }
)


class DataError(StartError):
    """The data is missing or is not CIFAR-10's format; the message says what to do."""


class _Unpickler(pickle.Unpickler):
    """Refuses every name that the format does not need."""

    def find_class(self, module: str, name: str) -> Unknown:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which no image needs")
        return super().find_class(module, name)


def load_cifar10_local(directory: str | None = None) -> tuple[Array, Array, Array, Array]:
    """Read training images, training labels, test images and test labels.

    Images are bytes of shape (n, 32, 32, 3), labels whole numbers of shape (n,).

    Raises:
        DataError: a file is missing or is not of this format.
    """
    place = Path(directory or directory_from(os.environ))
    _check_complete(place)
    import numpy as np  # noqa: PLC0415 - only where it is used

    batches = [_batch(place / name) for name in TRAIN_FILES]
    images = np.concatenate([images for images, _ in batches])
    labels = np.concatenate([labels for _, labels in batches])
    return (images, labels, *_batch(place / TEST_FILE))


def directory_from(environ: Mapping[str, str]) -> str:
    """Give the directory that the user names, or the usual one."""
    return environ.get(DATA_ENV) or DEFAULT_DATA_DIR


def _check_complete(place: Path) -> None:
    missing = [name for name in (*TRAIN_FILES, TEST_FILE) if not (place / name).is_file()]
    if not missing:
        return
    found = "there is no such directory" if not place.is_dir() else f"missing: {', '.join(missing)}"
    raise DataError(
        f"no CIFAR-10 in {place} ({found}). Nothing is downloaded: unpack cifar-10-python.tar.gz "
        "on each node or on shared storage and mount it there, for example in the runtime\n"
        "  volumes: [{name: cifar-data, hostPath: {path: /data/cifar-10-batches-py, "
        "type: Directory}}]\n"
        f"  volumeMounts: [{{name: cifar-data, mountPath: {place}, readOnly: true}}]\n"
        f"or name another directory in the environment variable {DATA_ENV}"
    )


def read(path: Path) -> Unknown:
    """Read one file, trusting nothing in it.

    Raises:
        DataError: it is no pickle, or one that names something else than arrays of numbers.
    """
    try:
        with path.open("rb") as file:
            # Written by Python 2, whose strings are bytes.
            return _Unpickler(file, encoding="bytes").load()
    except (*_BROKEN, OSError, ImportError) as error:
        raise _broken(path, error) from error


def _batch(path: Path) -> tuple[Array, Array]:
    content = read(path)
    try:
        return _arrays(content)
    except _BROKEN as error:
        raise _broken(path, error) from error


def _broken(path: Path, error: Exception) -> DataError:
    return DataError(
        f"{path} is no batch of CIFAR-10 in python format ({type(error).__name__}: {error}): "
        "unpack cifar-10-python.tar.gz again"
    )


# What reading something else raises.
_BROKEN: Final = (
    pickle.UnpicklingError, EOFError, KeyError, TypeError, ValueError, AttributeError, IndexError,
)  # fmt: skip


def _arrays(content: Unknown) -> tuple[Array, Array]:
    import numpy as np  # noqa: PLC0415

    images = np.asarray(content[b"data"], dtype=np.uint8)
    labels = np.asarray(content[b"labels"], dtype=np.int64)
    # A row is all red values, then all green, then all blue ones, each row by row.
    planes = images.reshape(-1, _CHANNELS, _SIDE, _SIDE)
    if len(planes) != len(labels) or not ((labels >= 0) & (labels < _CLASSES)).all():
        raise ValueError(f"{len(planes)} images, {len(labels)} labels of 0 to {_CLASSES - 1}")
    return planes.transpose(0, 2, 3, 1), labels
