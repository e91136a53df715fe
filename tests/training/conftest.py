"""Trainings with real TensorFlow processes on loopback.

Everything in this folder is marked ``training``, runs after the fast tests and before the cluster
layer, and is skipped where TensorFlow cannot be installed, except with ``CI=true``, where it fails.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import giving_up
from harness import tools
from training import environment
from training.environment import TensorFlow
from training.tasks import Task

_HERE = Path(__file__).parent
Start = Callable[..., Task]


# First, so that `-m "not training"` sees the marker.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in (item for item in items if _HERE in item.path.parents):
        item.add_marker(pytest.mark.training)
        # The first fixture may install for minutes; waits inside of fixtures have own deadlines.
        stated = item.get_closest_marker("timeout")
        seconds = stated.args[0] if stated else 180
        item.add_marker(pytest.mark.timeout(seconds, func_only=True), append=False)


@pytest.fixture(scope="session")
def tensorflow(request: pytest.FixtureRequest) -> TensorFlow:
    """TensorFlow 2.21 with Keras 3."""
    return _installed(request.config, environment.tensorflow)


@pytest.fixture(scope="session")
def tensorflow_keras2(request: pytest.FixtureRequest) -> TensorFlow:
    """TensorFlow 2.15 with Keras 2."""
    return _installed(request.config, environment.tensorflow_keras2, required=False)


@pytest.fixture(scope="session")
def digits(tensorflow: TensorFlow, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real images in CIFAR-10's format."""
    place = tmp_path_factory.mktemp("digits")
    subprocess.run([tensorflow.python, _HERE / "digits.py", place], check=True, timeout=120)
    return place


@pytest.fixture
def start(tmp_path: Path, tensorflow: TensorFlow) -> Iterator[Start]:
    """Starts a task; whatever is left of it is ended with the test."""
    started: list[Task] = []

    def begin(name: str, command: list[str], *, env: Any, **options: Any) -> Task:
        chosen = {"tensorflow": tensorflow, "directory": tmp_path, **options}
        task = Task(name, command, env=env, **chosen)
        started.append(task)
        return task

    yield begin
    for task in started:
        task.end()


def _installed(
    config: pytest.Config, install: Callable[[], TensorFlow], *, required: bool = True
) -> TensorFlow:
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        try:
            return install()
        except tools.UnavailableError as error:
            if required:
                giving_up.give_up(str(error))
            pytest.skip(str(error))
