"""What several manifest tests start from."""

from __future__ import annotations

import subprocess

import pytest

from manifests import shipped


@pytest.fixture(scope="session")
def rendering() -> subprocess.CompletedProcess[str]:
    """What `kubectl kustomize deploy/base` said."""
    return shipped.kustomize(shipped.DEPLOY / "base")


@pytest.fixture(scope="session")
def base(rendering: subprocess.CompletedProcess[str]) -> list[shipped.Object]:
    """The objects that `kubectl apply -k deploy/base` would apply."""
    assert rendering.returncode == 0, rendering.stderr
    return shipped.parse(rendering.stdout)
