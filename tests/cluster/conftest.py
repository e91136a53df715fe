"""The cluster layer: one real control plane per run, one namespace per test.

Everything in this folder is marked ``cluster``, runs after all other tests, and is skipped where
it cannot run, except with ``CI=true`` or ``TFADMIT_REQUIRE_CLUSTER=1``, where it then fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest

from cluster import support
from harness import environment, install, tools
from harness.cluster import Cluster

_HERE = Path(__file__).parent


# First, so that `-m "not cluster"` sees the marker.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in (item for item in items if _HERE in item.path.parents):
        item.add_marker(pytest.mark.cluster)
        _time_only_the_test(item)


def _time_only_the_test(item: pytest.Item) -> None:
    """Keep the test's time limit off its fixtures: the first one may build for minutes.

    The waits inside of the fixtures all have deadlines of their own.
    """
    stated = item.get_closest_marker("timeout")
    arguments, keywords = (stated.args, stated.kwargs) if stated else ((), {})
    limit = pytest.mark.timeout(*arguments, **{**keywords, "func_only": True})
    item.add_marker(limit, append=False)


@pytest.fixture(scope="session")
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster with JobSet and Trainer, and without tfadmit."""
    with ExitStack() as stack:
        # The first build takes minutes: its progress goes to the terminal, not into a report.
        with _uncaptured(request.config):
            try:
                started = stack.enter_context(
                    environment.running(directory=tmp_path_factory.mktemp("cluster"))
                )
            except tools.UnavailableError as error:
                support.give_up(str(error))
        yield started


@pytest.fixture(scope="session")
def tfadmit(cluster: Cluster) -> Iterator[install.Tfadmit]:
    """tfadmit as shipped, called by that cluster's API server, for the rest of the run."""
    with install.installed(cluster=cluster) as running:
        yield running


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh namespace; its deletion is not waited for."""
    name = cluster.create_namespace()
    yield name
    cluster.delete("Namespace", name)


@contextmanager
def _uncaptured(config: pytest.Config) -> Iterator[None]:
    capture = config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        yield
