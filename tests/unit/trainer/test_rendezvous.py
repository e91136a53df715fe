"""All tasks meet before TensorFlow starts; who is missing or sees something else is named."""

import json
import socket
import threading
import time

import pytest

from tfadmit_trainer import meeting, rendezvous
from tfadmit_trainer.contract import Cluster
from unit.trainer import trainings


class Meeting(threading.Thread):
    """One task's side, in a thread."""

    def __init__(self, task, *, deadline=20.0):
        super().__init__(daemon=True)
        self.task, self.deadline, self.error = task, deadline, None
        self.start()

    def run(self):
        try:
            rendezvous.meet(self.task, deadline=self.deadline, every=0.2)
        except Exception as error:  # noqa: BLE001 - looked at by the test
            self.error = error


def meet(*tasks, **options):
    meetings = [Meeting(task, **options) for task in tasks]
    for side in meetings:
        side.join(25)
        assert not side.is_alive()
    return [side.error for side in meetings]


def test_all_tasks_meet():
    cluster = trainings.workers(5)
    assert meet(*(trainings.task(cluster, index) for index in range(5))) == [None] * 5


def test_the_chief_may_come_last():
    cluster = trainings.workers(2)
    guest = Meeting(trainings.task(cluster, 1))
    time.sleep(0.5)
    host = Meeting(trainings.task(cluster, 0))
    guest.join(10)
    host.join(10)
    assert (guest.error, host.error) == (None, None)


def test_a_chief_is_host_and_the_evaluator_is_not_waited_for():
    place = trainings.address
    cluster = Cluster(chief=(place(),), worker=(place(), place()), evaluator=(place(),))
    seen = cluster.seen_by("worker")
    workers = [trainings.task(seen, index) for index in range(2)]
    assert meet(trainings.task(seen, role="chief"), *workers) == [None] * 3


def test_who_is_missing_is_named_by_the_chief_and_by_the_others(capsys):
    cluster = trainings.workers(4)
    here = (0, 2)
    # A guest who finds nobody there yet asks again after 0.5 to 1.5 s.
    host, guest = meet(*(trainings.task(cluster, index) for index in here), deadline=4)
    assert isinstance(host, meeting.MeetingError)
    assert host.exit_code == 75
    assert "worker 0 gave up after" in str(host)
    assert "worker 1, 3 (2 of 4) did not come" in str(host)
    assert str(guest) == str(host)
    assert "[tfadmit] waiting for worker 1, 3 (2 of 4), " in capsys.readouterr().err


def test_a_chief_that_never_comes_is_named():
    (error,) = meet(trainings.task(trainings.workers(3), 2), deadline=1)
    assert "worker 2 gave up after" in str(error)
    assert "worker 0 (1 of 3) did not come" in str(error)


def test_a_task_of_another_attempt_is_named_by_both():
    cluster = trainings.workers(2)
    errors = meet(trainings.task(cluster, attempt=1), trainings.task(cluster, 1, attempt=2))
    assert {type(error) for error in errors} == {meeting.DisagreementError}
    assert len({str(error) for error in errors}) == 1
    assert "worker 1 sees another attempt than worker 0: all tasks must" in str(errors[0])


def test_a_task_that_sees_another_cluster_is_named():
    cluster = trainings.workers(2)
    larger = Cluster(worker=(*cluster.worker, trainings.address()))
    host, guest = meet(trainings.task(cluster), trainings.task(larger, 1))
    assert "worker 1 sees another cluster than worker 0" in str(host)
    assert str(host) == str(guest)


@pytest.mark.parametrize("after", ["at once", "without reading"])
def test_a_task_that_comes_back_alone_finds_tensorflow(after):
    cluster = trainings.workers(2)
    port = int(cluster.worker[0].rpartition(":")[2])
    with socket.create_server(("127.0.0.1", port)) as server:

        def answer():
            while True:
                link, _ = server.accept()
                if after == "without reading":  # so that closing is a reset
                    link.recv(1, socket.MSG_PEEK)
                link.sendall(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00")  # HTTP/2 settings
                link.close()

        threading.Thread(target=answer, daemon=True).start()
        (error,) = meet(trainings.task(cluster, 1), deadline=2)
    assert "worker 0 is training already. This task was started again alone" in str(error)


def test_strangers_at_the_door_disturb_nobody():
    cluster = trainings.workers(2)
    host = Meeting(trainings.task(cluster, 0))
    port = int(cluster.worker[0].rpartition(":")[2])
    words = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"x" * 10_000,
        b'{"tfadmit": 1, "role": "worker"}\n',
        b"[\n",
    ]
    words.append(json.dumps({"tfadmit": 1, "role": "worker", "index": [1]}).encode() + b"\n")
    time.sleep(0.3)
    for word in words:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as link:
            link.sendall(word)
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        guest = Meeting(trainings.task(cluster, 1))
        guest.join(10)
        host.join(10)
    assert (guest.error, host.error) == (None, None)


def test_a_guest_that_dies_is_waited_for_again():
    cluster = trainings.workers(2)
    host = Meeting(trainings.task(Cluster(worker=(*cluster.worker, trainings.address()))))
    card = meeting.card(trainings.task(Cluster(worker=host.task.cluster.worker), 1))
    port = int(cluster.worker[0].rpartition(":")[2])
    time.sleep(0.3)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as link:
        link.sendall(json.dumps(card).encode() + b"\n")
        time.sleep(0.3)
    again = [Meeting(trainings.task(host.task.cluster, index)) for index in (1, 2)]
    for side in (host, *again):
        side.join(10)
        assert side.error is None
        assert not side.is_alive()


@pytest.mark.parametrize("count", [300])
def test_many_tasks_meet_in_seconds(count):
    cluster = Cluster(worker=(trainings.address(), f"127.0.0.{{1..{count - 1}}}:1"))
    tasks = [trainings.task(cluster, index) for index in range(count - 1)]
    began = time.monotonic()
    assert set(meet(*tasks[:count], trainings.task(cluster, count - 1))) == {None}
    print(f"{count} tasks met in {time.monotonic() - began:.1f} s")
