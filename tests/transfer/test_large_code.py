"""Code that is too large for a ConfigMap: uploaded once, fetched in the pod, unpacked there."""

from __future__ import annotations

import base64
import dataclasses
import os
import subprocess
import sys
from typing import Any

import pytest

from tfadmit_client import fault
from tfadmit_client.submit import code, code_store, launcher_zip

SECRET = "store"
MIB = 1024 * 1024


class Cluster:
    """Has one Secret, or says that it may not be read."""

    def __init__(self, environ):
        self._environ = environ

    def get(self, kind, *, namespace, name):
        assert (kind.name, namespace, name) == ("Secret", "team", SECRET)
        data = {key: base64.b64encode(text.encode()) for key, text in self._environ.items()}
        return {"data": {key: text.decode() for key, text in data.items()}}


@pytest.fixture
def folder(tmp_path):
    top = tmp_path / "digits"
    top.mkdir()
    (top / "train.py").write_text("print(len(open('weights.bin', 'rb').read()))\n")
    (top / "weights.bin").write_bytes(os.urandom(1_500_000))
    return top


@pytest.fixture
def made(folder):
    found, packed = code.of(str(folder), ["python", "train.py"])
    return found, packed


@pytest.fixture
def opened(pod):
    def open_it(environ=None, base=pod.base, bar=None):
        cluster: Any = Cluster(environ or pod.server.environ())
        return code_store.opened(
            cluster, base, namespace="team", secret=SECRET, environ={}, bar=bar
        )

    return open_it


def stored_of(made, base):
    placed = code.placed(*made, folder=".", output=base).stored
    assert placed
    return placed


def test_row_6_it_is_uploaded_once_with_the_secrets_credentials(pod, made, opened):
    found, packed = made
    stored = stored_of(made, pod.base)
    assert code.upload(opened(), stored, packed.content) is True
    assert code.upload(opened(), stored, packed.content) is False
    assert dict(pod.server.objects(pod.bucket)) == {
        f"results/code-{found.sha256}.tgz": packed.content
    }


def test_what_has_arrived_is_counted_while_parts_are_on_the_way(pod):
    content = os.urandom(24 * MIB)
    chunks = (content[at : at + MIB] for at in range(0, len(content), MIB))
    told: list[int] = []
    pod.store().upload("code", chunks, size=len(content), sent=told.append)
    assert told == sorted(told)
    # Two parts of 5 MiB may still be on the way when the last is handed over.
    assert told[-1] == 14 * MIB
    assert dict(pod.server.objects(pod.bucket))["results/mnist/code"] == content


def test_a_line_on_the_terminal_counts_and_is_taken_away(pod, made, opened):
    found, packed = made
    stored = stored_of(made, pod.base)
    drawn: list[str] = []
    assert code.upload(opened(bar=drawn.append), stored, packed.content) is True
    assert drawn[-1] == ""
    assert f"results/code-{found.sha256}.tgz" in pod.server.objects(pod.bucket)


def test_row_4_it_is_fetched_checked_and_unpacked_in_the_pod(pod, made, opened, tmp_path):
    _, packed = made
    stored = stored_of(made, pod.base)
    code.upload(opened(), stored, packed.content)
    pod = dataclasses.replace(pod, data=stored.line)
    assert pod.fetch() == 0
    launcher = tmp_path / "launcher.pyz"
    launcher.write_bytes(launcher_zip.build())
    environ = {
        "PATH": os.environ["PATH"],
        "TFADMIT_WORKSPACE": str(pod.root),
        "TFADMIT_CODE_SHA256": stored.sha256,
        "TFADMIT_TERMINATION_LOG": str(tmp_path / "reason"),
    }
    done = subprocess.run(
        [sys.executable, str(launcher), "--", sys.executable, "train.py"],
        env=environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "1500000\n"), done.stderr


def test_a_bucket_that_is_not_there_is_refused_in_a_sentence(pod, made, opened):
    _, packed = made
    base = "s3://no-such-bucket/x"
    stored = stored_of(made, base)
    with pytest.raises(fault.ClientError, match="no-such-bucket"):
        code.upload(opened(base=base), stored, packed.content)


def test_wrong_keys_are_refused_in_a_sentence(pod, made, opened):
    _, packed = made
    stored = stored_of(made, pod.base)
    environ = {**pod.server.environ(), "AWS_SECRET_ACCESS_KEY": "wrong"}
    with pytest.raises(fault.ClientError) as caught:
        code.upload(opened(environ), stored, packed.content)
    assert "Traceback" not in str(caught.value)
    assert pod.server.objects(pod.bucket) == {}
