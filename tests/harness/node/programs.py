"""The programs of a node: built once from pinned Go modules, or installed by Debian's apt.

Knows the names of packages and programs; does not know what they are started with.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import binaries, cache, tools

MODULES = Path(__file__).parents[1] / "go" / "node"
CNI_PLUGINS = Path("/usr/lib/cni")

# A program of Debian, and the package that brings it.
_DEBIAN: Mapping[str, str] = {
    "/usr/sbin/runc": "runc",
    f"{CNI_PLUGINS}/bridge": "containernetworking-plugins",
    "/usr/sbin/iptables": "iptables",
    "/usr/sbin/debootstrap": "debootstrap",
    "/usr/sbin/ip": "iproute2",
    "/usr/bin/nsenter": "util-linux",
}


@dataclass(frozen=True, kw_only=True)
class Module:
    """One Go module, and the programs that come out of it."""

    name: str
    packages: Mapping[str, str]
    flags: tuple[str, ...] = binaries.BUILD_FLAGS

    @property
    def folder(self) -> Path:
        """Where its go.mod lies."""
        return MODULES / self.name

    @property
    def entry(self) -> Path:
        """The cache entry for exactly this content, these flags and this kind of machine."""
        files = sorted(file for file in self.folder.iterdir() if file.name != "README.md")
        recipe = [*self.flags, repr(sorted(self.packages.items())), platform.machine()]
        return cache.directory() / f"node-{self.name}-{cache.key(files=files, also=recipe)}"


_CONTAINERD = "github.com/containerd/containerd/v2/cmd"

_KUBERNETES = Module(
    name="kubernetes",
    packages={
        "kubelet": "k8s.io/kubernetes/cmd/kubelet",
        "kube-proxy": "k8s.io/kubernetes/cmd/kube-proxy",
        "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    },
)
MODULE_LIST = (
    _KUBERNETES,
    Module(
        name="containerd",
        packages={
            "containerd": f"{_CONTAINERD}/containerd",
            "containerd-shim-runc-v2": f"{_CONTAINERD}/containerd-shim-runc-v2",
            "ctr": f"{_CONTAINERD}/ctr",
        },
        # Snapshotters that nobody uses here, which need libraries in C.
        flags=(*binaries.BUILD_FLAGS, "-tags=no_btrfs,no_zfs,no_devmapper"),
    ),
    Module(name="coredns", packages={"coredns": "github.com/coredns/coredns"}),
    Module(name="pause", packages={"pause": "."}),
)


@dataclass(frozen=True, kw_only=True)
class Programs:
    """Everything that a node is started from, beside what stands in Debian's own folders."""

    kubelet: Path
    kube_proxy: Path
    kube_scheduler: Path
    containerd: Path
    ctr: Path
    coredns: Path
    pause: Path


def find(*, say: cache.Say = cache.to_stderr) -> Programs:
    """Every program, built or installed now where it is missing.

    Raises:
        tools.UnavailableError: a package of Debian is missing and cannot be installed.
        binaries.BuildError: a program does not build.
    """
    _install_missing(say=say)
    found = {
        name: path
        for module in MODULE_LIST
        for name, path in _built(module, names=module.packages, say=say).items()
    }
    return Programs(
        kubelet=found["kubelet"],
        kube_proxy=found["kube-proxy"],
        kube_scheduler=found["kube-scheduler"],
        # Its shim lies in the same folder, where it is looked up.
        containerd=found["containerd"],
        ctr=found["ctr"],
        coredns=found["coredns"],
        pause=found["pause"],
    )


def kube_scheduler(*, say: cache.Say = cache.to_stderr) -> Path:
    """The scheduler alone, which needs neither root nor Debian, for nodes that are not real."""
    return _built(_KUBERNETES, names=["kube-scheduler"], say=say)["kube-scheduler"]


def _built(module: Module, *, names: Iterable[str], say: cache.Say) -> Mapping[str, Path]:
    programs = {name: module.entry / "bin" / name for name in names}
    if not all(path.exists() for path in programs.values()):
        with cache.lock(module.entry, say=say):
            go = tools.go(module=module.folder, say=say)
            for name, path in programs.items():
                # Asked again under the lock: the run that held it before may have built it.
                if not path.exists():
                    _build(module, go=go, name=name, target=path, say=say)
    return programs


def _build(module: Module, *, go: Path, name: str, target: Path, say: cache.Say) -> None:
    say(f"go build {module.packages[name]}: once, up to 3 minutes on 2 cores")
    started = time.monotonic()
    with cache.created(target) as partial:
        command: list[str | Path] = ["build", *module.flags, "-o", partial, module.packages[name]]
        # Whoever works on the machine meanwhile comes first.
        binaries.run(Path("/usr/bin/nice"), go, *command, module=module.folder)
    say(f"{name} took {time.monotonic() - started:.0f} s")


def _install_missing(*, say: cache.Say) -> None:
    missing = sorted({pack for path, pack in _DEBIAN.items() if not Path(path).exists()})
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise tools.UnavailableError(
            f"a node needs {', '.join(missing)} (names of Debian's packages) and there is no"
            " apt-get to install them: install them, or run on Debian or Ubuntu"
        )
    say(f"apt-get install {' '.join(missing)}")
    # The second time with fresh lists: they may name versions that the mirror dropped.
    install = ["apt-get", "install", "--yes", "--no-install-recommends", *missing]
    for command in (install, ["apt-get", "update"], install):
        done = subprocess.run(
            ["nice", *command],
            capture_output=True,
            text=True,
            check=False,
            env={"DEBIAN_FRONTEND": "noninteractive", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )
        if command == install and done.returncode == 0:
            return
    raise tools.UnavailableError(
        f"`apt-get install {' '.join(missing)}` failed:\n{done.stderr.strip()}"
    )
