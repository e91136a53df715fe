"""The root of the package's exceptions.

Here: what every layer raises for a mistake that a person can mend. Not here: misuse by a caller,
which is a plain ValueError. No I/O.
"""

from typing import ClassVar


class CertsError(Exception):
    """A refusal whose text is meant for people: what, where, why, and what mends it."""

    code: ClassVar[int] = 2
    """The exit code of a command that ends by it."""
