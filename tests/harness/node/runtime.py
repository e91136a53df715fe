"""containerd on one machine, its network for pods, and its store of images."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path

from harness.node import oci, plan, programs
from harness.node.machine import Machine
from harness.process import Process

_SOCKET = "/run/containerd/containerd.sock"
ENDPOINT = f"unix://{_SOCKET}"
# What containerd keeps, below the directory of its machine.
ROOT = Path("containerd", "root")
PAUSE_IMAGE = "tfadmit.dev/tests/pause:1"
# Where the kubelet's images are in containerd.
_NAMESPACE = "k8s.io"

# ptp and not bridge: between two pods behind one bridge the answer of a service would take the
# short way, past the rules that translate its address back, unless the kernel has br_netfilter.
_NETWORK = "ptp"


class Runtime:
    """containerd and what it is asked for by the tests: to take images in."""

    def __init__(self, *, node: plan.Node, machine: Machine, found: programs.Programs) -> None:
        self._machine = machine
        self._found = found
        directory = machine.directory / "containerd"
        directory.mkdir(exist_ok=True)
        network = directory / "cni"
        network.mkdir(exist_ok=True)
        (network / "10-tests.conflist").write_text(json.dumps(_network(node)))
        self._configuration = directory / "config.toml"
        self._configuration.write_text(_configuration(directory=directory, network=network))
        self._log = directory / "containerd.log"
        self.process: Process | None = None

    def start(self) -> Process:
        """Start it and wait until it answers."""
        # The shim is looked up on PATH.
        path = f"{self._found.containerd.parent}:{os.environ['PATH']}:/usr/sbin:/sbin"
        command: list[str | Path] = [self._found.containerd, "--config", self._configuration]
        self.process = Process(
            name=f"containerd of {self._machine.name}",
            command=self._machine.inside(*command),
            log=self._log,
            environ={"PATH": path},
        )
        return self.process.start(ready=self._answers)

    def take(self, archive: Path) -> None:
        """Take the images of an OCI archive in, under the names that stand in it."""
        self.ctr("images", "import", "--local", archive)

    def ctr(self, *arguments: str | Path, timeout: float = 300) -> str:
        """Ask containerd by its own command."""
        ctr: list[str | Path] = [self._found.ctr, "--address", _SOCKET, "--namespace", _NAMESPACE]
        return self._machine.run(*ctr, *arguments, timeout=timeout)

    def _answers(self) -> bool:
        try:
            self.ctr("version", timeout=10)
        except AssertionError:
            return False
        return True


def pause_archive(target: Path, *, program: Path) -> Path:
    """Write the image of the first process of each pod."""
    layer = target.with_suffix(".layer")
    with tarfile.open(layer, "w") as archive:
        archive.add(program, arcname="pause")
    settings = oci.Settings(entrypoint=("/pause",), user="65535:65535")
    oci.write(target, name=PAUSE_IMAGE, layers=[layer], settings=settings)
    return target


def _configuration(*, directory: Path, network: Path) -> str:
    return f"""\
version = 3
root = "{directory.parent / ROOT}"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]

[grpc]
address = "{_SOCKET}"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"

[plugins."io.containerd.cri.v1.runtime"]
disable_apparmor = true
# In a container of a CI system the score of the machine's own processes may not be lowered.
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{programs.CNI_PLUGINS}"]
conf_dir = "{network}"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def _network(node: plan.Node) -> Mapping[str, object]:
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": node.pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    return {
        "cniVersion": "1.0.0",
        "name": "tests",
        "plugins": [
            {"type": _NETWORK, "ipMasq": False, "ipam": addresses},
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
