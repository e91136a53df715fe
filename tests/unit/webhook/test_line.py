"""The line between the main process and a process that answers reviews, with a thread for that."""

import asyncio
import multiprocessing
import threading
import time

import pytest

from tfadmit_webhook import line


class Far:
    """The far end, in a thread with a loop of its own."""

    def __init__(self, connection, **answers):
        self.broken = threading.Event()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.answerer = self.run(self.make(connection, answers))

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(10)

    async def make(self, connection, answers):
        made = line.Answerer(connection, answers=answers, broken=self.broken.set)
        made.open()
        return made

    async def leave(self):
        self.answerer.close()
        await self.answerer.finish(5)

    async def settle(self):
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})

    def stop(self):
        self.run(self.settle())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()


def late():
    time.sleep(0.3)
    return "late"


@pytest.fixture
def ends():
    ours, theirs = multiprocessing.Pipe()
    yield ours, theirs
    ours.close()
    theirs.close()


@pytest.fixture
def far(ends):
    made = Far(ends[1], number=lambda: 42, slow=late)
    yield made
    made.stop()


def test_a_question_is_answered(ends, far):
    asker = line.Asker(ends[0], patience=10)
    assert asker.ask("number") == 42
    assert asker.last == {"number": 42}


def test_an_answer_that_comes_too_late_is_not_taken_for_the_next_one(ends, far):
    hasty, patient = line.Asker(ends[0], patience=0.01), line.Asker(ends[0], patience=10)
    assert hasty.ask("slow") is None
    patient._number = hasty._number
    assert patient.ask("number") == 42


def test_what_a_process_leaves_behind_is_read_after_its_end(ends, far):
    asker = line.Asker(ends[0], patience=10)
    far.run(far.leave())
    ends[1].close()
    assert asker.ask("number") is None
    assert asker.last == {"number": 42, "slow": "late"}
    assert asker.ask("number") is None


def test_a_line_that_breaks_is_told_once(ends, far):
    ends[0].close()
    assert far.broken.wait(10)


@pytest.mark.timeout(60)
def test_asking_a_process_that_stands_still_never_waits_for_ever(ends):
    """The line between two processes holds some hundred questions that nobody reads."""
    asker = line.Asker(ends[0], patience=0.0)
    assert [asker.ask("number") for _ in range(2000)] == [None] * 2000


@pytest.mark.timeout(60)
def test_a_process_that_goes_on_is_asked_again(ends):
    asker = line.Asker(ends[0], patience=0.1)
    for _ in range(40):
        assert asker.ask("number") is None
    far = Far(ends[1], number=lambda: 42)
    try:
        while asker.ask("number") is None:
            pass
        assert asker.last == {"number": 42}
    finally:
        far.stop()
