"""A volume that is full: what is told, and that results are saved all the same."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import pytest

from transfer import world

FILLS = """
import os, pathlib
pathlib.Path(os.environ["TFADMIT_MODEL_DIR"], "saved_model.pb").write_bytes(b"graph")
with open(os.environ["TFADMIT_CHECKPOINT_DIR"] + "/ckpt-1", "wb", buffering=0) as file:
    try:
        while file.write(bytes(4096)):
            pass
    except OSError as error:
        print(error.strerror, flush=True)
"""


@pytest.fixture
def pod(pod):
    """A pod whose workspace has 4 MiB, by its own file system."""
    pod.root.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=1777", "tmpfs", str(pod.root)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode:
        if os.environ.get("CI") == "true":
            pytest.fail("no file system can be mounted")
        pytest.skip("only root can mount a file system")
    yield pod
    subprocess.run(["umount", "--lazy", str(pod.root)], check=True)


def test_data_that_do_not_fit_are_told_and_not_tried_again(pod, capsys):
    for name in ("a", "b", "c"):
        pod.put(f"in/{name}", bytes(3_000_000))
    assert dataclasses.replace(pod, data=f"{pod.address}/in").fetch() == 2
    said = capsys.readouterr().err
    assert "No space left on device: the volume of the workspace is too small for the data" in said
    assert "Traceback" not in said


def test_a_program_that_fills_its_volume_ends_with_its_code_and_everything_is_saved(pod):
    assert pod.fetch() == 0
    with pod.syncing() as sync:
        process = world.launch(pod, sys.executable, "-c", FILLS, save_timeout="60")
        said, _ = process.communicate(timeout=100)
        assert process.returncode == 0, said
        assert "No space left on device" in said
        assert sync.poll() is None
    status = pod.status()
    assert world.assert_whole(pod, status.model) == {"saved_model.pb": b"graph"}
    assert status.checkpoints.entries["ckpt-1"].size > 2_000_000
    assert status.code == 0
