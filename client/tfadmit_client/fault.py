"""The root of the client's exceptions.

Here: what a command raises for a mistake that the user can mend. Not here: a misuse by other code,
which is a plain ValueError.
"""

from typing import ClassVar


class ClientError(Exception):
    """A refusal whose text is meant for people: what, where, why, and what mends it."""

    code: ClassVar[int] = 2
    """The exit code of the command."""


class ClusterError(ClientError):
    """The cluster does not answer, or does not know who is asking."""

    code: ClassVar[int] = 3
