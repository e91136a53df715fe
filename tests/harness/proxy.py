"""An HTTP proxy as companies have them: the only way out, and it knows what was asked."""

from __future__ import annotations

import contextlib
import http.client
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import loopback


@dataclass(kw_only=True)
class Proxy:
    """The running proxy."""

    port: int
    leads: dict[str, int]
    """The ports of this machine behind the names of hosts, which nobody else knows."""
    asked: list[str] = field(default_factory=list)
    """The hosts of all requests, in their order."""

    @property
    def url(self) -> str:
        """What `HTTP_PROXY` has."""
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def running(**leads: int) -> Iterator[Proxy]:
    """A proxy that knows these hosts, ended afterwards."""
    made = Proxy(port=loopback.free_port(), leads=leads)

    class Handler(_Handler):
        proxy = made

    server = ThreadingHTTPServer(("127.0.0.1", made.port), Handler)
    server.daemon_threads = True
    with loopback.serving(server):
        yield made


class _Handler(BaseHTTPRequestHandler):
    proxy: Proxy

    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""

    def do_GET(self) -> None:
        parts = urllib.parse.urlsplit(self.path)
        self.proxy.asked.append(parts.hostname or "")
        target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asking = http.client.HTTPConnection("127.0.0.1", self.proxy.leads[parts.hostname or ""])
        with contextlib.closing(asking):
            asking.putrequest(self.command, target, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                asking.putheader(name, value)
            asking.endheaders(body or None)
            answer = asking.getresponse()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.read())

    def do_PUT(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()
