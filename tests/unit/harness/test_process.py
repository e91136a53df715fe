"""Child processes: what a failure says, and that nothing is left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from harness.process import Process, ProcessError

# Says its group's members, then waits for longer than any test.
_WITH_CHILD = "sleep 300 & echo $!; trap '' TERM; wait; sleep 300"


def make(tmp_path: Path, script: str) -> Process:
    return Process(name="demo", command=["/bin/sh", "-c", script], log=tmp_path / "demo.log")


def _printed(process: Process, words: list[str]) -> bool:
    return process.tail().split() == words


def gone(pid: int) -> bool:
    """Whether the process ended; an ended one that init has not reaped yet counts as gone."""
    try:
        state = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


def eventually_gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while not gone(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return gone(pid)


def test_a_program_that_ends_early_shows_its_command_code_and_log(tmp_path: Path):
    process = make(tmp_path, "echo no such certificate; exit 7")
    with pytest.raises(ProcessError) as caught:
        process.start(ready=lambda: False)
    message = str(caught.value)
    assert message.startswith("demo ended with code 7 before it was ready")
    assert "command: /bin/sh -c 'echo no such certificate; exit 7'" in message
    assert message.endswith("demo.log:\nno such certificate")


def test_a_program_that_is_never_ready_is_ended_and_shows_its_log(tmp_path: Path):
    process = make(tmp_path, "echo listening nowhere; exec sleep 300")
    with pytest.raises(ProcessError, match=r"(?s)not ready after 0\.5 s.*listening nowhere"):
        process.start(ready=lambda: False, timeout=0.5)
    assert not process.running


def test_a_missing_program_is_named(tmp_path: Path):
    process = Process(name="demo", command=[tmp_path / "nothing"], log=tmp_path / "demo.log")
    with pytest.raises(ProcessError, match=r"(?s)ended with code.*nothing.*FileNotFoundError"):
        process.start(ready=lambda: False)


def test_only_the_last_lines_are_shown(tmp_path: Path):
    process = make(tmp_path, "")
    process.log.write_text("\n".join(f"line {i}" for i in range(100)))
    assert process.tail().splitlines() == [f"line {i}" for i in range(70, 100)]


def test_an_interrupt_while_waiting_leaves_nothing(tmp_path: Path):
    process = make(tmp_path, "exec sleep 300")
    pids: list[int] = []

    def interrupted() -> bool:
        pids.append(process.pid)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        process.start(ready=interrupted)
    assert gone(pids[0])


def test_a_stubborn_program_and_its_children_are_ended(tmp_path: Path):
    process = make(tmp_path, _WITH_CHILD)
    process.start(ready=lambda: process.tail() != "")
    leader, child = process.pid, int(process.tail())
    assert not gone(child)
    process.stop(grace=0.2)
    assert gone(leader)
    assert eventually_gone(child)


def test_it_can_be_started_again_and_stopped_twice(tmp_path: Path):
    process = make(tmp_path, "echo up; exec sleep 300")
    for lives in (["up"], ["up", "up"]):
        process.start(ready=partial(_printed, process, lives))
        with pytest.raises(ProcessError, match="already running"):
            process.start(ready=lambda: True)
        process.stop()
        process.stop()
        assert not process.running


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, None], ids=str)
def test_a_program_ends_with_the_run_that_started_it(tmp_path: Path, ending):
    run = f"""
import sys, time
from pathlib import Path
from harness.process import Process
process = Process(name="demo", command=["/bin/sleep", "300"], log=Path({str(tmp_path / "log")!r}))
comm = lambda: Path("/proc", str(process.pid), "comm").read_text()
process.start(ready=lambda: comm() == "sleep\\n")
print(process.pid, flush=True)
time.sleep({300 if ending else 0})
"""
    tests = Path(__file__).resolve().parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", run], cwd=tests, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        if ending:
            assert not gone(pid)
            parent.send_signal(ending)
        parent.wait(20)
    assert eventually_gone(pid)
