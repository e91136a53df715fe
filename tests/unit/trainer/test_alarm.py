"""The kernel's timer ends a process whose Python cannot run any more."""

import signal
import subprocess
import sys
import threading

import pytest

from tfadmit_trainer import alarm

# The timer that tests of time limits use is the one that is tested.
pytestmark = pytest.mark.timeout(0)

# PyDLL keeps Python's lock during the call, as TensorFlow's start does.
STUCK = (
    "import ctypes\n"
    "from tfadmit_trainer import alarm\n"
    "with alarm.ending_after(0.5, what='it starts'):\n"
    "    ctypes.PyDLL(None).sleep(30)\n"
)


def test_a_process_that_is_stuck_in_c_ends_with_a_retryable_code():
    ended = subprocess.run(
        [sys.executable, "-c", STUCK], capture_output=True, text=True, check=False, timeout=20
    )
    assert ended.returncode == 14
    assert "it starts; exit code 14 if that takes over 0 s" in ended.stderr


def test_nothing_is_left_afterwards():
    before = signal.getsignal(signal.SIGALRM)
    with alarm.ending_after(60, what="it starts"):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 50
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_timer_of_somebody_else_stays():
    signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        with alarm.ending_after(1, what="it starts"):
            assert signal.getitimer(signal.ITIMER_REAL)[0] > 900
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 900
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def test_other_threads_have_no_alarm():
    seen = []

    def run():
        with alarm.ending_after(1000, what="it starts"):
            seen.append(signal.getitimer(signal.ITIMER_REAL)[0])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [pytest.approx(0)]
