"""How a task ends: codes that the shipped runtime knows, and the last words."""

import subprocess
import sys
from pathlib import Path

import yaml

from tfadmit_trainer import exits

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
