"""How the real server ends: what it answers meanwhile, and that no signal is lost."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

import builders
from unit.webhook import live_server

REVIEW = builders.body(builders.make_review(builders.make_pod(index=2)))
HEADERS = {"Content-Type": "application/json"}
DRAINING = {"server": {"drainSeconds": 1.5, "drainQuietSeconds": 1, "drainLimitSeconds": 4}}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return live_server.certificates(tmp_path_factory.mktemp("drain"))


@pytest.fixture
def start(directory):
    """Starts servers; none is left at the end."""
    running = []

    def make(**options):
        options = {"objects": [builders.make_jobset()], "settings": DRAINING} | options
        running.append(live_server.LiveServer(directory, **options))
        return running[-1]

    yield make
    for server in running:
        with server.stopped_at_the_end():
            pass


def post(connection):
    connection.request("POST", "/mutate/pods", REVIEW, HEADERS)
    answer = connection.getresponse()
    assert json.loads(answer.read())["response"]["allowed"]
    return answer.headers.get("Connection")


def drained(server):
    """The seconds from the signal to the end of listening."""
    (began,), (ended,) = server.events("draining"), server.events("stopping")
    return seconds(ended) - seconds(began)


def seconds(line):
    hours, minutes, rest = line["time"].split("T")[1].rstrip("Z").split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(rest)


def until(condition, *, limit=15):
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_after_sigterm_it_is_not_ready_and_still_answers_whoever_comes(start):
    server = start()
    kept = server.connect()
    assert post(kept) is None
    server.process.terminate()
    until(lambda: server.plain("/readyz") == (503, "the server is ending\n"))
    assert server.metric("tfadmit_draining") == 1
    assert server.plain("/healthz") == (200, "ok\n"), "a restart would not help"
    assert post(kept) == "close"
    assert post(kept) == "close", "on a new connection"
    kept.close()
    assert server.finish() == 0
    assert [line["event"] for line in server.lines[-2:]] == ["stopping", "stopped"]


def test_it_listens_until_no_review_came_for_a_while_and_probes_do_not_count(start):
    server = start(settings={"server": {**DRAINING["server"], "drainLimitSeconds": 60}})
    server.process.terminate()
    until(lambda: server.events("draining"))
    for _ in range(8):  # reviews for longer than the minimum and the quiet time
        server.review()
        time.sleep(0.4)
    assert not server.events("stopping")
    stopped = threading.Event()

    def probe():
        while not stopped.is_set():
            server.plain("/readyz")
            time.sleep(0.05)

    thread = threading.Thread(target=probe)
    thread.start()
    try:
        until(lambda: server.events("stopping"))
    finally:
        stopped.set()
        thread.join()
    assert server.finish() == 0
    assert drained(server) > 8 * 0.4


def test_it_ends_at_the_limit_even_if_reviews_never_end(start):
    server, stopped = start(), threading.Event()

    def ask():
        while not stopped.is_set():
            try:
                server.review()
            except OSError:  # the limit has passed
                return
            time.sleep(0.02)

    thread = threading.Thread(target=ask)
    thread.start()
    server.process.terminate()
    try:
        assert server.finish(timeout=20) == 0
    finally:
        stopped.set()
        thread.join()
    assert drained(server) > 3.9


def test_a_review_in_work_is_answered_before_the_end(start, fake_cluster):
    server = start(source=("--kubeconfig", fake_cluster.kubeconfig))
    fake_cluster.slow.clear()
    answers = []
    client = threading.Thread(
        target=lambda: answers.append(server.review(builders.make_pod(jobset="gone")))
    )
    client.start()
    until(lambda: fake_cluster.questions("get"))
    server.process.send_signal(signal.SIGINT)
    until(lambda: server.events("stopping"))
    with pytest.raises(ConnectionRefusedError):
        server.socket(tls=False, timeout=1).close()
    fake_cluster.slow.set()
    client.join()
    assert "JobSet team/gone does not exist" in answers[0]["status"]["message"]
    assert server.finish() == 0


def test_ctrl_c_does_not_wait_for_anybody(start):
    server = start(settings={"server": live_server.PATIENT})
    server.process.send_signal(signal.SIGINT)
    assert server.finish() == 0
    assert drained(server) < 5, "the usual drain takes 10 s"


def test_ctrl_c_cuts_a_drain_short_and_sigterm_does_not(start):
    server = start(settings={"server": live_server.PATIENT})
    for _ in range(3):
        server.process.terminate()
        time.sleep(0.2)
    assert not server.events("stopping")
    server.process.send_signal(signal.SIGINT)
    assert server.finish() == 0


def test_ctrl_c_twice_does_not_even_wait_for_answers(start, fake_cluster):
    server = start(source=("--kubeconfig", fake_cluster.kubeconfig))
    fake_cluster.slow.clear()
    client = threading.Thread(target=lambda: review_that_breaks(server))
    client.start()
    until(lambda: fake_cluster.questions("get"))
    server.process.send_signal(signal.SIGINT)
    until(lambda: server.events("stopping"))
    server.process.send_signal(signal.SIGINT)
    assert server.finish() == 130
    fake_cluster.slow.set()
    client.join()


def review_that_breaks(server):
    with pytest.raises((OSError, http.client.HTTPException)):
        server.review(builders.make_pod(jobset="gone"))


# --- from the first moment on -------------------------------------------------------------------

PROGRAM = (sys.executable, "-m", "tfadmit_webhook")


def command(directory):
    (directory / "objects.yaml").write_text("")
    (directory / "hurried.yaml").write_text("server: {drainSeconds: 0, drainQuietSeconds: 0}\n")
    return [
        *PROGRAM,
        *("--tls-cert", directory / "tls.crt", "--tls-key", directory / "tls.key"),
        *("--objects", directory / "objects.yaml", "--config", directory / "hurried.yaml"),
        *("--host", "127.0.0.1", "--port", "0", "--metrics-port", "0"),
    ]


def catches_signals(pid):
    """Whether the handlers are in place; before, Python is starting."""
    with contextlib.suppress(OSError):
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        caught = re.search(r"^SigCgt:\s+(\w+)", status, re.MULTILINE)
        assert caught
        return int(caught[1], 16) >> (signal.SIGTERM - 1) & 1
    return 0


@pytest.mark.parametrize("delay", [0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.2])
def test_sigterm_at_any_moment_of_the_start_ends_it_without_a_traceback(directory, delay):
    process = subprocess.Popen(command(directory), stderr=subprocess.PIPE, text=True)
    time.sleep(delay)
    process.terminate()
    _, errors = process.communicate(timeout=20)
    assert process.returncode in (0, -signal.SIGTERM), errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("delay", [0, 0.1, 0.2, 0.4, 0.8])
def test_a_signal_while_modules_are_loaded_is_kept_until_somebody_listens(directory, number, delay):
    process = subprocess.Popen(command(directory), stderr=subprocess.PIPE, text=True)
    until(lambda: catches_signals(process.pid))
    time.sleep(delay)
    process.send_signal(number)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors


def isolated(*program):
    """A program as PID 1 of a PID namespace, where the kernel drops what has no handler."""
    options = ("--user", "--map-root-user", "--fork", "--pid", "--mount-proc", "--kill-child")
    return ["unshare", *options, *map(str, program)]


def can_isolate():
    if not shutil.which("unshare"):
        return False
    return subprocess.run(isolated("true"), check=False, capture_output=True).returncode == 0


def end_isolated(directory, *, delay, ready, init=()):
    """Start, wait, send SIGTERM to PID 1; gives the exit code and what was said."""
    started = isolated(*init, *command(directory))
    process = subprocess.Popen(started, stderr=subprocess.PIPE, text=True)
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        until(children.read_text)
        child = int(children.read_text())
        until(lambda: ready(child))
        time.sleep(delay)
        os.kill(child, signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    return process.returncode, errors


@pytest.mark.skipif(not can_isolate(), reason="needs user and PID namespaces (unshare)")
@pytest.mark.parametrize("delay", [0, 0.2, 0.8])
def test_as_pid_1_a_signal_is_not_lost_once_handlers_are_there(directory, delay):
    code, errors = end_isolated(directory, delay=delay, ready=catches_signals)
    assert code == 0, errors
    assert "Traceback" not in errors


def is_tini(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text() == "tini\n"
    return False


@pytest.mark.skipif(not (can_isolate() and shutil.which("tini")), reason="needs unshare and tini")
@pytest.mark.parametrize("delay", [0.01, 0.03, 0.1, 0.4, 1.2])
def test_behind_the_init_of_the_image_a_signal_is_never_lost(directory, delay):
    code, errors = end_isolated(directory, delay=delay, ready=is_tini, init=("tini", "--"))
    assert code in (0, 128 + signal.SIGTERM), errors
    assert "Traceback" not in errors
