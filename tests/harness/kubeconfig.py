"""kubeconfig files: who a program is when it talks to the API server."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def for_token(*, server: str, ca: bytes, token: str) -> dict[str, Any]:
    """A kubeconfig with one cluster and one user who shows a bearer token."""
    cluster = {
        "server": server,
        "certificate-authority-data": base64.b64encode(ca).decode(),
    }
    return _kubeconfig(cluster=cluster, token=token)


def with_token(kubeconfig: Mapping[str, Any], *, token: str) -> dict[str, Any]:
    """The same (minified) cluster for another user."""
    return _kubeconfig(cluster=kubeconfig["clusters"][0]["cluster"], token=token)


def write(path: Path, kubeconfig: Mapping[str, Any]) -> Path:
    """Write it for its owner only: it holds a credential. JSON is YAML."""
    path.touch(mode=0o600)
    path.write_text(json.dumps(kubeconfig, indent=2))
    return path


def _kubeconfig(*, cluster: Mapping[str, Any], token: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": dict(cluster)}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
