"""What is drawn while an upload lasts."""

import queue

import pytest

from tfadmit_client import fault
from tfadmit_client.commands import run
from tfadmit_client.console import terminal
from tfadmit_client.submit import sending

MIB = 1024 * 1024


@pytest.fixture
def drawn():
    return queue.Queue()


def lines(drawn):
    return [drawn.get_nowait() for _ in range(drawn.qsize())]


def shown(drawn, **more):
    return sending.shown("code", total=20 * MIB, bar=drawn.put, every=0.001, **more)


def test_what_has_arrived_is_drawn_and_the_line_is_taken_away_at_the_end(drawn):
    times = iter(range(1_000_000))
    with shown(drawn, clock=lambda: float(next(times))) as sent:
        sent(5 * MIB)
        sent(10 * MIB)
        lines(drawn)
        drawn.get(timeout=30)
        last = drawn.get(timeout=30)
    assert last.startswith("code: 10.0 MiB of 20.0 MiB (50 %), ")
    assert lines(drawn)[-1] == ""


def test_until_the_first_part_has_arrived_the_time_goes_on(drawn):
    times = iter(range(1_000_000))
    with shown(drawn, clock=lambda: float(next(times))):
        first, second = drawn.get(timeout=30), drawn.get(timeout=30)
    assert first.startswith("code: 20.0 MiB on the way, ")
    assert first != second


def test_a_fault_takes_the_line_away_too(drawn):
    def fail():
        with shown(drawn):
            drawn.get(timeout=30)
            raise ValueError("no store")

    with pytest.raises(ValueError, match="no store"):
        fail()
    assert lines(drawn)[-1] == ""


@pytest.mark.parametrize(
    ("is_terminal", "options", "is_drawn"),
    [(True, ["-d"], True), (True, ["-o", "json"], False), (False, ["-d"], False)],
)
def test_run_draws_on_a_terminal_and_not_beside_objects(
    is_terminal, options, is_drawn, monkeypatch
):
    made = []

    def submitting_by(**words):
        made.append(words["bar"])
        raise fault.ClientError("enough")

    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    monkeypatch.setattr("tfadmit_client.submit.submitting.Submitting", submitting_by)
    with pytest.raises(fault.ClientError, match="enough"):
        run.main([*options, "--", "python", "train.py"])
    assert [bar is not None for bar in made] == [is_drawn]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_nothing_is_drawn_where_nobody_looks_on(is_terminal, monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    if bar := terminal.bar():
        bar("code: 1 of 2")
    terminal.tell("done")
    said = "\r\x1b[Kcode: 1 of 2\r\x1b[Kdone\n" if is_terminal else "done\n"
    assert capsys.readouterr().err == said
