"""A small API server that has JobSets: both webhooks list and watch it through their own clients.

So both look up where they would in a cluster, in a cache that their watch fills.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from harness import loopback

_COLLECTION = "/apis/jobset.x-k8s.io/v1alpha2/jobsets"
_VERSION = "100"


@contextmanager
def serving(objects: Sequence[dict[str, Any]], *, directory: Path) -> Iterator[Path]:
    """Serve these objects until the context ends; gives a kubeconfig."""
    server = _Server(("127.0.0.1", 0), _Handler)
    for item in objects:
        item["metadata"]["resourceVersion"] = _VERSION
    server.items = {item["metadata"]["name"]: json.dumps(item).encode() for item in objects}
    with loopback.serving(server):
        try:
            yield _kubeconfig(directory / "kubeconfig", port=server.server_address[1])
        finally:
            server.ended.set()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    items: Mapping[str, bytes] = {}

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.ended = threading.Event()

    def page(self, query: Mapping[str, Sequence[str]]) -> bytes:
        """A page of the list; all of it for who takes any version, as from a watch cache."""
        items = list(self.items.values())
        start = int(query.get("continue", ["0"])[0])
        size = len(items)
        if query.get("resourceVersion") != ["0"]:
            size = int(query.get("limit", [str(size)])[0])
        more = f',"continue":"{start + size}"' if start + size < len(items) else ""
        head = '{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSetList",'
        head += f'"metadata":{{"resourceVersion":"{_VERSION}"{more}}},"items":['
        return head.encode() + b",".join(items[start : start + size]) + b"]}"


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        target = urlsplit(self.path)
        query = parse_qs(target.query)
        listed = target.path == _COLLECTION and "sendInitialEvents" not in query
        single = self.server.items.get(target.path.rpartition("/jobsets/")[2])
        self.send_response(200 if listed or single else 404)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        with contextlib.suppress(OSError):
            if listed and "watch" in query:
                self.wfile.flush()
                self.server.ended.wait()  # nothing changes
            else:
                self.wfile.write(self.server.page(query) if listed else single or b"{}")


def _kubeconfig(path: Path, *, port: int) -> Path:
    name = "bench"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": name, "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path.write_text(yaml.safe_dump(content))
    return path
