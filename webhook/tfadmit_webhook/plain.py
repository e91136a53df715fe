"""The plain HTTP port: metrics and probes, for whoever must not depend on a certificate.

A kubelet can ask here before there is a certificate to show. Reviews are not answered here.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from aiohttp import hdrs, web

from tfadmit_webhook import listen, wsgi
from tfadmit_webhook.bridge import NAME

_LOG = logging.getLogger("tfadmit.http")
# A kubelet and a few that collect metrics.
_CONNECTIONS = 64
_KEEP_ALIVE_SECONDS = 75


class Plain:
    """The handler of all requests, for `aiohttp.web.Server`."""

    def __init__(self, applications: Mapping[str, wsgi.Application]) -> None:
        """Args: `applications` is who answers, by path."""
        self._applications = applications
        # The page of metrics takes milliseconds that reviews should not wait.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="plain")

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        response = await self._answer(request)
        response.headers[hdrs.SERVER] = NAME
        return response

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        application = self._applications.get(request.path)
        if application is None:
            return web.Response(status=404, text=f"there is {', '.join(self._applications)}\n")
        if request.method not in (hdrs.METH_GET, hdrs.METH_HEAD):
            return web.Response(status=405, text="only GET\n", headers={hdrs.ALLOW: "GET, HEAD"})
        loop = asyncio.get_running_loop()
        status, headers, body = await loop.run_in_executor(
            self._pool, wsgi.call, application, wsgi.environ(request)
        )
        return web.Response(status=status, headers=headers, body=body)


def door(
    pages: Mapping[str, wsgi.Application], listener: socket.socket, ends: contextlib.ExitStack
) -> Callable[[], listen.Door]:
    """Give what makes the door of the port, in the loop; `ends` ends what is behind it."""
    front = Plain(pages)
    ends.callback(front.close)
    return lambda: listen.Door(
        listener,
        handler=front,
        limit=_CONNECTIONS,
        observer=_Uncounted(),
        logger=_LOG,
        keepalive_timeout=_KEEP_ALIVE_SECONDS,
    )


class _Uncounted:
    """The metrics of connections are about reviews."""

    def shed(self, cause: str) -> None:
        pass

    def connected(self, count: int) -> None:
        pass
