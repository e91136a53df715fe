"""One host name to addresses, as TensorFlow would resolve it, with the reason when it fails.

Here are the look-up and the connection attempt, and nothing about when or how often to try. Both
block; `pool` runs many at a time.
"""

import functools
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Fault = Literal["unknown", "unanswered"]
"""`unknown`: the server knows no such name. `unanswered`: no server gave an answer."""

# The name servers answered, and the name has no address; the rest (EAI_AGAIN, EAI_FAIL, EAI_SYSTEM)
# is about the servers. Python names EAI_NODATA only where the C library has it.
_NO_SUCH_NAME: Final = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
_HOSTS_FILE: Final = "/etc/hosts"


@dataclass(frozen=True)
class Answer:
    """What a look-up gave: addresses, or the fault."""

    addresses: tuple[str, ...] = ()
    fault: Fault | None = None


Lookup = Callable[[str], Answer]


def lookup(host: str) -> Answer:
    """Resolve a host name."""
    name = absolute(host, stated=_stated_names())
    try:
        # ADDRCONFIG: no AAAA query where the machine has no IPv6, which halves the load of the
        # name servers. STREAM: each address once instead of once per kind of socket.
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except socket.gaierror as error:
        return Answer(fault="unknown" if error.errno in _NO_SUCH_NAME else "unanswered")
    except (OSError, UnicodeError):  # UnicodeError: a label over 63 characters
        return Answer(fault="unknown")
    return Answer(addresses=tuple(dict.fromkeys(str(entry[4][0]) for entry in found)))


def absolute(host: str, *, stated: Iterable[str]) -> str:
    """Give a cluster's full name a dot at its end, so that it is asked as it stands.

    Without the dot, a name that is not there yet is tried with each search domain of the pod as
    well: eight queries in place of two, for every name and every attempt. And with it, the own name
    is asked of the name servers, as the peers ask it; the kubelet writes it to the pod's
    /etc/hosts, where it always resolves. Names that somebody else stated there (`hostAliases`)
    stay as they are.
    """
    if ".svc." in host and not host.endswith(".") and host not in stated:
        return f"{host}."
    return host


def connects(address: str, *, port: int, timeout: float) -> bool:
    """Whether something accepts connections there."""
    try:
        with socket.create_connection((address, port), timeout=timeout):
            return True
    except OSError:
        return False


@functools.lru_cache(maxsize=1)
def _stated_names() -> frozenset[str]:
    try:
        text = Path(_HOSTS_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    return stated_names(text, own=socket.gethostname())


def stated_names(text: str, *, own: str) -> frozenset[str]:
    """Give the names in a hosts file, without those on the line of this host."""
    lines = (line.partition("#")[0].split()[1:] for line in text.splitlines())
    return frozenset(name for names in lines if own not in names for name in names)
