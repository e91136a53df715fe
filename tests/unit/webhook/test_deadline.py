"""How long the API server waits."""

import pytest

from tfadmit_webhook import deadline


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10s", 10),
        ("1m0s", 30),
        ("500ms", 0.5),
        ("2.5s", 2.5),
        ("1s500ms", 1.5),
        ("1h", 30),
        (".5s", 0.5),
    ],
)
def test_a_go_duration_is_read(text, expected):
    assert deadline.seconds(text, default=7) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text",
    [None, "", "10", "s", "ten", "0s", "-1s", "10 s", "10s ", "1s;2s", "\u0661s", "1e3s", "9d"],
)
def test_what_makes_no_sense_is_the_default(text):
    assert deadline.seconds(text, default=7) == 7


def test_time_is_left_for_the_answer_to_travel():
    now = [100.0]
    left = deadline.remaining(arrived=100, patience=10, clock=lambda: now[0])
    assert left() == 9.75
    now[0] = 105
    assert left() == 4.75
    now[0] = 111
    assert left() < 0


def test_a_short_patience_is_not_eaten_by_the_margin():
    left = deadline.remaining(arrived=0, patience=0.5, clock=lambda: 0)
    assert left() == pytest.approx(0.4)
