import threading
import time
from typing import Any

import pytest

from tfadmit_trainer.pool import Pool


def collect_all(pool):
    results = {}
    while pool.in_flight:
        results.update(pool.collect(timeout=5))
    return results


def test_every_key_gets_its_result():
    pool: Pool[Any, Any] = Pool(lambda key: key * 2)
    for key in range(500):
        pool.submit(key)
    assert collect_all(pool) == {key: key * 2 for key in range(500)}
    pool.close()


def test_calls_run_side_by_side_but_not_more_than_allowed():
    running, most, lock = 0, 0, threading.Lock()

    def call(_key):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1

    pool: Pool[Any, Any] = Pool(call, threads=4)
    for key in range(16):
        pool.submit(key)
    collect_all(pool)
    pool.close()
    assert most == 4


def test_waiting_for_a_slow_one_is_bounded():
    release = threading.Event()
    pool: Pool[Any, Any] = Pool(lambda _key: release.wait(30))
    pool.submit("slow")
    assert pool.collect(timeout=0.01) == []
    assert pool.in_flight == 1
    release.set()
    assert collect_all(pool) == {"slow": True}
    pool.close()


def test_an_error_of_the_call_comes_out():
    pool: Pool[Any, Any] = Pool(lambda key: 1 // key)
    pool.submit(0)
    with pytest.raises(ZeroDivisionError):
        pool.collect(timeout=5)
    pool.close()


def test_closing_ends_the_threads():
    def alive():
        return [thread for thread in threading.enumerate() if thread.name == "tfadmit-pool"]

    pool: Pool[Any, Any] = Pool(lambda key: key)
    for key in range(8):
        pool.submit(key)
    collect_all(pool)
    pool.close()
    deadline = time.monotonic() + 5
    while alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert alive() == []
