"""The exceptions of transfers; each text is meant for people: what, where, why, and what mends it.

Whether trying again can help is the class, because whoever retries must not read sentences.
"""


class TransferError(Exception):
    """Something was not transferred."""


class RefusedError(TransferError):
    """Trying again does not help: a wrong name, a missing bucket, missing rights."""


class PassingError(TransferError):
    """Trying again may help: nobody answers, a connection broke, a server has a bad moment."""


class DamagedError(RefusedError):
    """What came is not what was saved."""


class OvertakenError(RefusedError):
    """A later attempt of the same job writes here now."""
