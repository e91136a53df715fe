"""Log lines of a server at work: in batches, none lost, none mixed up."""

import io
import json
import logging
import os
import select
import subprocess
import sys
import textwrap
import threading
from collections import Counter

import pytest

from tfadmit_webhook import log_thread

LOG = logging.getLogger("tfadmit")


@pytest.fixture(autouse=True)
def root_as_before():
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    root.setLevel(logging.INFO)
    yield
    root.handlers = handlers
    root.setLevel(level)


def say(count, **fields):
    for number in range(count):
        LOG.info("decision", extra={"fields": {"number": number, **fields}})


def test_all_lines_are_written_in_order_when_the_context_ends():
    written = io.StringIO()
    with log_thread.batched(written.write):
        say(1000)
    numbers = [json.loads(line)["number"] for line in written.getvalue().splitlines()]
    assert numbers == list(range(1000))


def test_a_line_that_cannot_be_made_is_told_and_breaks_nobody():
    """A library may log with too few words, or with an object that has none for itself."""
    written = io.StringIO()
    with log_thread.batched(written.write):
        LOG.info(*("%s of %s", "one"))
        LOG.info("%s", Wordless())
        say(1)
    first, second, third = map(json.loads, written.getvalue().splitlines())
    assert first["message"].startswith("'%s of %s': its words do not fit (TypeError")
    assert second["message"] == "'%s': its words do not fit (ValueError('no words'))"
    assert third["event"] == "decision"


class Wordless:
    def __str__(self):
        raise ValueError("no words")


def test_many_lines_are_written_at_once():
    written: list[str] = []
    with log_thread.batched(written.append):
        say(1000)
    assert len(written) < 100


def test_the_lines_of_many_threads_are_all_written():
    written = io.StringIO()
    with log_thread.batched(written.write):
        threads = [threading.Thread(target=say, args=(200,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    counted = Counter(json.loads(line)["number"] for line in written.getvalue().splitlines())
    assert counted == dict.fromkeys(range(200), 8)


def test_a_reader_that_takes_nothing_costs_no_caller_and_what_is_lost_is_told():
    blocked, seen = threading.Event(), threading.Event()
    written: list[str] = []

    def write(text):
        seen.set()
        blocked.wait(30)
        written.append(text)

    with log_thread.batched(write, most=10):
        say(1)
        assert seen.wait(30)
        say(25)
        blocked.set()
    lines = [json.loads(line) for line in "".join(written).splitlines()]
    assert sum(line["event"] == "decision" for line in lines) == 11
    assert lines[-1] == {"level": "error", "event": "log lines lost", "count": 15}


def test_the_handlers_of_before_come_back():
    before = logging.getLogger().handlers
    with log_thread.batched(io.StringIO().write):
        assert logging.getLogger().handlers != before
    assert logging.getLogger().handlers is before


def test_arguments_are_written_as_they_were_when_the_line_was_logged():
    written, things = io.StringIO(), ["a"]
    with log_thread.batched(written.write):
        LOG.info("things %s", things)
        things.append("b")
    assert json.loads(written.getvalue())["message"] == "things ['a']"


def test_a_record_that_cannot_be_written_does_not_end_the_log():
    class Odd:
        def __str__(self):
            raise RuntimeError("no text")

    written = io.StringIO()
    with log_thread.batched(written.write):
        say(1, odd=Odd())
        say(1)
    first, second = map(json.loads, written.getvalue().splitlines())
    assert "no text" in first["message"]
    assert second["event"] == "decision"


def test_a_reader_that_is_gone_does_not_end_the_log():
    written, gone = io.StringIO(), threading.Event()

    def write(text):
        if not gone.is_set():
            gone.set()
            raise BrokenPipeError
        written.write(text)

    with log_thread.batched(write):
        say(3)
        assert gone.wait(30)
        say(1)
    last, lost = map(json.loads, written.getvalue().splitlines())
    assert (last["event"], lost["count"]) == ("decision", 3)


def test_what_comes_while_the_log_ends_is_written():
    written = io.StringIO()
    with log_thread.batched(written.write):
        (late,) = logging.getLogger().handlers
        assert isinstance(late, log_thread._Handler)
    late.handle(logging.makeLogRecord({"msg": "late", "fields": {}}))
    late.stop()
    assert json.loads(written.getvalue())["event"] == "late"


def test_pieces_fit_into_a_pipe_as_one_and_end_with_a_line():
    lines = ["ü" * 900, "b" * 3000, "c" * 10_000, "d"]
    pieces = list(log_thread.pieces(lines))
    assert "".join(pieces) == "".join(f"{line}\n" for line in lines)
    assert all(piece.endswith("\n") for piece in pieces)
    assert [len(piece.encode()) <= select.PIPE_BUF for piece in pieces] == [True, True, False, True]


def test_a_process_that_ends_has_written_everything():
    program = """
        import logging, sys
        from tfadmit_webhook import json_log, log_thread
        json_log.install()
        with log_thread.batched():
            for number in range(5000):
                logging.getLogger("t").info("x", extra={"fields": {"number": number}})
        logging.getLogger("t").info("stopped", extra={"fields": {}})
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        timeout=60,
    )
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line.get("number") for line in lines[:-1]] == list(range(5000))
    assert lines[-1]["event"] == "stopped"
