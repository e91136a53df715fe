"""Names for what TensorFlow and Keras hand over: neither has types that a checker can read.

Nothing but names belongs here. They say to a reader what a value is, and to a checker nothing.
"""

from typing import Any, TypeAlias

Strategy: TypeAlias = Any
Tensor: TypeAlias = Any
Variable: TypeAlias = Any
Trackable: TypeAlias = Any
Model: TypeAlias = Any
Optimizer: TypeAlias = Any
Dataset: TypeAlias = Any
Array: TypeAlias = Any
Writer: TypeAlias = Any
Module: TypeAlias = Any
"""The package `keras` or `tf_keras`."""

Unknown: TypeAlias = Any
