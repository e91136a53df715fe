"""Whether all workers hold the same weights.

The printed loss does not tell: it is reduced over all workers and thus the same everywhere, while
weights drift apart (Keras 3.0 to 3.4 do so silently). Compared is a projection onto fixed
pseudo-random directions, relative to the length of the weights: a plain sum of n weights would
hide differences by a factor of the square root of n. Costs one pass over the trainable weights
and a few numbers on the network. TensorFlow is imported inside of functions.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tfadmit_trainer import collective
from tfadmit_trainer.untyped import Array, Strategy, Tensor, Variable

# Equal updates of equal weights are equal to the last bit on equal machines. The tolerance is for
# unequal ones, whose roundings differ by 1e-7 per step.
TOLERANCE: Final = 1e-5


class DivergedError(RuntimeError):
    """Workers hold different weights; the message says which ones."""


class Fingerprint:
    """Compares the weights of all replicas; made once, checked as often as wanted."""

    def __init__(
        self, strategy: Strategy, variables: Iterable[Variable], *, tolerance: float = TOLERANCE
    ) -> None:
        self._tolerance = tolerance
        self._gather = collective.gathering(strategy, _taker(list(variables)))

    def check(self, *, when: str) -> float:
        """Compare now; all workers must call it. Give the projection, the same on all of them.

        Raises:
            DivergedError: on all workers, when the weights of some differ.
        """
        rows = collective.rows(self._gather())
        if differ := outliers(rows, tolerance=self._tolerance):
            raise DivergedError(_message(differ, rows=rows, when=when))
        return rows[0][0]


def outliers(rows: Sequence[Sequence[float]], *, tolerance: float) -> list[int]:
    """Give the replicas whose projection differs from the one that most replicas have."""
    groups: list[list[int]] = []
    for index, row in enumerate(rows):
        for group in groups:
            if _equal(row, rows[group[0]], tolerance=tolerance):
                group.append(index)
                break
        else:
            groups.append([index])
    # Of equally large groups the first one is taken for right, so that all workers agree on whom.
    largest = max(groups, key=len)
    return [index for index in range(len(rows)) if index not in largest]


def _equal(one: Sequence[float], other: Sequence[float], *, tolerance: float) -> bool:
    if any(map(math.isnan, (*one, *other))):
        return all(math.isnan(a) == math.isnan(b) for a, b in zip(one, other, strict=True))
    return abs(one[0] - other[0]) <= tolerance * max(one[1], other[1])


def _message(differ: Sequence[int], *, rows: Sequence[Sequence[float]], when: str) -> str:
    shown = ", ".join(f"{index} ({rows[index][0]:.9g})" for index in differ[:5])
    good = next(row for index, row in enumerate(rows) if index not in differ)
    return (
        f"the weights of replica {shown} differ from those of the other replicas ({good[0]:.9g}) "
        f"{when}: gradients are not summed over the workers, or weights are changed outside of the "
        "strategy. The training is not worth continuing"
    )


def _taker(variables: Sequence[Variable]) -> Callable[[], Tensor]:
    """Make the function that gives projection and length of the weights of a replica."""
    import tensorflow as tf  # noqa: PLC0415 - only where it is used

    def take() -> Tensor:
        projection = square = tf.zeros((), tf.float64)
        for number, variable in enumerate(variables):
            weights = tf.convert_to_tensor(variable)
            if not weights.dtype.is_floating:
                continue
            table = tf.reshape(tf.cast(weights, tf.float32), _table_shape(weights.shape))
            down, across = _directions(number, rows=table.shape[0], columns=table.shape[1])
            # Row by row: no temporary value is larger than one variable.
            row_sums = tf.reduce_sum(table * across, axis=1)
            projection += tf.cast(tf.reduce_sum(row_sums * down), tf.float64)
            square += tf.cast(tf.reduce_sum(tf.square(table)), tf.float64)
        return tf.stack([projection, tf.sqrt(square)])

    return take


def _table_shape(shape: Sequence[int]) -> tuple[int, int]:
    sizes = [int(size) for size in shape] or [1]
    return math.prod(sizes[:-1]), sizes[-1]


def _directions(number: int, *, rows: int, columns: int) -> tuple[Array, Array]:
    """Give two vectors of random numbers, the same in every process and in every attempt."""
    import numpy as np  # noqa: PLC0415

    # The one generator of NumPy's whose numbers are promised to stay the same.
    source = np.random.RandomState(number)
    return tuple(source.standard_normal(size).astype(np.float32) for size in (rows, columns))
