"""When names are asked for: paced, spread, later and later."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfadmit_trainer import schedule


def fresh(keys, per_second=100.0, seed=1):
    return schedule.Schedule(keys, per_second=per_second, now=0.0, source=random.Random(seed))


def drain(plan, *, until, step=0.01):
    """(second, key) of everything asked, when somebody looks every `step` seconds."""
    return [
        (tick * step, key)
        for tick in range(int(until / step))
        for key in plan.take(now=tick * step)
    ]


@pytest.mark.parametrize(
    ("tasks", "per_second"), [(1, 500), (50, 500), (100, 300), (1000, 30), (10_000, 30)]
)
def test_the_more_tasks_the_slower_each_of_them(tasks, per_second):
    assert schedule.rate(tasks) == per_second


def test_all_names_are_asked_once_and_no_faster_than_allowed():
    asked = drain(fresh(range(200)), until=3)
    assert sorted(key for _, key in asked) == list(range(200))
    for second in (0.0, 0.5, 1.0):
        assert sum(second <= at < second + 1 for at, _ in asked) <= 100 + 6


def test_each_task_starts_elsewhere():
    first, second = fresh(range(100), seed=1), fresh(range(100), seed=2)
    assert drain(first, until=1.1) != drain(second, until=1.1)


def test_a_missing_name_is_asked_for_later_and_later_up_to_ten_seconds():
    plan = fresh(["a"])
    now, gaps = 0.0, []
    assert plan.take(now=now) == ["a"]
    for _ in range(8):
        plan.again("a", now=now)
        due = plan.next()
        gaps.append(due - now)
        assert plan.take(now=due - 0.001) == []
        assert plan.take(now=due) == ["a"]
        now = due
    assert 1.5 <= gaps[0] <= 2.5
    assert all(7.5 <= gap <= 12.5 for gap in gaps[4:])
    assert plan.next() is None


def test_what_was_idle_does_not_start_with_a_burst():
    plan = fresh(range(500))
    assert len(plan.take(now=1000.0)) <= 6


@given(st.integers(1, 300), st.integers(1, 500), st.integers(0, 2**32))
def test_nothing_is_lost(count, per_second, seed):
    plan = fresh(range(count), float(per_second), seed)
    seen = []
    while (due := plan.next()) is not None:
        seen += plan.take(now=due)
    assert sorted(seen) == list(range(count))
