"""Writes real images in CIFAR-10's python format: `python digits.py DIRECTORY`.

They are the 1,797 handwritten digits that scikit-learn carries (BSD), 8 x 8 grey, enlarged to
32 x 32 in three equal colours: 1,500 to learn from and 297 to test. This is not CIFAR-10 and is
never called so; it makes the example run offline, on data that can be learned. Runs in the
environment with TensorFlow, because scikit-learn is installed there only.
"""

import pickle
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

_PER_FILE = 300
_FILES = 5
_ENLARGE = 4


def write(directory: Path) -> None:
    """Write the six batches and the file of names."""
    digits, labels = load_digits(return_X_y=True)
    small = (digits.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    grey = np.kron(small, np.ones((1, _ENLARGE, _ENLARGE), dtype=np.uint8))
    rows = np.repeat(grey[:, np.newaxis], 3, axis=1).reshape(len(grey), -1)
    order = np.random.default_rng(0).permutation(len(rows))
    rows, labels = rows[order], labels[order]
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(_FILES):
        part = slice(number * _PER_FILE, (number + 1) * _PER_FILE)
        _dump(directory / f"data_batch_{number + 1}", rows[part], labels[part])
    rest = slice(_FILES * _PER_FILE, None)
    _dump(directory / "test_batch", rows[rest], labels[rest])
    names = {b"label_names": [str(digit).encode() for digit in range(10)]}
    (directory / "batches.meta").write_bytes(pickle.dumps(names, protocol=2))


def _dump(path: Path, rows: np.ndarray, labels: np.ndarray) -> None:
    content = {
        b"batch_label": path.name.encode(),
        b"labels": [int(label) for label in labels],
        b"data": rows,
        b"filenames": [b""] * len(rows),
    }
    # Protocol 2 is the one of Python 2, in which the original files were written.
    path.write_bytes(pickle.dumps(content, protocol=2))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
