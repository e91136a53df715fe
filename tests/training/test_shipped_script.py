"""The script that the Volcano example ships in its ConfigMap, run as its pods would run it."""

import os
from pathlib import Path

import pytest
import yaml

from training import loopback_pods, tasks

INTEGRATION = (
    tasks.ROOT / "deploy/examples/cifar10/volcano/tensorflow-volcano-trainjob-integration.yaml"
)


@pytest.fixture
def script(tmp_path):
    documents = yaml.safe_load_all(INTEGRATION.read_text())
    (source,) = [item["data"]["train.py"] for item in documents if item["kind"] == "ConfigMap"]
    path = tmp_path / "train.py"
    path.write_text(source)
    return path


@pytest.mark.parametrize("library", [True, False], ids=["with the library", "with TF_CONFIG alone"])
def test_two_workers_train_with_the_shipped_script(
    start, script, digits, tmp_path, tensorflow_keras2, library
):
    nowhere = {} if library else {"PYTHONPATH": str(Path(os.devnull))}
    running = [
        start(
            f"worker-{index}",
            [str(script)],
            env={**env, "CIFAR10_DIR": str(digits), "EPOCHS": "2", **nowhere},
            directory=tmp_path,
            tensorflow=tensorflow_keras2,
        )
        for index, env in enumerate(loopback_pods.workers(2))
    ]
    assert tasks.ended(running, timeout=150) == [0, 0], "\n".join(task.tail() for task in running)
    assert "Test Accuracy" in running[0].text
    assert "Test Accuracy" not in running[1].text
