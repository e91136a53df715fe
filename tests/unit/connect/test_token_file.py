"""The token of a file that somebody writes anew."""

import threading

import pytest

from tfadmit_connect.token_file import TokenFile


class Clock:
    now = 500.0

    def __call__(self):
        return self.now


@pytest.fixture
def path(tmp_path):
    return tmp_path / "token"


@pytest.fixture
def clock():
    return Clock()


def test_it_is_read_at_once_and_then_each_fifty_seconds(path, clock):
    path.write_text("one\n")
    kept = TokenFile(path, token="", clock=clock)
    assert kept.current() == "one"
    path.write_text("two")
    clock.now += 49
    assert kept.current() == "one"
    clock.now += 1
    assert kept.current() == "two"


@pytest.mark.parametrize(
    "content", [None, b"", b" \n", b"half\na token", b"t\xff", "tökén".encode()]
)
def test_the_last_good_one_stays_while_there_is_no_other(path, clock, content):
    path.write_text("good")
    kept = TokenFile(path, token="stated", clock=clock)
    assert kept.current() == "good"
    path.unlink() if content is None else path.write_bytes(content)
    clock.now += 50
    assert kept.current() == "good"
    path.write_text("better")
    clock.now += 50
    assert kept.current() == "better"


def test_what_is_stated_counts_until_there_is_a_file(path, clock):
    kept = TokenFile(path, token="stated", clock=clock)
    assert kept.current() == "stated"
    path.write_text("written")
    clock.now += 50
    assert kept.current() == "written"


def test_many_threads_are_each_given_a_whole_token(path, clock):
    path.write_text("a" * 1000)
    kept = TokenFile(path, token="", clock=clock)
    seen = set()

    def ask():
        for _ in range(200):
            seen.add(kept.current())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for letter in "bc":
        clock.now += 50
        path.with_suffix(".new").write_text(letter * 1000)
        path.with_suffix(".new").replace(path)
    for thread in threads:
        thread.join()
    assert seen <= {letter * 1000 for letter in "abc"}
    assert seen
