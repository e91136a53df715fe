"""When a server that was told to end stops listening."""

import pytest

from tfadmit_webhook import drain
from tfadmit_webhook.settings import Server


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def draining(clock):
    server = Server(drain_seconds=10, drain_quiet_seconds=5, drain_limit_seconds=45)
    made = drain.Drain(server=server, clock=clock)
    made.review()
    clock.now += 60
    return made


def after(clock, draining, seconds):
    clock.now += seconds
    return draining.left()


def test_without_any_review_it_is_the_time_that_endpoints_take(clock, draining):
    draining.begin()
    assert draining.draining
    assert draining.left() == 10
    assert after(clock, draining, 9) == 1
    assert after(clock, draining, 2) == 0


def test_each_review_begins_the_quiet_time_anew(clock, draining):
    draining.begin()
    for _ in range(6):
        clock.now += 4
        draining.review()
    assert draining.left() == 5
    assert after(clock, draining, 5) == 0


def test_it_ends_at_the_limit_whoever_still_asks(clock, draining):
    draining.begin()
    for _ in range(44):
        clock.now += 1
        draining.review()
    assert draining.left() == 1
    draining.review()
    assert after(clock, draining, 1) == 0


def test_a_second_signal_does_not_begin_it_anew(clock, draining):
    draining.begin()
    clock.now += 8
    draining.begin()
    assert draining.left() == 2


def test_who_sits_at_a_terminal_does_not_wait(draining):
    draining.hurry()
    assert draining.draining
    assert draining.left() == 0


def test_a_hurry_cuts_draining_short(clock, draining):
    draining.begin()
    clock.now += 1
    draining.hurry()
    assert draining.left() == 0


def test_before_a_signal_nothing_is_draining(draining):
    assert not draining.draining
    assert draining.left() > 0
