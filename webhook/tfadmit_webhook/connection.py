"""One connection: aiohttp's protocol, and what is known about the diligence of its client.

aiohttp gives no time limit to the head of a request, so it is kept here. Which connection has to go
is decided in `listen`.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import cast

from aiohttp import web

# An API server sends a head in one piece.
HEAD_SECONDS = 10.0
# aiohttp bounds a head to 128 lines of 8 KiB; the rest is what may come in one piece behind it.
_HEAD_BYTES = (1024 + 256) * 1024


class Connection(asyncio.Protocol):
    """What asyncio calls for one client."""

    def __init__(
        self,
        inner: web.RequestHandler,
        taken: socket.socket,
        *,
        gone: Callable[[web.RequestHandler], None],
    ) -> None:
        self.inner = inner
        self._socket = taken
        self.handshake: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport | None = None
        self.busy = False
        self.served = False
        self.rested = 0.0
        """When the last request was answered."""

        self.since: float | None = asyncio.get_running_loop().time()
        """Since when a request's head is awaited; None while nothing of one has come."""

        self._bytes = 0
        self._lingers = False
        self._gone = gone

    def overdue(self, now: float) -> bool:
        """Whether a head has been awaited for too long."""
        if self.busy or self.transport is None or self.since is None:
            return False
        return now - self.since > HEAD_SECONDS

    def begin(self) -> None:
        """A request has come; only its body may be missing."""
        self.busy, self.since, self._bytes = True, None, 0

    def rest(self, *, now: float, all_read: bool) -> None:
        """The request is answered; what was not read of it may still come."""
        self.busy, self.served, self.rested = False, True, now
        self._lingers = not all_read
        self.since = None if all_read else now

    def end(self) -> None:
        """Close it at once."""
        if self.transport:
            self.transport.abort()
        else:  # the handshake fails by it, at whatever point it is
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake is done; a head is awaited from now on."""
        self.transport = cast("asyncio.Transport", transport)  # that of a stream
        self.since = asyncio.get_running_loop().time()
        self.inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass on what came, as long as it can be a request."""
        if not self.busy and not self._lingers:
            if self.since is None:
                self.since = asyncio.get_running_loop().time()
            self._bytes += len(data)
            if self._bytes > _HEAD_BYTES:
                self.end()
                return
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        """The client will send nothing more; close."""
        self.inner.eof_received()
        return None

    def connection_lost(self, exc: BaseException | None) -> None:
        """It is closed."""
        self.inner.connection_lost(exc)
        self._gone(self.inner)
        self.transport = None  # which holds us

    def pause_writing(self) -> None:
        """The client reads slowly."""
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        """The client has read."""
        self.inner.resume_writing()
