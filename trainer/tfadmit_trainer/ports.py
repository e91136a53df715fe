"""Whether this task's own port is free. I/O: binds it and lets it go."""

import socket

from tfadmit_trainer import exits
from tfadmit_trainer.context import TaskContext


def require(context: TaskContext) -> None:
    """End the process when somebody else listens on this task's port.

    TensorFlow would say "Could not start gRPC server"; its peers would wait for an hour.
    """
    port = int(context.address.rpartition(":")[2])
    if (fault := busy(port)) is not None:
        exits.leave(
            exits.PORT_IN_USE,
            f"port {port} of {context.role} {context.index} is in use ({fault}): end what listens "
            "there, or give this role another TF_WORKER_PORT (with hostNetwork two tasks on one "
            "node collide)",
        )


def busy(port: int) -> str | None:
    """Say why a port cannot be bound on all addresses, as gRPC binds it."""
    with socket.socket() as probe:
        # As gRPC: connections of an earlier process that still wait do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError as error:
            return str(error.strerror)
    return None
