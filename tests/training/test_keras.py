"""Keras under several replicas: refused where it would train wrongly, right where it is let."""

from pathlib import Path

import pytest

from training import environment, loopback_pods, tasks

FIT = [str(Path(__file__).parent / "scripts" / "fit.py")]
# Relative; the sums of floating-point numbers are in another order with two replicas.
TOLERANCE = 1e-4


def numbers(task, word):
    (line,) = [line for line in task.text.splitlines() if line.startswith(word)]
    return [float(text) for text in line.split()[1:]]


def assert_equal(one, two):
    for word in ("LOSS", "EVALUATED", "WEIGHTS"):
        assert numbers(one, word) == pytest.approx(numbers(two, word), rel=TOLERANCE)


def workers(start, *, make, count=2, env=None, **options):
    return [
        start(f"worker-{index}", FIT, env={**own, **(env or {}), "MAKE": make}, **options)
        for index, own in enumerate(loopback_pods.workers(count))
    ]


def local(start, name, count, **options):
    make = options.pop("make", "fit")
    return start(name, FIT, env={"LOCAL": str(count), "MAKE": make}, **options)


@pytest.fixture
def keras(tensorflow):
    return lambda version: environment.with_keras(tensorflow, version)


def test_optimizers_of_keras_3_4_are_refused(start, keras):
    task = local(start, "two", 2, tensorflow=keras("3.4.1"))
    assert task.wait(timeout=90) == 1
    assert "Keras 3.4.1 does not sum gradients over the replicas" in task.text
    assert "use Keras 3.10 or newer" in task.text


@pytest.mark.parametrize("version", ["3.7.0", "3.9.2"])
def test_fit_is_refused(start, keras, version):
    task = local(start, "two", 2, tensorflow=keras(version))
    assert task.wait(timeout=90) == 1
    assert f"model.fit() of Keras {version} fails, trains wrongly or reports wrong" in task.text


def test_keras_3_9_reports_wrong_numbers(start, keras):
    """The weights are right; loss and accuracy are not those of all batches. Plain Keras."""
    chosen = {"tensorflow": keras("3.9.2"), "make": "plain fit"}
    one, two = local(start, "one", 1, **chosen), local(start, "two", 2, **chosen)
    assert tasks.ended([one, two], timeout=120) == [0, 0], two.tail()
    assert numbers(one, "WEIGHTS") == pytest.approx(numbers(two, "WEIGHTS"), rel=TOLERANCE)
    assert numbers(one, "EVALUATED")[1] != pytest.approx(numbers(two, "EVALUATED")[1], abs=0.01)


@pytest.mark.parametrize("version", ["3.10.0", "installed"])
def test_fit_on_two_workers_equals_fit_on_one(start, keras, tensorflow, version):
    chosen = {"tensorflow": tensorflow if version == "installed" else keras(version)}
    running = workers(start, make="fit", **chosen)
    one = local(start, "one", 1, **chosen)
    assert tasks.ended([*running, one], timeout=150) == [0, 0, 0], running[0].tail()
    for task in running:
        assert_equal(task, one)
    assert "[tfadmit] epoch 3/3 (100%): accuracy " in running[0].text
    assert "epoch 3/3" not in running[1].text


def test_plain_fit_fails_on_two_workers(start):
    """When this fails, Keras is mended, and the layer in `keras_compat` does nothing any more."""
    one, two = workers(start, make="plain fit")
    assert one.wait(timeout=90) == 1
    assert "unsupported type" in one.text or "Invalid reduction dimension" in one.text
    two.end()


def test_fit_with_keras_2_on_two_workers(start, tensorflow_keras2):
    running = workers(start, make="fit", tensorflow=tensorflow_keras2)
    one = local(start, "one", 1, tensorflow=tensorflow_keras2)
    assert tasks.ended([*running, one], timeout=150) == [0, 0, 0], running[0].tail()
    for task in running:
        assert_equal(task, one)


def test_only_the_chief_evaluates(start):
    running = workers(start, make="evaluate on the chief", env={"TFADMIT_STEP_TIMEOUT": "5"})
    assert running[0].wait(timeout=90) == 77
    assert "in model.evaluate(), which all workers must call" in running[0].text


def test_weights_that_differ_are_found(start):
    running = workers(start, make="diverge", count=3)
    assert tasks.ended(running, timeout=120) == [1, 1, 1]
    for task in running:
        assert "the weights of replica 2 (" in task.text
