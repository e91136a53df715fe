"""Ports: how one is taken, and how many connections to it the system allows."""

import logging
import resource
import socket

_LOG = logging.getLogger("tfadmit")

# A burst of pods opens hundreds of connections at once; the kernel cuts this at somaxconn.
BACKLOG = 1024
# In all processes. Each costs 256 KiB while it lasts (asyncio's buffer for TLS). Three API servers
# keep 25 each and open hundreds in a burst.
_LEAST_CONNECTIONS = 1024
# Descriptors for everything but connections: files, the API server, the other port.
_OTHER_FILES = 128


class ListenError(Exception):
    """An address cannot be listened on; the message says which and why."""


def bind(host: str, port: int, *, what: str = "", at_once: bool = False) -> socket.socket:
    """Take a port. Who connects is refused until a door is opened; with `at_once` he waits.

    Raises:
        ListenError: it cannot be had.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if ":" in host:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
        if at_once:
            listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise fault(f"{host}:{port}{what}", error) from error
    return listener


def fault(where: str, error: OSError) -> ListenError:
    """Say what came of the attempt to listen somewhere."""
    return ListenError(f"cannot listen on {where}: {error.strerror or error}")


def most_connections(*, in_flight: int, processes: int) -> int:
    """Give how many connections one process may have, with the descriptors that the system allows.

    As many as reviews in work, and as many again that idle or are about to be sent away.
    """
    wanted = max(_LEAST_CONNECTIONS // processes, 2 * in_flight)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = wanted + _OTHER_FILES
    if soft < files:
        soft = files if hard == resource.RLIM_INFINITY else min(files, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(wanted, soft - _OTHER_FILES))


def address(listener: socket.socket) -> str:
    """Write where a socket listens, as in a URL."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def say_listening(what: str, url: str) -> None:
    """Tell people, and whoever started this on any free port, where to ask."""
    _LOG.info("listening", extra={"fields": {"what": what, "address": url}})
