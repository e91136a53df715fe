"""A thread says for whom a step waits, and ends the process after a deadline."""

import threading
import time

import pytest

from tfadmit_trainer import watchdog
from tfadmit_trainer.diagnosis import Missing
from tfadmit_trainer.peers import Peer
from unit.trainer import trainings


@pytest.fixture
def left():
    """How the process would have ended."""
    return []


@pytest.fixture
def make(left):
    def leave(code, sentence):
        left.append((code, sentence))

    def build(*, absent=(), deadline=0.2, first_line=0.1, count=3):
        cluster = trainings.workers(count)
        missing = [
            Missing(peer=Peer(role="worker", index=i, address=cluster.worker[i]), why="refused")
            for i in absent
        ]
        return watchdog.Watchdog(
            context=trainings.task(cluster),
            what="model.evaluate(), which all workers must call",
            deadline=deadline,
            look=lambda _context: missing,
            leave=leave,
            first_line=first_line,
        )

    return build


def test_it_ends_the_process_and_names_who_is_missing(make, left, capsys):
    dog = make(absent=[1, 2])
    with watchdog.watching(dog):
        time.sleep(0.6)
    ((code, sentence),) = left
    assert code == 77
    assert sentence.startswith("worker 0 gave up after 0 s in model.evaluate(), which all workers")
    assert "worker 1, 2 (2 of 3) is not there: their names resolve, but" in sentence
    assert "[tfadmit] waiting for worker 1, 2 (2 of 3), 0 s in model" in capsys.readouterr().err


def test_it_says_when_all_are_there_and_some_do_something_else(make, left):
    with watchdog.watching(make()):
        time.sleep(0.6)
    ((_, sentence),) = left
    assert "all other tasks listen, but not all of them came to this point" in sentence


def test_nothing_happens_when_the_step_is_done_in_time(make, left, capsys):
    with watchdog.watching(make(deadline=0.3, first_line=0.3)):
        pass
    time.sleep(0.5)
    assert left == []
    assert capsys.readouterr().err == ""
    assert not any(thread.name == "tfadmit-watchdog" for thread in threading.enumerate())
