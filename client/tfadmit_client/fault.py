"""The root of the client's exceptions.

Here: what a command raises for a mistake that the user can mend. Not here: a misuse by other code,
which is a plain ValueError.
"""


class ClientError(Exception):
    """A refusal whose text is meant for people: what, where, why, and what mends it."""
