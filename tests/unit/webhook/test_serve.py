"""The real server: over TLS, as a process, with clients that misbehave."""

import contextlib
import json
import socket
import ssl
import threading
import time
import urllib.request

import pytest

import builders
from unit.webhook import fake_api, live_server

MEBIBYTE = 1024 * 1024


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return live_server.certificates(tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="module")
def server(directory):
    running = live_server.LiveServer(directory, objects=[builders.make_jobset()])
    yield running
    assert running.terminate() == 0
    assert not running.events("log"), "nothing but our own lines"
    assert not [line for line in running.lines if "traceback" in line]


@pytest.fixture
def fake(tmp_path):
    """A small API server, and the kubeconfig for it."""
    api = fake_api.FakeApi()
    api.start()
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": api.url}}],
    }
    api.kubeconfig = tmp_path / "kubeconfig"
    api.kubeconfig.write_text(json.dumps(config))
    yield api
    api.stop()


REVIEW = builders.body(builders.make_review(builders.make_pod(index=2)))


def http_request(body, *, path="/mutate/pods"):
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_a_pod_is_admitted(server):
    response = server.review(builders.make_pod(index=2), uid="over-the-wire")
    assert (response["uid"], response["allowed"]) == ("over-the-wire", True)
    line = server.event("decision", uid="over-the-wire")
    assert (line["reason"], line["namespace"]) == ("mutated", "team")


def test_a_connection_is_kept_for_the_next_review(server):
    connection = server.connect()
    for _ in range(3):
        connection.request("POST", "/mutate/pods", REVIEW, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert json.loads(answer.read())["response"]["allowed"]
        kept = connection.sock
        assert kept is not None
    connection.close()


def test_no_version_of_anything_is_told(server):
    _, headers, _ = server.get("/healthz")
    assert headers["Server"] == "tfadmit"


def test_probes_and_metrics_are_answered(server):
    assert server.get("/healthz")[::2] == (200, "ok\n")
    assert server.get("/readyz")[::2] == (200, "ok\n")
    server.review()
    with urllib.request.urlopen(server.metrics) as page:
        text = page.read().decode()
    assert 'tfadmit_admission_requests_total{decision="patched",dry_run="false",hook="mut' in text
    assert "tfadmit_in_flight 0.0" in text
    assert "_created" not in text


def test_only_post_is_a_review(server):
    status, headers, text = server.get("/mutate/pods")
    assert (status, headers["Allow"]) == (405, "POST")
    assert "<" not in text
    status, _, text = live_server.ask(server.connect(), "HEAD", "/mutate/pods")
    assert (status, text) == (405, "")


def send(server, body, *, chunked):
    """The status and text that come for a body, in one piece or in chunks without a length."""
    pieces = (body[start : start + 65536] for start in range(0, len(body), 65536))
    connection = server.connect()
    headers = {"Content-Type": "application/json"}
    if chunked:
        connection.request("POST", "/mutate/pods", pieces, headers, encode_chunked=True)
    else:
        connection.request("POST", "/mutate/pods", body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


@pytest.mark.parametrize("chunked", [False, True], ids=["with length", "chunked"])
def test_a_review_that_is_too_large_is_told_so(server, chunked):
    status, text = send(server, b" " * (9 * MEBIBYTE), chunked=chunked)
    assert (status, text.count("\n")) == (413, 1)
    assert server.review()["allowed"]


@pytest.mark.parametrize("chunked", [False, True], ids=["with length", "chunked"])
def test_a_large_review_is_read(server, chunked):
    status, text = send(server, REVIEW.ljust(7 * MEBIBYTE), chunked=chunked)
    assert (status, json.loads(text)["response"]["allowed"]) == (200, True)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415),
        ("Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", 400),
        ("Content-Type: application/json\r\n\r\n", 400),
        ("Content-Type: application/json\r\nContent-Type: a/b\r\nContent-Length: 0\r\n\r\n", 400),
        ("Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
        ("Content-Length: -1\r\n\r\n{}", 400),
        ("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400),
        ("Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (f"X-Long: {'x' * 9_000}\r\n\r\n", 400),
        ("Content-Type: application/json\r\nContent-Encoding: gzip\r\n\r\n", 415),
    ],
)
def test_a_request_that_is_wrong_gets_its_status_and_no_page(server, head, status):
    with server.socket() as connection:
        connection.sendall(f"POST /mutate/pods HTTP/1.1\r\nHost: x\r\n{head}".encode())
        answer = connection.recv(65536).decode()
    assert answer.split(maxsplit=2)[1] == str(status), answer
    assert "text/plain" in answer
    assert "Traceback" not in answer
    assert "<html" not in answer.lower()


def test_curl_s_wait_for_permission_is_granted(server):
    with server.socket() as connection:
        head, _, body = http_request(REVIEW).partition(b"\r\n\r\n")
        connection.sendall(head + b"\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        connection.sendall(body)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")


def test_clients_that_stay_silent_hold_up_nobody(server):
    """Connected only, in the middle of the handshake, after it, and in the middle of a review."""
    with contextlib.ExitStack() as clients:
        for _ in range(50):
            clients.enter_context(server.socket(tls=False))
            clients.enter_context(server.socket(tls=False)).sendall(b"\x16\x03")
            clients.enter_context(server.socket())
            clients.enter_context(server.socket()).sendall(http_request(REVIEW)[:300])
        began = time.monotonic()
        assert server.review()["allowed"]
        assert server.get("/readyz")[0] == 200
        assert time.monotonic() - began < 2


def test_two_hundred_slow_clients_at_once_all_get_their_answer(server):
    request, answers = http_request(REVIEW), []
    barrier = threading.Barrier(200, timeout=20)

    def slow():
        with server.socket(timeout=30) as connection:
            connection.sendall(request[:50])
            barrier.wait()  # all are connected, and none has sent its review
            for part in (request[50:300], request[300:]):
                time.sleep(0.2)
                connection.sendall(part)
            answers.append(connection.recv(65536)[:15])

    threads = [threading.Thread(target=slow) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [b"HTTP/1.1 200 OK"] * 200


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x00" * 99, b""])
def test_what_is_no_tls_is_closed_without_a_word_in_the_log(server, sent):
    known = len(server.lines)
    with server.socket(tls=False) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            assert b"HTTP" not in connection.recv(65536)
    assert server.review(uid=f"after {sent!r}")["allowed"]
    server.event("decision", uid=f"after {sent!r}")
    assert {line["event"] for line in server.lines[known:]} <= {"decision"}


def test_old_tls_is_refused(server):
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    plain = server.socket(tls=False)
    with plain, pytest.raises((ssl.SSLError, ConnectionError)):
        old.wrap_socket(plain)


def test_with_a_cluster_it_gets_ready_serves_and_ends_cleanly(directory, fake):
    fake.put()
    listed = threading.Event()
    fake.fail("list", 200, lambda handler: listed.wait(10) and handler.answer_list({}))
    running = live_server.LiveServer(directory, source=("--kubeconfig", fake.kubeconfig))
    with running.stopped_at_the_end():
        assert running.get("/readyz")[::2] == (503, "JobSets are not listed yet: asking\n")
        assert running.get("/healthz")[0] == 200
        listed.set()
        while running.get("/readyz")[0] != 200:
            time.sleep(0.01)
        assert running.review(builders.make_pod(index=1))["allowed"]
        assert not fake.questions("get"), "the watch knows it"
        with urllib.request.urlopen(running.metrics) as page:
            text = page.read().decode()
        assert "tfadmit_cache_objects 1.0" in text
        assert 'tfadmit_lookups_total{object="jobset",outcome="hit",source="cache"} 1.0' in text
        assert_sigterm_finishes_what_is_in_work(running, fake)


def assert_sigterm_finishes_what_is_in_work(running, fake):
    fake.slow.clear()
    answers = []
    pod = builders.make_pod(jobset="gone")
    client = threading.Thread(target=lambda: answers.append(running.review(pod)))
    client.start()
    while not fake.questions("get"):
        time.sleep(0.005)
    running.process.terminate()
    while not running.events("stopping"):
        time.sleep(0.005)
    with pytest.raises(ConnectionRefusedError):
        running.socket(tls=False, timeout=1).close()
    fake.slow.set()
    client.join()
    assert "JobSet team/gone does not exist" in answers[0]["status"]["message"]
    assert running.finish() == 0
    assert running.lines[-1]["event"] == "stopped"


def test_an_idle_connection_stays_open_longer_than_a_servers_usual_seconds(server):
    """An API server keeps 25 of them for 90 s, and does not ask again on one that was closed."""

    def healthy(connection):
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        answer.read()
        return answer.status == 200

    connection = server.connect()
    assert healthy(connection)
    time.sleep(6)  # Python's servers close after 2 or 5 s unless told otherwise
    assert healthy(connection)
    connection.close()
