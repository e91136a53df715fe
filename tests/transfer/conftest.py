"""Transfers against a real S3 server, built once; marked ``store``.

Skipped where the server cannot be had, except with ``CI=true``, where that fails.
"""

from __future__ import annotations

import os
import pathlib

import pytest

from harness import faulty, object_store, tools
from transfer import world

_HERE = pathlib.Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.store)
            # The first fixture may build for a minute.
            item.add_marker(pytest.mark.timeout(120, func_only=True), append=False)


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    try:
        with object_store.running(directory=tmp_path_factory.mktemp("object-store")) as running:
            yield running
    except tools.UnavailableError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture
def line(server):
    with faulty.line(to=server.port) as made:
        yield made


@pytest.fixture
def pod(server, tmp_path):
    """The chief of a job `mnist` that saves to a bucket of its own."""
    return world.Pod(server=server, bucket=server.bucket(), root=tmp_path / "workspace")
