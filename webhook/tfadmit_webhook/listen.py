"""Taking connections: how many there may be, how long one may say nothing, and which gives way.

Whoever reaches the port can open connections. Each gets a time for its handshake and for the head
of each request, and when there are as many as may be, the one that has said nothing useful for
longest gives way to the newcomer. Requests are answered in `bridge` and `plain`.
"""

import asyncio
import errno
import socket
import ssl
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from aiohttp import web

from tfadmit_webhook import port
from tfadmit_webhook.connection import Connection

# As the API server's client: it gives up a handshake after 10 s.
_HANDSHAKE_SECONDS = 10.0
# Taken at one go before others get their turn: each costs a tenth of a millisecond.
_AT_ONCE = 8
# Given up at one go when there are no descriptors left.
_GIVEN_UP = 64
# How long to wait when the system gives no more descriptors.
_FULL_SECONDS = 0.1
_FULL = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Observer(Protocol):
    """Who is told."""

    def shed(self, cause: str) -> None:
        """Take note of what was sent away because there was too much of it."""

    def connected(self, count: int) -> None:
        """Take note of how many connections there are."""


class Door:
    """A listening socket and the connections that came in by it; for the loop's thread only."""

    def __init__(
        self,
        listener: socket.socket,
        *,
        handler: Handler,
        limit: int,
        observer: Observer,
        identity: Callable[[], ssl.SSLContext | None] = lambda: None,
        **options: Any,  # noqa: ANN401 - those of aiohttp's Server
    ) -> None:
        """Prepare to take connections.

        Args:
            listener: the socket, bound.
            handler: answers requests.
            limit: how many connections there may be.
            observer: is told what happens.
            identity: gives what the next handshake is made with; nothing for plain HTTP.
            options: how aiohttp takes requests.
        """
        self._listener = listener
        self._handler = handler
        self._limit = limit
        self._observer = observer
        self._identity = identity
        self._loop = asyncio.get_running_loop()
        self._server = web.Server(self._handle, access_log=None, **options)
        self._connections: dict[web.RequestHandler, Connection] = {}
        self._open = False

    def open(self) -> None:
        """Take connections from now on."""
        try:
            self._listener.listen(port.BACKLOG)
        except OSError as error:  # two may bind a port, and one of them may listen
            host, number = self._listener.getsockname()[:2]
            raise port.fault(f"{host}:{number}", error) from error
        self._listener.setblocking(False)  # noqa: FBT003 - the name of the argument is `flag`
        self._open = True
        self._resume()

    def close(self) -> None:
        """Take no more connections; those that are there stay."""
        if self._open:
            self._loop.remove_reader(self._listener)
            self._open = False
        self._listener.close()

    async def finish(self, seconds: float) -> None:
        """Let what is in work end, within so many seconds, and close everything."""
        for connection in tuple(self._connections.values()):
            if connection.transport is None:
                connection.end()
        self._server.pre_shutdown()
        await self._server.shutdown(seconds)

    def sweep(self) -> None:
        """End the connections that let a request's head be waited for too long."""
        now = self._loop.time()
        for connection in tuple(self._connections.values()):
            if connection.overdue(now):
                connection.end()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = self._connections.get(request.protocol)
        if connection is None:  # gone already
            return await self._handler(request)
        connection.begin()
        try:
            return await self._handler(request)
        finally:
            connection.rest(now=self._loop.time(), all_read=request.content.is_eof())

    def _resume(self) -> None:
        if self._open:
            self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                taken, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _FULL:
                    raise
                # The socket stays readable: without a pause this would be all that is done.
                self._make_much_room()
                self._loop.remove_reader(self._listener)
                self._loop.call_later(_FULL_SECONDS, self._resume)
                return
            taken.setblocking(False)  # noqa: FBT003 - the name of the argument is `flag`
            self._welcome(taken)

    def _welcome(self, taken: socket.socket) -> None:
        if len(self._connections) >= self._limit and not self._make_room():
            taken.close()
            return
        inner = self._server()
        connection = Connection(inner, taken, gone=self._gone)
        self._connections[inner] = connection
        self._observer.connected(len(self._connections))
        connection.handshake = self._loop.create_task(self._shake_hands(taken, connection))

    async def _shake_hands(self, taken: socket.socket, connection: Connection) -> None:
        context = self._identity()
        # asyncio closes the socket when this fails; a descriptor that is closed beside it could be
        # given to another connection while the loop still watches it.
        try:
            await self._loop.connect_accepted_socket(
                lambda: connection,
                taken,
                ssl=context,
                ssl_handshake_timeout=_HANDSHAKE_SECONDS if context else None,
            )
        except OSError as fault:  # what clients do wrong is no news
            self._gone(connection.inner)
            # asyncio's frames and this exception hold each other, and with them 256 KiB of buffers.
            traceback.clear_frames(fault.__traceback__)
        finally:
            connection.handshake = None

    def _make_room(self) -> bool:
        """End the connection that deserves its place least; tells whether there was one."""
        self._observer.shed("connections")
        idle = [item for item in self._connections.values() if not item.busy]
        if not idle:
            return False
        least = min(idle, key=lambda item: (item.served, item.since or item.rested))
        least.end()
        self._gone(least.inner)
        return True

    def _make_much_room(self) -> None:
        """End one connection, and more of those that were never useful: many may be waiting."""
        self._make_room()
        for connection in tuple(self._connections.values())[:_GIVEN_UP]:
            if not connection.served and not connection.busy:
                connection.end()

    def _gone(self, inner: web.RequestHandler) -> None:
        self._connections.pop(inner, None)
        self._observer.connected(len(self._connections))
