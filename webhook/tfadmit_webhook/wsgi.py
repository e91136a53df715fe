"""An HTTP request as a WSGI application sees it, and its answer (PEP 3333).

Plain translation: no limits, no threads. `bridge` and `plain` decide when an application is asked.
"""

import io
import sys
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote_to_bytes

from aiohttp import web

# The body has arrived as a whole: how it was framed means nothing any more, and would mislead.
_FRAMING = frozenset(("content-length", "transfer-encoding"))

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Answer = tuple[int, list[tuple[str, str]], bytes]


class LaterError(Exception):
    """An application that was asked for an answer at once would have to wait for it."""


def environ(request: web.BaseRequest, body: bytes = b"") -> dict[str, Any]:
    """Describe a request as PEP 3333 does; CGI names, bytes as Latin-1."""
    target = request.rel_url
    declared = request.content_length or 0
    values: dict[str, Any] = {
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
            values["CONTENT_TYPE"] = value
        elif name not in _FRAMING and "_" not in name:
            values[f"HTTP_{name.upper().replace('-', '_')}"] = value
    return values


def call(application: Application, values: dict[str, Any]) -> Answer:
    """Run the application to its end, in a thread."""
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], _exc_info: object = None
    ) -> None:
        started.append((status, headers))

    chunks = application(values, start_response)
    try:
        body = b"".join(chunks)
    finally:
        if close := getattr(chunks, "close", None):
            close()
    status, headers = started[-1]
    # aiohttp counts for itself.
    kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
    return int(status.split()[0]), kept, body
