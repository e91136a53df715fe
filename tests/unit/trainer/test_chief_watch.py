"""A server sees the chief's end at once, whatever way, and waits for one that is not there yet."""

import socket
import subprocess
import sys
import time

from harness import loopback
from tfadmit_trainer import chief_watch
from tfadmit_trainer.contract import Cluster
from unit.trainer import trainings

SERVER = (
    "import socket, sys, time\n"
    "s = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
    "print('UP', flush=True)\n"
    "links = [s.accept()[0]]\n"
    "time.sleep(60)\n"
)


def test_the_chief_is_killed():
    port = loopback.free_port()
    watch = chief_watch.ChiefWatch(f"127.0.0.1:{port}", refused=0.5).start()
    time.sleep(0.3)
    assert not watch.ended.is_set()
    command = [sys.executable, "-c", SERVER, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as chief:
        assert watch.seen.wait(10)
        assert not watch.ended.wait(1)
        chief.kill()
        assert watch.ended.wait(5)


def test_a_connection_that_the_chief_closes_is_made_again():
    with socket.create_server(("127.0.0.1", 0)) as server:
        watch = chief_watch.ChiefWatch(f"127.0.0.1:{server.getsockname()[1]}", refused=0.5).start()
        server.settimeout(10)
        for _ in range(2):
            link, _ = server.accept()
            link.close()
        link, _ = server.accept()
        assert watch.seen.is_set()
        assert not watch.ended.is_set()
    link.close()
    assert watch.ended.wait(5)


def test_the_chief_of_the_attempt_before_is_not_taken_for_ones_own():
    """It ends while the tasks of the next attempt begin, under the same name."""
    with socket.create_server(("127.0.0.1", 0)) as before:
        port = before.getsockname()[1]
        watch = chief_watch.ChiefWatch(f"127.0.0.1:{port}", refused=0.5, predecessor=4).start()
        link, _ = before.accept()
        assert watch.seen.wait(5)
    link.close()
    assert not watch.ended.wait(4.5)
    with socket.create_server(("127.0.0.1", port)) as own:
        own.settimeout(10)
        link, _ = own.accept()
        assert watch.seen.wait(5)
        assert not watch.ended.is_set()
    link.close()
    assert watch.ended.wait(5)


def test_a_chief_that_never_came_has_not_ended():
    watch = chief_watch.ChiefWatch(f"127.0.0.1:{loopback.free_port()}", grace=0, refused=0).start()
    assert not watch.ended.wait(1.5)
    assert not watch.seen.is_set()


def test_worker_0_is_chief_where_there_is_none():
    both = Cluster(chief=("a:1",), worker=("b:2",))
    assert chief_watch.address(trainings.task(both)) == "a:1"
    assert chief_watch.address(trainings.task(Cluster(worker=("b:2", "c:3")), 1)) == "b:2"
