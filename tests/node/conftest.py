"""The node layer: one cluster with nodes per run, on which the shipped manifests really run.

Everything in this folder is marked ``node``, runs after all other tests, and is skipped where it
cannot run (it needs Linux and root), except with ``CI=true``, where it then fails.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest

import giving_up
from harness import environment, tools
from harness.cluster import Cluster
from harness.node import deploy, images, machine
from harness.node import nodes as harness_nodes
from harness.node.nodes import Nodes
from node import support, trainings
from node.trainings import Training

_HERE = Path(__file__).parent
# How long a test may take; that its fixtures build and start is not counted.
_SECONDS = 300


# First, so that `-m "not node"` sees the marker.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in (item for item in items if _HERE in item.path.parents):
        item.add_marker(pytest.mark.node)
        stated = item.get_closest_marker("timeout")
        seconds = stated.args[0] if stated else _SECONDS
        item.add_marker(pytest.mark.timeout(seconds, func_only=True), append=False)


def _fixtures(item: pytest.Item) -> Collection[str]:
    names: Collection[str] = getattr(item, "fixturenames", ())
    return names


@pytest.fixture(scope="session", autouse=True)
def _possible() -> None:
    """Skip, or fail, where there can be no nodes."""
    if os.environ.get(environment.NAMED):
        return
    if reason := machine.why_not():
        giving_up.give_up(reason)


@pytest.fixture(scope="session")
def nodes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Nodes]:
    """A cluster with two nodes, JobSet and Trainer, and without tfadmit."""
    with ExitStack() as stack:
        # The first build takes minutes: its progress goes to the terminal, not into a report.
        with _uncaptured(request.config), _unavailable_is_told():
            directory = tmp_path_factory.mktemp("nodes")
            recipes = [images.WEBHOOK]
            if any("training_image" in _fixtures(item) for item in request.session.items):
                recipes += [images.TENSORFLOW, images.TRAINING, images.TRANSFER]
            started = stack.enter_context(
                harness_nodes.running(directory=directory, recipes=recipes)
            )
        yield started


@pytest.fixture(scope="session")
def cluster(nodes: Nodes) -> Cluster:
    """The cluster of these nodes."""
    return nodes.cluster


@pytest.fixture(scope="session")
def tfadmit(cluster: Cluster) -> Iterator[None]:
    """tfadmit in the cluster, installed as the page for platform teams says."""
    with deploy.installed(cluster):
        yield


@pytest.fixture(scope="session")
def training_image(nodes: Nodes) -> str:
    """The image to train with, which is on all nodes when a test asks for it."""
    return images.TRAINING.name


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh namespace; its deletion is not waited for."""
    name = cluster.create_namespace()
    yield name
    cluster.delete("Namespace", name)


@pytest.fixture(scope="session")
def data(nodes: Nodes, training_image: str) -> Iterator[Path]:
    """A folder that all nodes share, as they would a network file system, with images in it."""
    if not nodes.own:
        pytest.skip("on a cluster of somebody else's no storage is known that all nodes share")
    place = harness_nodes.state() / "storage"
    (place / "data").mkdir(parents=True)
    for folder in (place, place / "data"):
        folder.chmod(0o777)
    script = (tools.ROOT / "tests/training/digits.py").read_text()
    namespace = nodes.cluster.create_namespace()
    pod = support.pod(
        namespace, "images", "python", "-c", script, "/storage/data", image=images.TRAINING.name,
        volumeMounts=[{"name": "storage", "mountPath": "/storage"}],
    )  # fmt: skip
    pod["spec"]["volumes"] = [{"name": "storage", "hostPath": {"path": str(place)}}]
    support.ended(nodes.cluster, pod)
    nodes.cluster.delete("Namespace", namespace)
    yield place
    shutil.rmtree(place)


@pytest.fixture
def training(cluster: Cluster, tfadmit: None, namespace: str, data: Path) -> Iterator[Training]:
    """A training on two nodes that a test starts and disturbs."""
    output = data / "out"
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir()
    output.chmod(0o777)
    yield Training(cluster=cluster, namespace=namespace, storage=data)
    # Its pods use both cores: the next test starts without them.
    cluster.delete("TrainJob", trainings.NAME, namespace)
    cluster.wait(
        lambda: cluster.list("Pod", namespace),
        until=lambda pods: not pods,
        timeout=60,
        what="the pods are gone",
    )


@contextmanager
def _uncaptured(config: pytest.Config) -> Iterator[None]:
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        yield


@contextmanager
def _unavailable_is_told() -> Iterator[None]:
    try:
        yield
    except tools.UnavailableError as error:
        giving_up.give_up(str(error))
