"""Which programs are used, and what a failed build tells its reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import binaries, tools


@pytest.fixture
def filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache entry in which everything is built already."""
    monkeypatch.setenv("TFADMIT_CACHE", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr(tools, "kubectl", lambda **_: Path("/usr/bin/kubectl"))
    entry = binaries.entry()
    for name in binaries.PACKAGES:
        (entry / "bin").mkdir(parents=True, exist_ok=True)
        (entry / "bin" / name).touch()
    (entry / "manifests").mkdir()
    return entry


def refuse_go(**_: object) -> Path:
    raise AssertionError("a warm cache must not need Go")


def test_a_warm_cache_needs_no_go(filled: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tools, "go", refuse_go)
    found = binaries.find(say=print)
    assert found.etcd == filled / "bin" / "etcd"
    assert found.manifests == filled / "manifests"


def test_kubebuilder_assets_come_first(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assets = tmp_path / "assets"
    assets.mkdir()
    (assets / "etcd").touch()
    (assets / "etcd").chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    found = binaries.find(say=print)
    assert found.etcd == assets / "etcd"
    assert found.kube_apiserver == filled / "bin" / "kube-apiserver"


def test_a_failed_build_shows_the_command_and_its_output(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho undefined: etcd >&2\nexit 1\n")
    go.chmod(0o755)
    monkeypatch.setattr(tools, "go", lambda **_: go)
    (filled / "bin" / "etcd").unlink()
    said: list[str] = []
    with pytest.raises(binaries.BuildError, match=r"(?s)go build -mod=readonly.*undefined: etcd"):
        binaries.find(say=said.append)
    assert "building etcd" in said[0]
    assert not list((filled / "bin").glob(".*"))


def test_another_system_than_linux_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(tools.UnavailableError, match="Linux, this is darwin"):
        binaries.find(say=print)


def test_the_version_is_the_one_of_the_module():
    assert f"k8s.io/kubernetes {binaries.VERSION}" in (binaries.MODULE / "go.mod").read_text()


@pytest.mark.parametrize("package", binaries.PACKAGES.values())
def test_every_program_is_pinned_as_a_tool(package: str):
    tool_block = (binaries.MODULE / "go.mod").read_text().split("tool (", 1)[1].split(")", 1)[0]
    assert package in tool_block.split()
