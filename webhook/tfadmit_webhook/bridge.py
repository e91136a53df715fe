"""From HTTP connections to the WSGI application: an event loop in front, threads behind.

The loop takes handshakes, headers and bodies, so that a slow or silent client costs a socket and
never a thread. A review whose body is complete is handed to the application: in the loop when that
can answer at once, which is cheaper than a change of threads, else in a thread. Probes have a
thread of their own and are answered while all others wait for the API server. Nothing here knows
what a review is: the application refuses what is wrong with a request. Connections are
counted and ended in `listen`.
"""

import asyncio
import io
import logging
import time
from collections.abc import Callable, Collection
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import hdrs, web

from tfadmit_webhook import tls, wsgi
from tfadmit_webhook.settings import Server

_LOG = logging.getLogger("tfadmit")
NAME = "tfadmit"  # in place of the versions of Python and aiohttp
# An API server sends a review at once; whoever takes longer is no API server.
BODY_SECONDS = 10.0
# Large bodies held at the same time by all processes, in units of the largest. Parsed they take
# eight times as much or more, and a pod of the shipped manifests has 1 GiB.
_MAX_BODIES_HELD = 8
# Bodies up to here are not counted: pods have 4 to 30 KB, and whoever sends large ones slowly must
# not keep them out. As many as there may be connections are 64 MiB. Only these are answered in the
# loop: they take tenths of a millisecond, and a large one would hold up everybody.
_SMALL_BODY = 64 * 1024


class Observer(Protocol):
    """Who is told what happens before the application is asked."""

    def rejected(self, *, status: int, message: str, path: str) -> None:
        """Take note of a request that did not reach the application."""

    def shed(self, cause: str) -> None:
        """Take note of what was sent away because there was too much of it."""

    def in_flight(self) -> AbstractContextManager[None]:
        """Count a review as long as the context lasts."""


class Drain(Protocol):
    """What is known about the end of the server."""

    @property
    def draining(self) -> bool:
        """Whether each answer must ask for its connection to be closed."""

    def review(self) -> None:
        """Take note that a review came."""


@dataclass(frozen=True, kw_only=True)
class Clients:
    """Who may send reviews; the CA has been verified by TLS."""

    names: Collection[str] = ()
    """Common names of their certificates; every name when there are none."""

    def refusal(self, peer: dict[str, Any] | None) -> str:
        """Say why a client is none of them; empty when it is."""
        if not peer:
            return "reviews take a client certificate of the CA in --client-ca"
        name = tls.common_name(peer)
        if self.names and name not in self.names:
            return f"a client certificate of {name!r} may not send reviews"
        return ""


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Keys of the WSGI environ by which the application is told more than the request."""

    arrived: str
    """When the request came."""

    at_once: str = ""
    """True when it must not wait; empty for one that does not know of this."""


class _Refusal(Exception):  # noqa: N818 - an answer that is carried upwards
    def __init__(self, status: int, message: str, *, cause: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.cause = cause


class Bridge:
    """The handler of all requests, for `aiohttp.web.Server`."""

    def __init__(
        self,
        application: wsgi.Application,
        *,
        server: Server,
        observer: Observer,
        drain: Drain,
        keys: Keys,
        clients: Clients | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Put the bridge in front of an application.

        Args:
            application: who answers.
            server: the limits.
            observer: is told of what is refused here.
            drain: is told of reviews, and says when connections are to be closed.
            keys: what the application wants to know beside the request.
            clients: who may send reviews; None lets everybody who reaches the port.
            clock: the application's clock.
        """
        self._application = application
        self._server = server
        self._observer = observer
        self._drain = drain
        self._keys = keys
        self._clients = clients
        self._clock = clock
        self._reviews = ThreadPoolExecutor(server.threads, thread_name_prefix="review")
        self._probes = ThreadPoolExecutor(1, thread_name_prefix="probe")
        # Only the loop's thread touches these two.
        self._in_flight = 0
        self._held = 0

    def close(self) -> None:
        """End the threads; those that work are waited for."""
        self._reviews.shutdown()
        self._probes.shutdown()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        try:
            response = await self._answer(request)
        except _Refusal as refusal:
            response = self._refused(request, refusal)
        except Exception:  # noqa: BLE001 - a client sees no traceback and no HTML
            _LOG.exception("fault outside of the application", extra={"fields": {}})
            response = web.Response(status=500, text="tfadmit failed to answer; see its log\n")
        response.headers[hdrs.SERVER] = NAME
        if self._drain.draining:
            # The next connection of this client may lead to another server.
            response.force_close()
        return response

    def _refused(self, request: web.BaseRequest, refusal: _Refusal) -> web.Response:
        message = str(refusal)
        self._observer.rejected(status=refusal.status, message=message, path=request.path)
        if refusal.cause:
            self._observer.shed(refusal.cause)
        response = web.Response(status=refusal.status, text=f"{message}\n")
        if refusal.status == 503:
            response.headers[hdrs.RETRY_AFTER] = "1"
        return response

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        arrived = self._clock()
        if request.method != hdrs.METH_POST:
            return await self._run(self._probes, wsgi.environ(request))
        self._check_client(request)
        self._drain.review()
        body = _Body()
        try:
            await self._receive(request, body)
            environ = wsgi.environ(request, body.content.getvalue())
            environ[self._keys.arrived] = arrived
            if answer := self._answer_at_once(environ, size=body.content.tell()):
                return answer
            # Judged only now: who is slow to send must not take the place of others.
            if self._in_flight >= self._server.max_in_flight:
                raise _Refusal(503, "too many reviews at once; ask again", cause="reviews")
            self._in_flight += 1
            try:
                with self._observer.in_flight():
                    return await self._run(self._reviews, environ)
            finally:
                self._in_flight -= 1
        finally:
            self._held -= body.counted

    def _check_client(self, request: web.BaseRequest) -> None:
        if self._clients is None:
            return
        peer = request.transport.get_extra_info("peercert") if request.transport else None
        if why := self._clients.refusal(peer):
            raise _Refusal(403, why)

    async def _receive(self, request: web.BaseRequest, body: "_Body") -> None:
        if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        announced, small = request.content_length, min(_SMALL_BODY, self._server.max_body_bytes)
        if announced is not None and announced <= small and request.content.is_eof():
            # It came with the head, as most do: nothing to wait for, and no time limit to set up.
            body.content.write(request.content.read_nowait())
            return
        try:
            await asyncio.wait_for(self._read(request, body), BODY_SECONDS)
        except asyncio.TimeoutError as error:
            raise _Refusal(408, f"the body did not arrive in {BODY_SECONDS:.0f} s") from error
        except (web.RequestPayloadError, ConnectionError) as error:
            raise _Refusal(400, "the body broke off or is malformed") from error

    async def _read(self, request: web.BaseRequest, body: "_Body") -> None:
        """Read until it is clear that the body is too large; the application then refuses it."""
        limit, announced = self._server.max_body_bytes, request.content_length or 0
        if announced > limit:
            return
        # As a whole before the first byte: or all would come half, and none be answered.
        self._hold(body, announced)
        while body.content.tell() <= limit and (chunk := await request.content.readany()):
            body.content.write(chunk)
            self._hold(body, body.content.tell())

    def _hold(self, body: "_Body", size: int) -> None:
        """Count a body, if it is large, as having at least this size."""
        if size <= max(_SMALL_BODY, body.counted):
            return
        self._held += size - body.counted
        body.counted = size
        share = max(1, _MAX_BODIES_HELD // self._server.processes)
        if self._held > share * self._server.max_body_bytes:
            raise _Refusal(503, "too many large bodies at once; ask again", cause="memory")

    def _answer_at_once(self, environ: dict[str, Any], *, size: int) -> web.Response | None:
        """Let the application answer in the loop, if it can; the body stays for a second try."""
        if not self._keys.at_once or size > _SMALL_BODY:
            return None
        environ[self._keys.at_once] = True
        try:
            return _response(wsgi.call(self._application, environ))
        except wsgi.LaterError:
            del environ[self._keys.at_once]
            environ["wsgi.input"].seek(0)
            return None

    async def _run(self, pool: Executor, environ: dict[str, Any]) -> web.Response:
        loop = asyncio.get_running_loop()
        return _response(await loop.run_in_executor(pool, wsgi.call, self._application, environ))


def _response(answer: wsgi.Answer) -> web.Response:
    status, headers, body = answer
    return web.Response(status=status, headers=headers, body=body)


class _Body:
    """A body on its way, and how much of it is counted among the large ones."""

    def __init__(self) -> None:
        self.content = io.BytesIO()
        self.counted = 0
