"""The real server with two processes: what must be as with one."""

import http.client
import os
import pathlib
import signal
import threading
import time

import pytest

import builders
from tfadmit_webhook import port, serve
from tfadmit_webhook.settings import Server
from unit.webhook import live_server

TWO = {"server": {"processes": 2}}
COUNTED = (
    'tfadmit_admission_requests_total{decision="patched",dry_run="false",hook="mutate-pods",'
    'operation="CREATE",reason="mutated"}'
)


@pytest.fixture
def directory(tmp_path):
    return live_server.certificates(tmp_path)


@pytest.fixture
def server(directory):
    yield from running(directory, TWO)


def running(directory, settings):
    made = live_server.LiveServer(directory, objects=[builders.make_jobset()], settings=settings)
    with made.stopped_at_the_end():
        until(lambda: len(made.events("listening")) == 3)  # two, and the plain port
        yield made


def until(condition):
    end = time.monotonic() + 30
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)
    return found


def children(server):
    path = pathlib.Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    return [int(word) for word in path.read_text().split()]


def is_gone(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def shown(server):
    with server.socket() as connection:
        return connection.getpeercert(binary_form=True)


def test_the_counters_are_those_of_all_processes(server):
    for index in range(3):
        for _ in range(10):
            assert server.review(builders.make_pod(index=index))["allowed"]
    assert server.metric(COUNTED) == 30
    assert server.metric('tfadmit_admission_duration_seconds_count{hook="mutate-pods"}') == 30
    assert server.metric("tfadmit_draining") == 0
    assert server.terminate() == 0
    said = {line["uid"] for line in server.events("decision")}
    assert len(server.events("decision")) == 30, said


def test_sigterm_ends_all_and_the_exit_code_is_zero(server):
    pids = children(server)
    assert len(pids) == 2
    assert server.plain("/readyz")[0] == server.plain("/healthz")[0] == 200
    assert server.terminate() == 0
    assert all(is_gone(pid) for pid in pids)
    assert server.lines[-1]["event"] == "stopped"
    assert [line["event"] for line in server.lines].count("stopping") == 2
    assert not [line for line in server.lines if "traceback" in line]


def test_while_draining_reviews_are_answered_and_nobody_is_sent_here(directory):
    settings = {"server": {**live_server.PATIENT, "processes": 2}}
    for server in running(directory, settings):
        server.process.terminate()
        until(lambda server=server: len(server.events("draining")) == 2)
        assert server.review()["allowed"]
        status, why = server.plain("/readyz")
        assert (status, why) == (503, "the server is ending\n")
        assert server.metric("tfadmit_draining") == 1
        server.process.send_signal(signal.SIGINT)
        assert server.finish() == 0


def test_an_interrupt_at_a_terminal_reaches_each_process_once(server):
    # What a terminal does: a signal for the whole group of the process that was started.
    for pid in (server.process.pid, *children(server)):
        assert (os.getpgid(pid) == os.getpgid(server.process.pid)) is (pid == server.process.pid)
    server.process.send_signal(signal.SIGINT)
    assert server.finish() == 0


def test_a_second_interrupt_waits_for_nothing(directory, fake_cluster):
    server = live_server.LiveServer(
        directory, settings=TWO, source=("--kubeconfig", fake_cluster.kubeconfig)
    )
    fake_cluster.slow.clear()
    with server.stopped_at_the_end():
        client = threading.Thread(target=lambda: review_that_breaks(server))
        client.start()
        until(lambda: fake_cluster.questions("get"))
        server.process.send_signal(signal.SIGINT)
        until(lambda: len(server.events("stopping")) == 2)
        server.process.send_signal(signal.SIGINT)
        assert server.finish() == 130
        fake_cluster.slow.set()
        client.join()


def review_that_breaks(server):
    with pytest.raises((OSError, http.client.HTTPException)):
        server.review(builders.make_pod(jobset="gone"))


def test_a_process_that_ends_unasked_ends_the_server_and_is_told(server):
    first, second = children(server)
    os.kill(first, signal.SIGKILL)
    assert server.finish() == 1
    (line,) = server.events("process ended")
    assert (line["level"], line["pid"], line["code"]) == ("error", first, -signal.SIGKILL)
    assert is_gone(second)


def test_no_process_outlives_the_main_one(server):
    pids = children(server)
    server.process.kill()
    until(lambda: all(is_gone(pid) for pid in pids))
    server.finish()


def test_a_process_that_stands_still_is_neither_ready_nor_alive(server):
    assert server.review()["allowed"]
    counted = server.metric(COUNTED)
    first, _ = children(server)
    os.kill(first, signal.SIGSTOP)
    try:
        for path in ("/healthz", "/readyz"):
            status, why = server.plain(path)
            assert (status, why) == (503, f"process {first} does not answer\n")
        assert server.metric(COUNTED) == counted, "no counter falls"
    finally:
        os.kill(first, signal.SIGCONT)
    until(lambda: server.plain("/healthz")[0] == 200)


def test_a_renewed_certificate_is_shown_by_every_process(server, directory):
    old = shown(server)
    live_server.certificates(directory)
    until(lambda: len(server.events("certificate")) == 4)
    assert old not in {shown(server) for _ in range(20)}
    assert server.metric('tfadmit_certificate_reloads_total{outcome="used"}') == 4


def test_what_a_server_may_do_at_once_is_divided_among_its_processes():
    share = serve.share(Server(processes=3, threads=32, max_in_flight=512))
    assert (share.threads, share.max_in_flight) == (11, 171)
    assert serve.share(Server(processes=16, threads=1, max_in_flight=1)).threads == 1
    whole = port.most_connections(in_flight=512, processes=1)
    assert port.most_connections(in_flight=256, processes=2) == whole // 2
