"""Which worker holds other weights than the rest."""

import math

import pytest

from tfadmit_trainer import fingerprint

SAME = [1.0, 10.0]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([SAME, SAME, SAME], []),
        ([SAME, [1.0 + 5e-5, 10.0], SAME], []),
        ([SAME, [1.01, 10.0], SAME], [1]),
        ([[1.01, 10.0], SAME, SAME], [0]),
        ([SAME, SAME, [2.0, 10.0], [3.0, 10.0]], [2, 3]),
        ([SAME, [1.01, 10.0]], [1]),
        ([SAME, [math.nan, math.nan]], [1]),
        ([[math.nan, math.nan]] * 3, []),
    ],
)
def test_who_differs_from_most(rows, expected):
    assert fingerprint.outliers(rows, tolerance=1e-5) == expected
