"""Whether the chief is still there, seen from a task that works for it.

A connection to the chief's port is held open: when the chief ends, whatever way, its kernel closes
it at once, and keep-alive finds a lost node. Nothing is sent. I/O: one connection.
"""

import socket
import threading
import time
from contextlib import suppress
from typing import Final

from tfadmit_trainer.context import TaskContext

# gRPC closes a connection without a handshake after two minutes, and it is made anew; so long a
# chief that was seen once may then be out of reach before it counts as ended.
GRACE_SECONDS: Final = 10.0
# A node that answers and refuses has no chief any more, or one that is just being restarted.
REFUSED_SECONDS: Final = 3.0
# When all tasks are started again, the chief of the attempt before may still be ending, under the
# same name: the shipped runtimes give it 120 s.
PREDECESSOR_SECONDS: Final = 180.0
_AGAIN_SECONDS: Final = 1.0
_CONNECT_SECONDS: Final = 5.0
# A lost node is noticed after 10 + 3 x 5 s.
_KEEPALIVE: Final = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


def address(context: TaskContext) -> str:
    """Give the chief's address; worker 0 is chief where there is none."""
    return context.addresses("chief" if context.cluster.size("chief") else "worker")[0]


def of(context: TaskContext) -> "ChiefWatch":
    """Begin to watch the chief of a task."""
    predecessor = PREDECESSOR_SECONDS if context.attempt else 0.0
    return ChiefWatch(address(context), predecessor=predecessor).start()


class ChiefWatch:
    """Follows the chief in a thread.

    One that ends within the first `predecessor` seconds may be the last attempt's, and is waited
    for anew: a task that took it for its own would end, and its own chief wait for it without end.
    """

    def __init__(
        self,
        address: str,
        *,
        grace: float = GRACE_SECONDS,
        refused: float = REFUSED_SECONDS,
        predecessor: float = 0.0,
    ) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._grace, self._refused = grace, refused
        self._trusted_from = time.monotonic() + predecessor
        self.seen = threading.Event()
        self.ended = threading.Event()

    def start(self) -> "ChiefWatch":
        """Begin; the thread ends with the chief or with the process."""
        threading.Thread(target=self._follow, name="tfadmit-chief", daemon=True).start()
        return self

    def _follow(self) -> None:
        gone: float | None = None
        while True:
            fault = self._hold()
            now = time.monotonic()
            # None: it was there until now.
            gone = now if fault is None or gone is None else gone
            patience = self._refused if isinstance(fault, ConnectionRefusedError) else self._grace
            if self.seen.is_set() and fault is not None and now - gone >= patience:
                if now >= self._trusted_from:
                    self.ended.set()
                    return
                self.seen.clear()
            time.sleep(_AGAIN_SECONDS)

    def _hold(self) -> OSError | None:
        """Keep a connection for as long as it lasts; give the error when there is none."""
        try:
            link = socket.create_connection((self._host, self._port), _CONNECT_SECONDS)
        except OSError as error:
            return error
        self.seen.set()
        with link, suppress(OSError):
            link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEPALIVE:
                if hasattr(socket, name):  # Linux
                    link.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
            link.settimeout(None)
            while link.recv(4096):
                pass
        return None
