"""Taking connections: how many there may be, how long one may say nothing, and which gives way.

Whoever reaches the port can open connections. Each gets a time for its handshake and for the head
of each request, and when there are as many as may be, the one that has said nothing useful for
longest gives way to the newcomer. Requests are answered in `bridge` and `plain`.
"""

import asyncio
import contextlib
import errno
import resource
import socket
import ssl
import traceback
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, cast

from aiohttp import web

# As the API server's client: it gives up a handshake after 10 s. The same for a request's head,
# which it sends in one piece.
_HANDSHAKE_SECONDS = 10.0
HEAD_SECONDS = 10.0
# aiohttp bounds a head to 128 lines of 8 KiB; the rest is what may come in one piece behind it.
_HEAD_BYTES = (1024 + 256) * 1024
# A burst of pods opens hundreds of connections at once; the kernel cuts this at somaxconn.
_BACKLOG = 1024
# Taken at one go before others get their turn.
_AT_ONCE = 64
# How long to wait when the system gives no more descriptors.
_FULL_SECONDS = 0.1
_FULL = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
# Each costs 256 KiB while it lasts (asyncio's buffer for TLS). Three API servers keep 25 each and
# open hundreds in a burst.
_LEAST_CONNECTIONS = 1024
# Descriptors for everything but connections: files, the API server, the other port.
_OTHER_FILES = 128

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class ListenError(Exception):
    """An address cannot be listened on; the message says which and why."""


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
        self._connections: dict[web.RequestHandler, _Connection] = {}
        self._open = False

    def open(self) -> None:
        """Take connections from now on."""
        try:
            self._listener.listen(_BACKLOG)
        except OSError as error:  # two may bind a port, and one of them may listen
            host, port = self._listener.getsockname()[:2]
            raise _fault(f"{host}:{port}", error) from error
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
        connection = _Connection(inner, taken, gone=self._gone)
        self._connections[inner] = connection
        self._observer.connected(len(self._connections))
        connection.handshake = self._loop.create_task(self._shake_hands(taken, connection))

    async def _shake_hands(self, taken: socket.socket, connection: "_Connection") -> None:
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
        for connection in tuple(self._connections.values())[:_AT_ONCE]:
            if not connection.served and not connection.busy:
                connection.end()

    def _gone(self, inner: web.RequestHandler) -> None:
        self._connections.pop(inner, None)
        self._observer.connected(len(self._connections))


class _Connection(asyncio.Protocol):
    """One connection: aiohttp's protocol, and what is known about the client's diligence."""

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
        self.transport = cast("asyncio.Transport", transport)  # that of a stream
        self.since = asyncio.get_running_loop().time()
        self.inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self.busy and not self._lingers:
            if self.since is None:
                self.since = asyncio.get_running_loop().time()
            self._bytes += len(data)
            if self._bytes > _HEAD_BYTES:
                self.end()
                return
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        self.inner.eof_received()
        return None

    def connection_lost(self, exc: BaseException | None) -> None:
        self.inner.connection_lost(exc)
        self._gone(self.inner)
        self.transport = None  # which holds us

    def pause_writing(self) -> None:
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        self.inner.resume_writing()


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
            listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise _fault(f"{host}:{port}{what}", error) from error
    return listener


def _fault(where: str, error: OSError) -> ListenError:
    return ListenError(f"cannot listen on {where}: {error.strerror or error}")


def most_connections(*, in_flight: int) -> int:
    """Give how many connections there may be, with as many descriptors as the system allows.

    As many as reviews in work, and as many again that idle or are about to be sent away.
    """
    wanted = max(_LEAST_CONNECTIONS, 2 * in_flight)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = wanted + _OTHER_FILES
    if soft < files:
        soft = files if hard == resource.RLIM_INFINITY else min(files, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(1, min(wanted, soft - _OTHER_FILES))
