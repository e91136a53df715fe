"""How a task ends: codes that the shipped runtime knows, and the last words."""

import fcntl
import os
import struct
import subprocess
import sys
import termios
import textwrap
import time
from pathlib import Path

import yaml

from tfadmit_trainer import exits

# What Linux keeps of a pipe that nobody reads.
PIPE_BYTES = 65536
RUNTIME = Path(__file__).parents[3] / "deploy/runtimes/tensorflow-distributed.yaml"


def test_the_shipped_runtime_fails_at_once_on_the_programs_faults_and_on_nothing_else():
    runtime = yaml.safe_load(RUNTIME.read_text())
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    rules = job["template"]["spec"]["podFailurePolicy"]["rules"]
    of_exits = [rule["onExitCodes"] for rule in rules if "onExitCodes" in rule]
    (codes,) = [rule["values"] for rule in of_exits if rule.get("containerName") == "node"]
    assert set(codes) == exits.PROGRAM == {1, 2, 126, 127}


def test_every_code_has_a_meaning_and_fits_a_byte():
    assert all(0 <= code < 256 and text for code, text in exits.MEANING.items())
    assert [code for code in exits.MEANING if exits.retryable(code)] == [75, 14, 76, 77, 78, 143]
    assert not exits.retryable(0)


def test_leaving_says_why_on_the_log_and_to_kubernetes(tmp_path):
    log = tmp_path / "termination-log"
    code = (
        "import atexit, threading, time\n"
        "from tfadmit_trainer import exits\n"
        "atexit.register(print, 'a regular end')\n"
        "print('before', end='')\n"
        "leave = threading.Thread(target=exits.leave, args=(77, 'worker 0 is tired'))\n"
        "leave.start()\n"
        "time.sleep(30)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={"TFADMIT_TERMINATION_LOG": str(log)},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert ended.returncode == 77
    assert ended.stdout == "before"
    assert "[tfadmit] worker 0 is tired\n[tfadmit] exit code 77: other tasks" in ended.stderr
    assert log.read_text() == "worker 0 is tired"


def test_a_handler_in_the_middle_of_a_line_leaves_with_its_code_and_its_words():
    """The log's reader is slow, so that the signal comes while a line is being written."""
    script = textwrap.dedent(
        """
        import signal, sys
        from tfadmit_trainer import exits
        signal.signal(signal.SIGTERM, lambda *_: exits.leave(exits.TERMINATED, "asked to end"))
        print("x" * 1_000_000, file=sys.stderr, flush=True)
        """
    )
    command = [sys.executable, "-c", script]
    environ = {**os.environ, "PYTHONUNBUFFERED": ""}
    with subprocess.Popen(command, env=environ, stderr=subprocess.PIPE) as process:
        assert process.stderr
        while waiting(process.stderr) < PIPE_BYTES:
            time.sleep(0.01)
        process.terminate()
        said = process.stderr.read().decode()
    assert process.returncode == 143
    assert "\n[tfadmit] asked to end\n" in said
    assert "\n[tfadmit] exit code 143: the pod was asked to end\n" in said
    assert "Traceback" not in said


def waiting(stream):
    return struct.unpack("i", fcntl.ioctl(stream, termios.FIONREAD, b"\0" * 4))[0]


def test_leaving_where_nobody_reads_keeps_its_code():
    script = "from tfadmit_trainer import exits; input(); exits.leave(75, 'nobody came')"
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr
        assert process.stdin
        process.stderr.close()
        process.stdin.write(b"\n")
        process.stdin.close()
        assert process.wait(timeout=60) == 75
