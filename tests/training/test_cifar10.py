"""The shipped example, on real images, with environments that the webhook computed.

The images are scikit-learn's handwritten digits in CIFAR-10's format; this is not CIFAR-10.
"""

import os
import re
import signal
from pathlib import Path

import pytest

from training import loopback_pods, tasks

EXAMPLE = ["-m", "tfadmit_trainer.examples.cifar10"]
# Narrow and quick, for a busy machine; 23 steps of 2 x 32 images an epoch.
SMALL = {"WIDTH": "8", "BATCH_SIZE": "32", "LEARNING_RATE": "0.005", "EPOCHS": "4"}
CHANCE = 0.1
EPOCH = re.compile(r"epoch (\d+)/\d+ \(\d+%\): loss ([\d.]+), test_loss ([\d.]+)")
SAME = re.compile(r"weights after epoch (\d+) are the same on all workers: (\S+)")


def train(start, digits, environments, *, run="", shared=None, **options):
    """Start all workers, each with storage of its own unless there is a shared one."""
    env = {**SMALL, "CIFAR10_DIR": str(digits), **options.pop("env", {})}
    root = options["directory"]
    return [
        start(
            f"worker-{index}{run}",
            EXAMPLE,
            env={**own, "TFADMIT_OUTPUT_DIR": str(shared or Path(root, f"out-{index}")), **env},
            **options,
        )
        for index, own in enumerate(environments)
    ]


def curve(task):
    """Losses on training and test images by epoch."""
    return {int(e): (float(loss), float(test)) for e, loss, test in EPOCH.findall(task.text)}


def accuracy(task):
    return float(re.findall(r"^Test Accuracy: ([\d.]+)$", task.text, re.MULTILINE)[0])


def report(running):
    return "\n".join(task.tail() for task in running)


@pytest.fixture(scope="module")
def undisturbed():
    """The loss curve of two workers that nobody disturbed, once it is known."""
    return {}


@pytest.mark.parametrize("count", [2, 3])
def test_workers_learn_and_stay_equal(start, digits, tmp_path, undisturbed, count):
    running = train(start, digits, loopback_pods.workers(count), directory=tmp_path)
    assert tasks.ended(running, timeout=150) == [0] * count, report(running)
    print(running[0].text)
    assert accuracy(running[0]) > 8 * CHANCE
    for task in running[1:]:
        assert SAME.findall(task.text) == SAME.findall(running[0].text)
        # Only the chief prints, reports and saves.
        assert "Test Accuracy" not in task.text
        assert not curve(task)
    assert (tmp_path / "out-0/model/cifar10.keras").stat().st_size > 10_000
    assert not list(tmp_path.glob("out-[12]/**/*.index"))
    if count == 2:
        undisturbed.update(curve(running[0]))


def test_all_workers_are_killed_in_epoch_3_and_start_again(start, digits, tmp_path, undisturbed):
    if not undisturbed:
        pytest.skip("needs the curve of the test before")
    first = train(start, digits, loopback_pods.workers(2), directory=tmp_path, run="-1")
    first[0].says("epoch 2/4")
    first[1].says("weights after epoch 2")
    for task in first:
        task.send(signal.SIGKILL)
    again = train(start, digits, loopback_pods.workers(2, attempt=1), directory=tmp_path, run="-2")
    assert tasks.ended(again, timeout=120) == [0, 0], report(again)
    assert "restored" in again[0].text
    seen = curve(again[0])
    assert sorted(seen) == [3, 4]
    for epoch, losses in seen.items():
        assert losses == pytest.approx(undisturbed[epoch], rel=TOLERANCE)


# Relative. Sums over two workers are exact; what is left is the order of additions in kernels.
TOLERANCE = 1e-3


def test_one_worker_is_asked_to_end(start, digits, tmp_path):
    shared = tmp_path / "shared"
    options = {"directory": tmp_path, "shared": shared, "env": {"EPOCHS": "50"}}
    first = train(start, digits, loopback_pods.workers(2), run="-1", **options)
    first[1].says("weights after epoch 1")
    first[1].send(signal.SIGTERM)
    assert tasks.ended(first, timeout=60) == [143, 143], report(first)
    assert "saved the training and ends" in first[0].text
    done = max(int(epoch) for epoch, _ in SAME.findall(first[0].text))
    again = train(
        start, digits, loopback_pods.workers(3, attempt=1), run="-2",
        **{**options, "env": {"EPOCHS": str(done + 1)}},
    )  # fmt: skip
    # With one worker more than before.
    assert tasks.ended(again, timeout=120) == [0, 0, 0], report(again)
    assert sorted(curve(again[0])) == [done + 1]


def test_keras_2(start, digits, tmp_path, tensorflow_keras2):
    running = train(
        start, digits, loopback_pods.workers(2), directory=tmp_path, tensorflow=tensorflow_keras2
    )
    assert tasks.ended(running, timeout=150) == [0, 0], report(running)
    print(running[0].text)
    assert accuracy(running[0]) > 8 * CHANCE
    assert SAME.findall(running[0].text) == SAME.findall(running[1].text)
    assert list(tmp_path.glob("out-0/logs/events.*"))


def test_one_task_alone_and_a_checkpoint_that_was_cut_off(start, digits, tmp_path):
    def run(name, *, epochs):
        (task,) = train(
            start, digits, loopback_pods.workers(1), directory=tmp_path, run=name,
            env={"EPOCHS": str(epochs)},
        )  # fmt: skip
        assert task.wait(timeout=60) == 0, task.tail()
        return task

    assert sorted(curve(run("-1", epochs=2))) == [1, 2]
    (newest,) = tmp_path.glob("out-0/checkpoints/ckpt-2.data*")
    os.truncate(newest, 100)
    again = run("-2", epochs=3)
    assert "this checkpoint cannot be read, the one before is tried" in again.text
    assert sorted(curve(again)) == [2, 3]


def test_data_is_missing(start, tmp_path):
    running = train(start, tmp_path / "none", loopback_pods.workers(2)[:1], directory=tmp_path)
    assert tasks.ended(running, timeout=30) == [2]
    assert "no CIFAR-10 in" in running[0].text
    assert "hostPath" in running[0].text
