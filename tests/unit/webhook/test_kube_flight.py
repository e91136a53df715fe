"""Many who ask the same at once."""

import threading
from typing import Any

import pytest

from tfadmit_webhook.kube import flight


def make_flights() -> flight.Flights[Any]:
    return flight.Flights()


class Question:
    """Counts, and answers only when it is let go."""

    def __init__(self):
        self.count, self.go, self.began = 0, threading.Event(), threading.Semaphore(0)

    def __call__(self):
        self.count += 1
        number = self.count
        self.began.release()
        assert self.go.wait(5)
        return number


def ask_in_threads(flights, question, times, answers, *, timeout=5):
    def ask():
        try:
            answers.append(flights.ask("key", question, timeout=timeout))
        except ZeroDivisionError as error:
            answers.append(error)

    threads = [threading.Thread(target=ask) for _ in range(times)]
    for thread in threads:
        thread.start()
    return threads


def waiting(flights):
    """Until somebody waits for a flight that has not begun."""
    while not flights._waiting:
        pass


def test_a_burst_asks_twice_at_most_and_the_later_ones_get_the_later_answer():
    flights, question = make_flights(), Question()
    first: list[Any] = []
    later: list[Any] = []
    threads = ask_in_threads(flights, question, 1, first)
    question.began.acquire()
    threads += ask_in_threads(flights, question, 20, later)
    waiting(flights)
    question.go.set()
    for thread in threads:
        thread.join()
    assert first == [1]
    assert set(later) <= {2, 3}
    assert question.count <= 3  # a third one when a thread was late to come


def test_an_error_reaches_everybody_who_asked():
    flights, go = make_flights(), threading.Event()
    answers: list[Any] = []

    def question():
        go.wait(5)
        raise ZeroDivisionError

    threads = ask_in_threads(flights, question, 5, answers)
    go.set()
    for thread in threads:
        thread.join()
    assert [type(answer) for answer in answers] == [ZeroDivisionError] * 5


def test_nobody_waits_longer_than_he_can():
    flights, question = make_flights(), Question()
    answers: list[Any] = []
    threads = ask_in_threads(flights, question, 1, answers)
    question.began.acquire()
    slow = ask_in_threads(flights, question, 1, answers)
    waiting(flights)
    with pytest.raises(TimeoutError):
        flights.ask("key", question, timeout=0.02)
    question.go.set()
    for thread in threads + slow:
        thread.join()


def test_other_keys_do_not_wait():
    flights, question = make_flights(), Question()
    answers: list[Any] = []
    threads = ask_in_threads(flights, question, 1, answers)
    question.began.acquire()
    assert flights.ask("other", lambda: "now", timeout=1) == "now"
    question.go.set()
    threads[0].join()


def test_nothing_is_left_behind():
    flights = make_flights()
    assert flights.ask("key", lambda: None, timeout=1) is None
    assert not flights._flying
    assert not flights._waiting
