"""TensorFlow's errors in sentences; errors of the program stay what they are."""

import sys

import pytest

from tfadmit_trainer import collective, exits
from tfadmit_trainer.contract import Cluster
from unit.trainer import trainings

TASK = trainings.task(Cluster(worker=("w:1", "w:2")), 1)


def error(name, text):
    """An error as TensorFlow raises it."""
    kind = type(name, (Exception,), {"__module__": "tensorflow.python.framework.errors_impl"})
    return kind(text)


@pytest.fixture
def left(monkeypatch):
    found = []

    def leave(code, sentence):
        found.append((code, sentence))
        raise SystemExit(code)

    monkeypatch.setattr(exits, "leave", leave)
    monkeypatch.setattr(collective, "NOTICE_SECONDS", 0)
    return found


@pytest.mark.parametrize(
    ("name", "text", "code", "sentence"),
    [
        ("UnavailableError", "Collective ops is aborted by: Socket closed", 76, "connection to"),
        ("InvalidArgumentError", "Unexpected task registered with task_name=/job", 76, "same cl"),
        ("InternalError", "is joining a group with size3, but", 76, "same cluster"),
        ("AbortedError", "tried to connect with a different incarnation", 76, "again alone"),
        ("UnknownError", "Could not start gRPC server", 78, "port of this task is in use"),
        ("UnavailableError", "stopped sending heartbeats", 76, "its node is gone"),
        ("InvalidArgumentError", "Collective instance 1 expected type 1 and", 77, "same order"),
        ("InternalError", "errors resolving peer.invalid:1: [field:", 75, "does not resolve"),
        ("DeadlineExceededError", "whatever", 76, "its node is gone"),
    ],
)
def test_what_an_error_of_another_task_means(name, text, code, sentence):
    found = collective.explain(error(name, text))
    assert found is not None
    assert found[0] == code
    assert sentence in found[1]


@pytest.mark.parametrize(
    "other", [error("InvalidArgumentError", "shapes differ"), ValueError("heartbeat"), KeyError()]
)
def test_errors_of_the_program_are_none_of_them(other):
    assert collective.explain(other) is None


def test_a_guarded_block_ends_the_process_on_a_lost_peer(left):
    with pytest.raises(SystemExit), collective.guarded(TASK):
        raise error("UnavailableError", "Socket closed\nand more")
    ((code, sentence),) = left
    assert code == 76
    assert sentence.startswith("worker 1 ends: the connection to another task broke")
    assert "(UnavailableError: Socket closed)" in sentence


def test_a_guarded_block_passes_on_an_error_of_the_program(left):
    with pytest.raises(ValueError, match="mine"), collective.guarded(TASK):
        raise ValueError("mine")
    assert left == []


def test_an_error_that_nobody_caught_is_shown_and_then_explained(left, monkeypatch, capsys):
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    collective.guard_process(TASK)
    lost = error("UnavailableError", "Socket closed")
    with pytest.raises(SystemExit):
        sys.excepthook(type(lost), lost, None)
    assert "UnavailableError: Socket closed" in capsys.readouterr().err
    assert left[0][0] == 76
    sys.excepthook(ValueError, ValueError("mine"), None)
    assert len(left) == 1


def test_who_trains_step_by_step_with_others():
    two = Cluster(worker=("w:1", "w:2"))
    ps = Cluster(chief=("c:1",), worker=("w:1",), ps=("p:1",))
    assert collective.synchronous(trainings.task(two))
    assert not collective.synchronous(trainings.task(Cluster(worker=("w:1",))))
    assert not collective.synchronous(trainings.task(ps, role="chief"))
