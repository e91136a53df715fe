"""What can go wrong with a connection before anything is asked."""


class ConnectError(Exception):
    """A kubeconfig or a service account cannot be used; the message says what mends it."""


def line(error: object) -> str:
    """Make one line of what an exception says."""
    return " ".join(str(error).split()) or type(error).__name__
