"""The page for a first training, followed by copy and paste."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from harness import tools
from harness.cluster import Cluster
from harness.node import deploy, images

pytestmark = pytest.mark.timeout(900)

_PAGE = tools.ROOT / "docs" / "first-training-kubectl.md"
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def typed(cluster: Cluster, tfadmit: None, training_image: str, namespace: str, tmp_path: Path):
    """What is printed when a block is pasted into a shell in the user's namespace."""
    config = tmp_path / "kubeconfig"
    config.write_text(cluster.kubeconfig.read_text())
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl").symlink_to(cluster.program)
    path = os.pathsep.join([str(programs), str(deploy.PROGRAM.parent), os.environ["PATH"]])
    environ = {**os.environ, "KUBECONFIG": str(config), "PATH": path}

    def run(text: str) -> str:
        done = subprocess.run(
            ["bash", "-eu", "-o", "pipefail", "-c", text],
            cwd=tools.ROOT, env=environ, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        return done.stdout

    run(f"kubectl config set-context --current --namespace={namespace}")
    yield run
    cluster.delete("TrainJob", "tf-cifar10", namespace)


def test_a_new_user_gets_there_by_copy_and_paste(typed):
    blocks = _BLOCK.findall(_PAGE.read_text())
    checked, previewed, applied, shown, watched, three, removed = map(typed, blocks)
    assert "successfully rolled out" in checked
    assert "tf-cifar10-node-0-1.tf-cifar10.default.svc.cluster.local:12345" in previewed
    assert "2 pods: 2 TensorFlow tasks" in previewed
    assert applied == "trainjob.trainer.kubeflow.org/tf-cifar10 created\n"
    assert shown.count('"role":"worker"') == 2, shown
    assert "Complete" in watched
    assert watched.count("replicas in sync: 2") == 2
    losses = [float(loss) for loss in re.findall(r"epoch \d loss ([0-9.]+)", watched)]
    assert losses == sorted(losses, reverse=True)
    assert len(set(re.findall(r"weights: (\S+)", watched))) == 1
    assert three.count("replicas in sync: 3") == 3
    assert removed.count("deleted") == 2


def test_the_image_of_the_page_is_the_runtimes_own():
    """So the stand-in of the tests has its name, and nobody's copy needs a change."""
    assert images.TENSORFLOW.name in deploy.RUNTIME.read_text()
