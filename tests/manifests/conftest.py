"""What several manifest tests start from."""

from __future__ import annotations

import functools

import pytest

from manifests import shipped

OVERLAYS = ("self-managed", "cert-manager", "files")


@functools.cache
def _rendered(folder: str) -> tuple[shipped.Object, ...]:
    rendering = shipped.kustomize(shipped.DEPLOY / folder)
    assert (rendering.returncode, rendering.stderr) == (0, "")
    return tuple(shipped.parse(rendering.stdout))


@pytest.fixture
def base() -> list[shipped.Object]:
    """What the overlays share."""
    return list(_rendered("base"))


@pytest.fixture
def self_managed() -> list[shipped.Object]:
    """The objects that `kubectl apply -k deploy/overlays/self-managed` would apply."""
    return list(_rendered("overlays/self-managed"))


@pytest.fixture
def cert_manager() -> list[shipped.Object]:
    """The same where cert-manager issues."""
    return list(_rendered("overlays/cert-manager"))


@pytest.fixture
def files() -> list[shipped.Object]:
    """The same with certificates that somebody hands over."""
    return list(_rendered("overlays/files"))


@pytest.fixture(params=OVERLAYS)
def overlay(request: pytest.FixtureRequest) -> list[shipped.Object]:
    """Each of the three."""
    return list(_rendered(f"overlays/{request.param}"))
