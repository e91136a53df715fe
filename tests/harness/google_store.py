"""What Google Cloud Storage is to its clients, in front of the tests' S3 server.

Its XML API nearly is S3's. What differs is here: who may ask (self-signed tokens of service
accounts, AIP-4111, and tokens of the metadata server), names of headers, one change of an object a
second, and gzip that is undone on the way. The objects lie in the S3 server, which is real.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import secrets
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import google_accounts, loopback, object_store, signature_v4

_CHUNK = 64 * 1024
_TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"
# As S3 calls them; what else begins with x-goog- is refused, so that nothing is passed by.
_RENAMED = {"x-goog-copy-source": "x-amz-copy-source"}
_PASSED = ("range", "if-match", "content-type", "content-encoding")
_ANSWERED = ("content-length", "content-range", "content-type", "content-encoding", "etag",
             "last-modified")  # fmt: skip
_WORDS = {
    "AuthenticationRequired": (401, "Authentication required."),
    "AccessDenied": (403, "Access denied."),
    "SlowDown": (429, "Please reduce your request rate."),
    "InvalidArgument": (400, "Invalid argument."),
}
# https://docs.cloud.google.com/storage/quotas: writes to the same object name.
_CHANGE_SECONDS = 1.0
# Larger objects that are stored with gzip come without a length, whatever is asked for.
_GZIP_WITH_LENGTH = 8 * 1024 * 1024


@dataclass(kw_only=True)
class GoogleStore:
    """The running gateway."""

    port: int
    behind: object_store.ObjectStore
    trainer: google_accounts.Account
    """A service account that may do everything."""
    metadata_token: str
    """What the metadata server gives to pods; empty where there is none."""
    public: set[str] = field(default_factory=set)
    """Buckets that everybody may read, without a token."""
    strangers: set[str] = field(default_factory=set)
    """Tokens of the metadata server that open nothing."""
    refused: list[str] = field(default_factory=list)
    """The codes of all refusals, in their order."""
    meetings: dict[str, threading.Barrier] = field(default_factory=dict)
    """Where requests wait for each other: `upload` to a place of staging, `copy`, `delete`."""
    changed: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def host(self) -> str:
        """Where it is, as `GCE_METADATA_HOST` has it."""
        return f"127.0.0.1:{self.port}"

    def environ(self, *, port: int | None = None, **more: str) -> dict[str, str]:
        """What a client has in its environment, to ask it directly or by another port."""
        return {
            "GOOGLE_SERVICE_ACCOUNT_KEY": self.trainer.key,
            "GOOGLE_BASE_URL": f"http://127.0.0.1:{port or self.port}",
            **more,
        }

    def too_soon(self, key: str) -> bool:
        """Whether an object was changed less than a second ago; else it is now."""
        with self.lock:
            now = time.monotonic()
            soon = now - self.changed.get(key, -_CHANGE_SECONDS) < _CHANGE_SECONDS
            if not soon:
                self.changed[key] = now
            return soon


@contextlib.contextmanager
def running(behind: object_store.ObjectStore) -> Iterator[GoogleStore]:
    """A gateway to an S3 server, ended afterwards."""
    store = GoogleStore(
        port=loopback.free_port(),
        behind=behind,
        trainer=google_accounts.account("trainer"),
        metadata_token=f"ya29.{secrets.token_urlsafe()}",
    )
    server = ThreadingHTTPServer(("127.0.0.1", store.port), _handler(store))
    server.daemon_threads = True
    with loopback.serving(server):
        yield store


def _handler(known: GoogleStore) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        store = known

    return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: GoogleStore

    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""

    def do_GET(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def _serve(self) -> None:
        # A client that was killed, or that had enough.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._judge()

    def _judge(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urllib.parse.urlsplit(self.path)
        if parts.path == _TOKEN:
            self._token()
        elif code := self._refusal(urllib.parse.unquote(parts.path), parts.query):
            self.store.refused.append(code)
            self._answer(*_error(code))
        else:
            self._ask(body, path=urllib.parse.unquote(parts.path), query=parts.query)

    def _token(self) -> None:
        if not self.store.metadata_token or self.headers.get("Metadata-Flavor") != "Google":
            self._answer(404, b"{}")
            return
        told = {
            "access_token": self.store.metadata_token,
            "expires_in": 3599,
            "token_type": "Bearer",
        }
        self._answer(200, json.dumps(told).encode())

    def _refusal(self, path: str, query: str) -> str:
        bearer = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if not bearer:
            open_to_all = self.command == "GET" and path.split("/")[1] in self.store.public
            return "" if open_to_all else "AccessDenied"
        if bearer in self.store.strangers:
            return "AccessDenied"
        if bearer != self.store.metadata_token:
            if not (who := google_accounts.who(bearer)):
                return "AuthenticationRequired"
            if who != self.store.trainer.email:
                return "AccessDenied"
        foreign = [name.lower() for name in self.headers if name.lower().startswith("x-")]
        if set(foreign) - {*_RENAMED}:
            return "InvalidArgument"
        changes = self.command in ("PUT", "DELETE") and not query
        return "SlowDown" if changes and self.store.too_soon(path) else ""

    def _meet(self, path: str) -> None:
        kind = "copy" if "x-goog-copy-source" in self.headers else self.command.lower()
        if kind == "put" and "/.staging/" in path:
            kind = "upload"
        if meeting := self.store.meetings.get(kind):
            meeting.wait(timeout=30)

    def _ask(self, body: bytes, *, path: str, query: str) -> None:
        self._meet(path)
        behind = self.store.behind
        pairs = urllib.parse.parse_qsl(query, keep_blank_values=True)
        target = signature_v4.path(path) + (f"?{signature_v4.query(pairs)}" if pairs else "")
        more = {name: self.headers[name] for name in _PASSED if name in self.headers}
        more |= {new: self.headers[old] for old, new in _RENAMED.items() if old in self.headers}
        signed = signature_v4.headers(
            self.command,
            target,
            host=f"{behind.host}:{behind.port}",
            access_key=behind.access_key,
            secret_key=behind.secret_key,
            body=body,
            more=more,
        )
        asking = http.client.HTTPConnection(behind.host, behind.port, timeout=60)
        with contextlib.closing(asking):
            asking.request(self.command, target, body=body, headers=signed)
            self._pass_on(asking.getresponse())

    def _pass_on(self, answer: http.client.HTTPResponse) -> None:
        found = {name: answer.headers[name] for name in _ANSWERED if name in answer.headers}
        if self.command == "GET" and found.get("content-encoding") == "gzip":
            self._gzip(found, answer.read())
            return
        self.send_response(answer.status)
        for name, value in found.items():
            self.send_header(name, value)
        if "content-length" not in found:
            self.send_header("Content-Length", "0" if answer.status == 204 else str(answer.length))
        self.end_headers()
        while chunk := answer.read(_CHUNK):
            self.wfile.write(chunk)

    def _gzip(self, found: Mapping[str, str], content: bytes) -> None:
        """Answer as Google does for what is stored with gzip: undone, and without a length."""
        raw = "gzip" in (self.headers.get("Accept-Encoding") or "")
        if raw and len(content) < _GZIP_WITH_LENGTH:
            self._answer(200, content, found)
            return
        self.send_response(200)
        for name in ("etag", "last-modified", *(["content-encoding"] if raw else [])):
            self.send_header(name, found[name])
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        plain = content if raw else gzip.decompress(content)
        self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(plain), plain))

    def _answer(self, status: int, body: bytes, more: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(more or {}), "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _error(code: str) -> tuple[int, bytes]:
    status, message = _WORDS[code]
    text = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code>"
    return status, f"{text}<Message>{message}</Message></Error>".encode()
