"""Transfers against a real S3 server, built once; marked ``store``.

Tests marked ``every_store`` run once more by Google's protocol, which a gateway before it speaks.

Skipped where the server cannot be had, except with ``CI=true``, where that fails.
"""

from __future__ import annotations

import pathlib

import pytest

import giving_up
from harness import faulty, google_store, object_store, tools
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
        giving_up.give_up(str(error))


@pytest.fixture(scope="session")
def google(server):
    with google_store.running(server) as running:
        yield running


def pytest_generate_tests(metafunc):
    if metafunc.definition.get_closest_marker("every_store"):
        metafunc.parametrize("scheme", ["s3", "gs"])


@pytest.fixture
def scheme():
    return "s3"


@pytest.fixture
def front(scheme, request):
    """What clients ask: the S3 server, or the gateway before it."""
    return request.getfixturevalue({"s3": "server", "gs": "google"}[scheme])


@pytest.fixture
def line(front):
    with faulty.line(to=front.port) as made:
        yield made


@pytest.fixture
def pod(server, front, scheme, tmp_path):
    """The chief of a job `mnist` that saves to a bucket of its own."""
    return world.Pod(
        server=server,
        front=front,
        scheme=scheme,
        bucket=server.bucket(),
        root=tmp_path / "workspace",
    )
