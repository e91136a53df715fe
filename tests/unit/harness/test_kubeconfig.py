"""kubeconfig files for a token."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path

from harness import kubeconfig


def test_it_names_the_server_its_authority_and_the_token():
    made = kubeconfig.for_token(server="https://127.0.0.1:6443", ca=b"PEM", token="t0ken")
    cluster = made["clusters"][0]["cluster"]
    assert cluster["server"] == "https://127.0.0.1:6443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"PEM"
    assert made["users"][0]["user"] == {"token": "t0ken"}
    context = next(c for c in made["contexts"] if c["name"] == made["current-context"])
    assert context["context"] == {
        "cluster": made["clusters"][0]["name"],
        "user": made["users"][0]["name"],
    }


def test_another_user_of_the_same_cluster_keeps_all_of_its_settings():
    cluster = {"server": "https://elsewhere", "tls-server-name": "api", "proxy-url": "http://p"}
    theirs = {
        "clusters": [{"name": "kind", "cluster": cluster}],
        "users": [{"name": "me", "user": {"client-key-data": "secret"}}],
    }
    made = kubeconfig.with_token(theirs, token="t0ken")
    assert made["clusters"][0]["cluster"] == cluster
    assert made["users"] == [{"name": "test", "user": {"token": "t0ken"}}]


def test_only_its_owner_can_read_it(tmp_path: Path):
    made = kubeconfig.for_token(server="https://127.0.0.1", ca=b"PEM", token="t0ken")
    path = kubeconfig.write(tmp_path / "kubeconfig", made)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == made
