"""A bad line to a server: a TCP proxy that is slow, breaks off, or leads nowhere, as told."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from harness import loopback

_CHUNK = 16 * 1024
# SO_LINGER with no time: closing sends a reset and not an end.
_AT_ONCE = struct.pack("ii", 1, 0)


@dataclass
class Line:
    """What the line does to connections; may be changed while it is used."""

    port: int
    bytes_per_second: float | None = None
    """How fast bytes come from the server, None for as fast as they do."""
    breaks_after: list[int] = field(default_factory=list)
    """Bytes, both ways together: the first connection that has moved so many is reset."""
    down: bool = False
    """Whether connections are reset at once."""
    resets: int = 0
    """How many connections were reset so far."""


@contextlib.contextmanager
def line(*, to: int) -> Iterator[Line]:
    """A line to a port of this machine."""
    with socket.create_server(("127.0.0.1", loopback.free_port())) as listener:
        made = Line(port=listener.getsockname()[1])
        threading.Thread(target=_accept, args=(listener, made, to), daemon=True).start()
        yield made
        made.down = True


def _accept(listener: socket.socket, line: Line, to: int) -> None:
    while True:
        try:
            near, _ = listener.accept()
        except OSError:  # closed: the test is over
            return
        threading.Thread(target=_serve, args=(line, near, to), daemon=True).start()


def _serve(line: Line, near: socket.socket, to: int) -> None:
    with near:
        if not line.down:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", to)) as far:
                _Connection(line, near, far).serve()
            return
        line.resets += 1
        near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)


class _Connection:
    def __init__(self, line: Line, near: socket.socket, far: socket.socket) -> None:
        self._line = line
        self._near = near
        self._far = far
        self._moved = 0
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Copy both ways until both sides have closed, or until the line breaks."""
        back = threading.Thread(target=self._copy, args=(self._far, self._near), daemon=True)
        back.start()
        self._copy(self._near, self._far)
        back.join()
        self._near.close()
        self._far.close()

    def _copy(self, origin: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := origin.recv(_CHUNK):
                if self._line.down or self._used_up(len(chunk)):
                    self._break()
                    return
                if self._line.bytes_per_second and origin is self._far:
                    time.sleep(len(chunk) / self._line.bytes_per_second)
                target.sendall(chunk)
        for end in (self._near, self._far):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _break(self) -> None:
        """Let the client see a reset, which the last close then sends, and wake the other way."""
        self._line.resets += 1
        with contextlib.suppress(OSError):
            self._near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        for end in (self._near, self._far):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RD)

    def _used_up(self, count: int) -> bool:
        with self._lock:
            self._moved += count
            breaks = self._line.breaks_after
            if not breaks or self._moved < breaks[0]:
                return False
            breaks.pop(0)
            return True
