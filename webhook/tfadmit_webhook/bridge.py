"""From HTTP connections to the WSGI application: an event loop in front, threads behind.

The loop takes handshakes, headers and bodies, so that a slow or silent client costs a socket and
never a thread. A review whose body is complete is handed to the application in a thread; probes
have a thread of their own and are answered while all others wait for the API server. Nothing here
knows what a review is: the application refuses what is wrong with a request.
"""

import asyncio
import io
import logging
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, Protocol
from urllib.parse import unquote_to_bytes

from aiohttp import hdrs, web

from tfadmit_webhook.settings import Server

_LOG = logging.getLogger("tfadmit")
_NAME = "tfadmit"  # in place of the versions of Python and aiohttp
# An API server sends a review at once; whoever takes longer is no API server.
BODY_SECONDS = 10.0
# Bodies held at the same time, in units of the largest. Parsed they take eight times as much or
# more, and a pod of the shipped manifests has 1 GiB.
_MAX_BODIES_HELD = 8

# The body has arrived as a whole: how it was framed means nothing any more, and would mislead.
_FRAMING = frozenset(("content-length", "transfer-encoding"))

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
_Answer = tuple[int, list[tuple[str, str]], bytes]


class Observer(Protocol):
    """Who is told what happens before the application is asked."""

    def rejected(self, *, status: int, message: str, path: str) -> None:
        """Take note of a request that did not reach the application."""

    def in_flight(self) -> AbstractContextManager[None]:
        """Count a review as long as the context lasts."""


class _Refusal(Exception):  # noqa: N818 - an answer that is carried upwards
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Bridge:
    """The handler of all requests, for `aiohttp.web.Server`."""

    def __init__(
        self,
        application: Application,
        *,
        server: Server,
        observer: Observer,
        arrived: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args: `arrived` is the environ key that tells the application when a request came."""
        self._application = application
        self._server = server
        self._observer = observer
        self._arrived = arrived
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
            message = str(refusal)
            self._observer.rejected(status=refusal.status, message=message, path=request.path)
            response = web.Response(status=refusal.status, text=f"{message}\n")
            if refusal.status == 503:
                response.headers[hdrs.RETRY_AFTER] = "1"
        except Exception:  # noqa: BLE001 - a client sees no traceback and no HTML
            _LOG.exception("fault outside of the application", extra={"fields": {}})
            response = web.Response(status=500, text="tfadmit failed to answer; see its log\n")
        response.headers[hdrs.SERVER] = _NAME
        return response

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        arrived = self._clock()
        if request.method != hdrs.METH_POST:
            return await self._run(self._probes, _environ(request, b""), arrived)
        body = io.BytesIO()
        try:
            await self._receive(request, body)
            # Judged only now: who is slow to send must not take the place of others.
            if self._in_flight >= self._server.max_in_flight:
                raise _Refusal(503, "too many reviews at once; ask again")
            self._in_flight += 1
            try:
                with self._observer.in_flight():
                    environ = _environ(request, body.getvalue())
                    return await self._run(self._reviews, environ, arrived)
            finally:
                self._in_flight -= 1
        finally:
            self._held -= body.tell()

    async def _receive(self, request: web.BaseRequest, body: io.BytesIO) -> None:
        if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0
        try:
            await asyncio.wait_for(self._read(request, body), BODY_SECONDS)
        except asyncio.TimeoutError as error:
            raise _Refusal(408, f"the body did not arrive in {BODY_SECONDS:.0f} s") from error
        except (web.RequestPayloadError, ConnectionError) as error:
            raise _Refusal(400, "the body broke off or is malformed") from error

    async def _read(self, request: web.BaseRequest, body: io.BytesIO) -> None:
        """Read until it is clear that the body is too large; the application then refuses it."""
        limit = self._server.max_body_bytes
        if (request.content_length or 0) > limit:
            return
        while body.tell() <= limit and (chunk := await request.content.readany()):
            if self._held + len(chunk) > _MAX_BODIES_HELD * limit:
                raise _Refusal(503, "too many large bodies at once; ask again")
            self._held += len(chunk)
            body.write(chunk)

    async def _run(self, pool: Executor, environ: dict[str, Any], arrived: float) -> web.Response:
        environ[self._arrived] = arrived
        loop = asyncio.get_running_loop()
        status, headers, body = await loop.run_in_executor(pool, _call, self._application, environ)
        return web.Response(status=status, headers=headers, body=body)


def _environ(request: web.BaseRequest, body: bytes) -> dict[str, Any]:
    """Describe a request as PEP 3333 does; CGI names, bytes as Latin-1."""
    target = request.rel_url
    declared = request.content_length or 0
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(target.raw_path).decode("latin-1"),
        "QUERY_STRING": target.raw_query_string,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "443",
        "SERVER_PROTOCOL": f"HTTP/{request.version.major}.{request.version.minor}",
        "REMOTE_ADDR": request.remote or "",
        # A body that was not read because of its declared length is refused for that length.
        "CONTENT_LENGTH": str(max(declared, len(body))),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name in set(map(str.lower, request.headers)):
        # Two headers of one name become one value, which then is no content type any more.
        value = ",".join(request.headers.getall(name))
        if name == "content-type":
            environ["CONTENT_TYPE"] = value
        elif name not in _FRAMING and "_" not in name:
            environ[f"HTTP_{name.upper().replace('-', '_')}"] = value
    return environ


def _call(application: Application, environ: dict[str, Any]) -> _Answer:
    """Run the application to its end, in a thread."""
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], _exc_info: object = None
    ) -> None:
        started.append((status, headers))

    chunks = application(environ, start_response)
    try:
        body = b"".join(chunks)
    finally:
        if close := getattr(chunks, "close", None):
            close()
    status, headers = started[-1]
    # aiohttp counts for itself.
    kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
    return int(status.split()[0]), kept, body
