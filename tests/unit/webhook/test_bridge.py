"""The event loop in front of the application, with an application that can be held up."""

import asyncio
import http.client
import socket
import threading
import time

import pytest
from aiohttp import web

from tfadmit_webhook import bridge, wsgi
from tfadmit_webhook.settings import Server
from unit.webhook.live_server import ask


class Observer:
    def __init__(self):
        self.rejections, self.causes, self.count = [], [], 0

    def rejected(self, *, status, message, path):
        self.rejections.append((status, message, path))

    def shed(self, cause):
        self.causes.append(cause)

    def in_flight(self):
        return self

    def __enter__(self):
        self.count += 1

    def __exit__(self, *_):
        self.count -= 1


class Application:
    """Remembers what it was given; POSTs wait while `go` is cleared."""

    def __init__(self):
        self.environs, self.go, self.closed = [], threading.Event(), 0
        self.go.set()
        self.fault = None
        self.threads, self.later = [], False

    def __call__(self, environ, start_response):
        self.threads.append(threading.current_thread().name)
        if environ.get("at once") and self.later:
            environ["wsgi.input"].read()
            raise wsgi.LaterError
        environ["body"] = environ["wsgi.input"].read()
        self.environs.append(environ)
        if environ["REQUEST_METHOD"] == "POST":
            assert self.go.wait(5)
        if self.fault:
            raise self.fault
        start_response("201 Created", [("Content-Type", "text/x"), ("Content-Length", "3")])
        return self

    def __iter__(self):
        yield b"y"
        yield b"es"

    def close(self):
        self.closed += 1


class Drain:
    draining = False
    reviews = 0

    def review(self):
        self.reviews += 1


class Front:
    """A bridge behind plain HTTP, in a thread."""

    def __init__(self, *, at_once="", **limits):
        self.app, self.observer, self.drain = Application(), Observer(), Drain()
        self.loop = asyncio.new_event_loop()
        self.bridge = bridge.Bridge(
            self.app,
            server=Server(processes=1, **limits),
            observer=self.observer,
            drain=self.drain,
            keys=bridge.Keys(arrived="arrived", at_once=at_once),
            clock=lambda: 42.0,
        )
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.port = asyncio.run_coroutine_threadsafe(self._open(), self.loop).result(5)

    async def _open(self):
        self.protocol = web.Server(self.bridge, access_log=None)
        self.server = await self.loop.create_server(self.protocol, "127.0.0.1", 0)
        return self.server.sockets[0].getsockname()[1]

    async def _close(self):
        self.server.close()
        await self.protocol.shutdown(0.05)

    def stop(self):
        self.app.go.set()
        asyncio.run_coroutine_threadsafe(self._close(), self.loop).result(5)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
        self.bridge.close()

    def ask(self, method="POST", path="/", body=b"hello", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        return ask(connection, method, path, body if method == "POST" else None, **headers)

    def later(self, **request):
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.ask(**request)))
        thread.start()
        return thread, answers


@pytest.fixture
def start():
    fronts = []

    def make(**limits):
        fronts.append(Front(**limits))
        return fronts[-1]

    yield make
    for front in fronts:
        front.stop()


def until(condition):
    end = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_the_application_sees_the_request_as_wsgi_has_it(start):
    front = start()
    status, headers, text = front.ask(path="/a%2Fb%C3%A4?x=%201&x=2", **{"X-One": "1"})
    assert (status, text, headers["Content-Type"]) == (201, "yes", "text/x")
    (environ,) = front.app.environs
    expected = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/a/b\xc3\xa4",
        "QUERY_STRING": "x=%201&x=2",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": "5",
        "HTTP_X_ONE": "1",
        "wsgi.url_scheme": "https",
        "arrived": 42.0,
        "body": b"hello",
    }
    assert {name: environ[name] for name in expected} == expected
    assert front.app.closed == 1


def test_a_header_with_underscores_cannot_pose_as_another(start):
    front = start()
    front.ask(Content_Length="99", X_One="1")
    assert not [
        name for name in front.app.environs[0] if name.endswith(("_ONE", "CONTENT_LENGTH_"))
    ]
    assert front.app.environs[0]["CONTENT_LENGTH"] == "5"


def test_reviews_above_the_limit_are_sent_away_for_a_second(start):
    front = start(threads=1, max_in_flight=2)
    front.app.go.clear()
    waiting = [front.later() for _ in range(2)]
    until(lambda: front.observer.count == 2)  # one in work, one in the queue
    status, headers, text = front.ask()
    assert (status, headers["Retry-After"]) == (503, "1")
    assert front.observer.rejections == [(503, text.strip(), "/")]
    assert front.observer.causes == ["reviews"]
    front.app.go.set()
    for thread, answers in waiting:
        thread.join()
        assert answers[0][0] == 201
    assert front.ask()[0] == 201
    assert front.observer.count == 0


def test_probes_are_answered_while_every_thread_is_busy(start):
    front = start(threads=1, max_in_flight=9)
    front.app.go.clear()
    thread, _ = front.later()
    until(lambda: front.observer.count == 1)
    assert front.ask("GET", "/readyz")[0] == 201
    front.app.go.set()
    thread.join()


def test_a_body_that_is_announced_as_too_large_is_not_read(start):
    front = start(max_body_bytes=1000)
    front.ask(body=b"x" * 1001)
    (environ,) = front.app.environs
    assert (environ["CONTENT_LENGTH"], environ["body"]) == ("1001", b"")


def test_of_a_body_that_turns_out_too_large_no_more_is_read_than_shows_it(start):
    front = start(max_body_bytes=100_000)
    connection = http.client.HTTPConnection("127.0.0.1", front.port, timeout=5)
    pieces = (b"x" * 60_000 for _ in range(200))
    connection.request("POST", "/", pieces, {"Content-Type": "a/b"}, encode_chunked=True)
    assert connection.getresponse().read() == b"yes"
    connection.close()
    (environ,) = front.app.environs
    assert 100_000 < int(environ["CONTENT_LENGTH"]) == len(environ["body"]) < 3_000_000
    assert "HTTP_TRANSFER_ENCODING" not in environ


def test_a_body_that_does_not_come_is_not_waited_for(start, monkeypatch):
    monkeypatch.setattr(bridge, "BODY_SECONDS", 0.05)
    front = start()
    with socket.create_connection(("127.0.0.1", front.port), timeout=5) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
        assert client.recv(999).startswith(b"HTTP/1.1 408 ")
    assert not front.app.environs
    assert front.ask()[0] == 201


def test_memory_for_bodies_is_limited_and_given_back(start):
    large = b"x" * 100_000
    front = start(max_body_bytes=len(large), max_in_flight=50, threads=20)
    front.app.go.clear()
    waiting = [front.later(body=large) for _ in range(8)]
    until(lambda: front.observer.count == 8)
    status, headers, _ = front.ask(body=large)
    assert (status, headers["Retry-After"], front.observer.causes) == (503, "1", ["memory"])
    small, answers = front.later(body=b"x" * 50_000)
    until(lambda: front.observer.count == 9)  # reviews of pods are not kept out by large ones
    front.app.go.set()
    for thread, _ in [*waiting, (small, answers)]:
        thread.join()
    assert answers[0][0] == 201
    assert front.ask(body=large)[0] == 201
    assert front.bridge._held == 0


def test_a_client_that_leaves_frees_what_it_held(start):
    front, sent = start(), b"x" * 100_000
    with socket.create_connection(("127.0.0.1", front.port), timeout=5) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100001\r\n\r\n" + sent)
        until(lambda: front.bridge._held == len(sent) + 1)
    until(lambda: front.bridge._held == 0)


def test_a_fault_of_the_application_is_one_line_without_a_traceback(start, caplog):
    front = start()
    front.app.fault = ZeroDivisionError("secret")
    status, _, text = front.ask(Accept="text/html")
    assert (status, text) == (500, "tfadmit failed to answer; see its log\n")
    assert caplog.records[0].exc_info


def test_every_answer_of_a_server_that_ends_asks_for_a_new_connection(start):
    front = start()
    assert "Connection" not in front.ask()[1]
    front.drain.draining = True
    assert front.ask()[1]["Connection"] == "close"
    assert front.ask("GET", "/readyz")[1]["Connection"] == "close"


def test_reviews_count_as_traffic_and_probes_do_not(start):
    front = start()
    front.ask("GET", "/healthz")
    assert front.drain.reviews == 0
    front.ask()
    assert front.drain.reviews == 1


@pytest.fixture
def quick():
    front = Front(at_once="at once")
    yield front
    front.stop()


def test_an_application_that_need_not_wait_answers_in_the_loop(quick):
    assert quick.ask()[::2] == (201, "yes")
    assert quick.app.threads == [quick.thread.name]
    assert quick.app.environs[0]["body"] == b"hello"


def test_an_application_that_must_wait_is_asked_again_in_a_thread_with_the_whole_body(quick):
    quick.app.later = True
    assert quick.ask()[::2] == (201, "yes")
    first, second = quick.app.threads
    assert (first, second.startswith("review")) == (quick.thread.name, True)
    assert quick.app.environs[0]["body"] == b"hello"
    assert "at once" not in quick.app.environs[0]


def test_a_large_body_is_never_looked_at_in_the_loop(quick):
    assert quick.ask(body=b"x" * (64 * 1024 + 1))[0] == 201
    assert quick.app.threads[0].startswith("review")
