"""The sidecar with the launcher of the training container, as two processes of one pod."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys

import pytest

from transfer import world

PROGRAM = """
import os, pathlib, sys
pathlib.Path(os.environ["TFADMIT_MODEL_DIR"], "saved_model.pb").write_bytes(b"graph")
pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"], "ckpt-1").write_bytes(b"weights")
data = pathlib.Path(os.environ["TFADMIT_DATA_TRAIN"], "one.csv").read_text()
print("read", data, flush=True)
sys.exit(int(sys.argv[1]))
"""


@pytest.fixture
def pod(pod):
    pod.put("in/train/one.csv", b"1,2")
    return dataclasses.replace(pod, data=f"train={pod.address}/in/train")


def python(code=0):
    return [sys.executable, "-c", PROGRAM, str(code)]


@pytest.mark.parametrize("code", [0, 3])
def test_data_in_results_out_and_the_programs_own_exit_code(pod, code):
    """Row 21, for a program that ends well and for one that does not."""
    assert pod.fetch() == 0
    with pod.syncing():
        process = world.launch(pod, *python(code))
        said, _ = process.communicate(timeout=60)
        assert process.returncode == code, said
    status = pod.status()
    assert status.code == code
    kept = status.model if code == 0 else status.partial
    assert world.assert_whole(pod, kept) == {"saved_model.pb": b"graph"}
    assert world.assert_whole(pod, status.checkpoints) == {"ckpt-1": b"weights"}
    assert b"read 1,2\n" in pod.content("logs/attempt-0/chief-0.log")


def test_a_bucket_that_is_away_makes_a_good_run_fail_with_74(pod):
    """Row 22."""
    assert pod.fetch() == 0
    (pod.server.folder / pod.bucket).rename(pod.server.folder / f"{pod.bucket}-away")
    with pod.syncing():
        process = world.launch(pod, *python())
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 74
    assert f"the bucket s3://{pod.bucket} does not exist" in said


def test_an_out_of_memory_kill_of_everything_still_saves(pod):
    """SIGKILL of launcher and program; the kubelet then asks the sidecar to end."""
    assert pod.fetch() == 0
    waiting = "import pathlib, os, time; print('working', flush=True); time.sleep(600)"
    with pod.syncing() as sync:
        process = world.launch(pod, sys.executable, "-c", waiting)
        log = pod.root / "output/logs/chief-0.log"
        world.wait_for(lambda: log.exists() and b"working" in log.read_bytes())
        world.wait_for(pod.status)
        pod.write("output/checkpoints/ckpt-2", b"late")
        (child,) = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(process.pid)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        process.kill()
        os.kill(int(child), signal.SIGKILL)
        process.communicate()
        sync.send_signal(signal.SIGTERM)
        assert sync.wait(timeout=60) == 0
    assert b"working\n" in pod.content("logs/attempt-0/chief-0.log")
    assert world.assert_whole(pod, pod.status().checkpoints) == {"ckpt-2": b"late"}
    assert json.loads((pod.root / ".tfadmit/saved.json").read_bytes())["ok"] is True


def test_a_restarted_program_in_the_same_pod_is_saved_anew(pod):
    """restartPolicy OnFailure: the container starts again, the sidecar goes on."""
    assert pod.fetch() == 0
    with pod.syncing():
        codes = []
        for code in (3, 3, 0):
            process = world.launch(pod, *python(code))
            said, _ = process.communicate(timeout=60)
            codes.append(process.returncode)
    assert codes == [3, 3, 0], said
    assert world.assert_whole(pod, pod.status().model) == {"saved_model.pb": b"graph"}
