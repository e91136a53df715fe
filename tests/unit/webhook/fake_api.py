"""A small API server that has JobSets: list in pages, watch, get, and faults on demand.

A get answers with any object of the name, whatever its kind.

For what a real API server cannot be made to do at will: 410, 403, a broken answer, silence.
"""

import contextlib
import json
import pathlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import builders

COLLECTION = "/apis/jobset.x-k8s.io/v1alpha2/jobsets"


class FakeApi:
    """The state, and the server that answers from it. `port` is fixed once it is known."""

    def __init__(self):
        self.changed = threading.Condition()
        self.objects, self.events, self.version, self.oldest = {}, [], 100, 0
        self.asked, self.paths = [], []
        self.faults = []  # (what, status, body) for the next question of that kind
        self.installed = True
        self.slow = threading.Event()  # cleared: answers to `get` wait
        self.slow.set()
        self.generation = 0  # watches of an older one end
        self.port = 0
        self.collections = {COLLECTION: self}  # others have a state of their own
        self.single = {}  # answers to `get`, by path
        self.kubeconfig: pathlib.Path | None = None

    def start(self):
        api = self

        class Handler(_Handler):
            server_fake = api

        self._server = _Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self):
        self.slow.set()
        for collection in self.collections.values():
            collection.end_watches()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def collection(self, path):
        """Another collection, empty, with a history of its own."""
        self.collections[path] = FakeApi()
        return self.collections[path]

    def put(self, name="mnist", **fields):
        return self.put_item(builders.make_jobset(name=name, **fields))

    def put_item(self, item):
        name = item["metadata"]["name"]
        with self.changed:
            self.version += 1
            item["metadata"]["resourceVersion"] = str(self.version)
            kind = "MODIFIED" if name in self.objects else "ADDED"
            self.objects[name] = item
            self.events.append((self.version, kind, item))
            self.changed.notify_all()
        return item

    def delete(self, name="mnist"):
        with self.changed:
            self.version += 1
            item = self.objects.pop(name)
            gone = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.version)}}
            self.events.append((self.version, "DELETED", gone))
            self.changed.notify_all()

    def say(self, kind, content, *, version=None):
        """Send any event, such as a bookmark or an error."""
        with self.changed:
            self.version += 1
            self.events.append((self.version if version is None else version, kind, content))
            self.changed.notify_all()

    def end_watches(self):
        with self.changed:
            self.generation += 1
            self.changed.notify_all()

    def fail(self, what, status, body=""):
        self.faults.append((what, status, body))

    def questions(self, what):
        return [query for kind, query in self.asked if kind == what]


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """Connections break on purpose here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5
    server_fake: FakeApi

    def log_message(self, *_):
        """Say nothing."""

    def do_GET(self):
        target = urlsplit(self.path)
        self.fake = fake = self.server_fake.collections.get(target.path, self.server_fake)
        query = {key: values[0] for key, values in parse_qs(target.query).items()}
        known = target.path in self.server_fake.collections
        what = "get" if not known else "watch" if "watch" in query else "list"
        self.generation = fake.generation
        fake.asked.append((what, query))
        fake.paths.append(target.path)
        # Kept-alive connections would hold up the end of a test.
        self.close_connection = True
        for fault in fake.faults:
            if fault[0] == what:
                fake.faults.remove(fault)
                return self.answer(fault[1], fault[2])
        if not fake.installed:
            return self.answer(404, "404 page not found")
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            getattr(self, f"answer_{what}")(query)
        return None

    def answer(self, status, content):
        if callable(content):
            return content(self)
        body = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        return None

    def answer_get(self, _query):
        path = urlsplit(self.path).path
        found = self.fake.single.get(path) or self.fake.objects.get(path.rsplit("/", 1)[1])
        self.fake.slow.wait(5)
        if found:
            self.answer(200, found)
        else:
            self.answer(404, {"kind": "Status", "message": "not found", "code": 404})

    def answer_list(self, query):
        items = list(self.fake.objects.values())
        start, limit = int(query.get("continue", 0)), int(query.get("limit", 10_000))
        metadata = {"resourceVersion": str(self.fake.version)}
        if start + limit < len(items):
            metadata["continue"] = str(start + limit)
        self.answer(200, {"metadata": metadata, "items": items[start : start + limit]})

    def answer_watch(self, query):
        fake, version = self.fake, int(query["resourceVersion"])
        if version < fake.oldest:
            self.answer(410, {"kind": "Status", "message": "too old", "code": 410})
            return
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        end, sent = time.monotonic() + 5, version
        while time.monotonic() < end:
            with fake.changed:
                new = [event for event in fake.events if event[0] > sent]
                if not new and fake.generation != self.generation:
                    break
                if not new:
                    fake.changed.wait(0.5)
                    continue
            for event_version, kind, content in new:
                line = json.dumps({"type": kind, "object": content}).encode() + b"\n"
                # In two chunks: an event may be cut anywhere.
                for part in (line[:7], line[7:]):
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                sent = max(sent, event_version)
        self.wfile.write(b"0\r\n\r\n")
