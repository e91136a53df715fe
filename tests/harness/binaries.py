"""The server programs of the test cluster and the upstream manifests: found, or built once.

Order for each program: ``KUBEBUILDER_ASSETS``, the cache, a build from ``go/controlplane``.
A warm cache needs neither Go nor a network.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness import cache, tools

MODULE = Path(__file__).parent / "go" / "controlplane"
KUBERNETES = (1, 36, 3)
VERSION = "v" + ".".join(map(str, KUBERNETES))

PACKAGES: Mapping[str, str] = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "jobset": "sigs.k8s.io/jobset",
    "trainer": "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
}

# What is copied out of the Go modules: (module, path in it, path in the cache entry).
MANIFESTS = (
    ("sigs.k8s.io/jobset", "config/components/crd/bases", "jobset/crds"),
    ("sigs.k8s.io/jobset", "config/components/webhook/manifests.yaml", "jobset/webhooks.yaml"),
    ("github.com/kubeflow/trainer/v2", "manifests/base/crds", "trainer/crds"),
    (
        "github.com/kubeflow/trainer/v2",
        "manifests/base/webhook/manifests.yaml",
        "trainer/webhooks.yaml",
    ),
)

# Without these the API server calls itself v0.0.0 and clients refuse it.
_STAMP = "k8s.io/component-base/version"
_LDFLAGS = (
    f"-s -w -X {_STAMP}.gitVersion={VERSION}"
    f" -X {_STAMP}.gitMajor={KUBERNETES[0]} -X {_STAMP}.gitMinor={KUBERNETES[1]}"
)
BUILD_FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false", f"-ldflags={_LDFLAGS}")


class BuildError(RuntimeError):
    """A program could not be built; the message shows the command and what it printed."""


@dataclass(frozen=True, kw_only=True)
class Binaries:
    """Everything that a cluster is started from."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    jobset: Path
    trainer: Path
    kubectl: Path
    manifests: Path


def find(*, say: cache.Say = cache.to_stderr) -> Binaries:
    """Every program and manifest, built now when nothing else has them."""
    if sys.platform != "linux":
        raise tools.UnavailableError(f"the test cluster runs on Linux, this is {sys.platform}")
    place = entry()
    programs = {name: _asset(name) or place / "bin" / name for name in PACKAGES}
    manifests = place / "manifests"
    if not all(path.exists() for path in (*programs.values(), manifests)):
        with cache.lock(place, say=say):
            _fill(programs=programs, manifests=manifests, say=say)
    return Binaries(
        etcd=programs["etcd"],
        kube_apiserver=programs["kube-apiserver"],
        kube_controller_manager=programs["kube-controller-manager"],
        jobset=programs["jobset"],
        trainer=programs["trainer"],
        kubectl=tools.kubectl(minor=KUBERNETES[1], say=say),
        manifests=manifests,
    )


def entry() -> Path:
    """The cache entry for exactly these modules, flags, packages and this kind of machine."""
    recipe = [*BUILD_FLAGS, repr(sorted(PACKAGES.items())), repr(MANIFESTS), platform.machine()]
    name = cache.key(files=[MODULE / "go.mod", MODULE / "go.sum"], also=recipe)
    return cache.directory() / f"controlplane-{name}"


def _asset(name: str) -> Path | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    found = shutil.which(name, path=assets) if assets else None
    return Path(found) if found else None


def _fill(*, programs: Mapping[str, Path], manifests: Path, say: cache.Say) -> None:
    go = tools.go(module=MODULE, say=say)
    # Asked again under the lock: the run that held it before may have built all of them.
    missing = [name for name, path in programs.items() if not path.exists()]
    if missing:
        say(f"building {', '.join(missing)}: once, 5 to 12 minutes on 2 cores")
    for number, name in enumerate(missing, start=1):
        say(f"[{number}/{len(missing)}] go build {PACKAGES[name]}")
        started = time.monotonic()
        with cache.created(programs[name]) as target:
            run(go, "build", *BUILD_FLAGS, "-o", target, PACKAGES[name])
        say(f"[{number}/{len(missing)}] {name} took {time.monotonic() - started:.0f} s")
    if not manifests.exists():
        with cache.created(manifests) as target:
            _copy_manifests(go, target=target)


def _copy_manifests(go: Path, *, target: Path) -> None:
    for module, inside, name in MANIFESTS:
        shipped = source(go, module) / inside
        destination = target / name
        destination.parent.mkdir(parents=True, exist_ok=True)
        if shipped.is_dir():
            # Files of the module cache are read-only, which would make the cache hard to remove.
            shutil.copytree(shipped, destination, copy_function=shutil.copyfile)
            destination.chmod(0o755)
        else:
            shutil.copyfile(shipped, destination)


def source(go: Path, module: str) -> Path:
    """Where Go keeps the source of a module, at the version that is pinned here."""
    # A machine that built elsewhere has the programs but perhaps not the module's source.
    run(go, "mod", "download", module)
    return Path(run(go, "list", "-m", "-f", "{{.Dir}}", module).strip())


def run(
    program: Path,
    *arguments: str | Path,
    module: Path = MODULE,
    environ: Mapping[str, str] | None = None,
) -> str:
    """Run Go, or a tool that runs it, in the folder of a module."""
    # GOWORK: a go.work above the checkout must not change what is built.
    variables = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", **(environ or {})}
    command = [str(part) for part in (program, *arguments)]
    answer = subprocess.run(
        command, cwd=module, env=variables, capture_output=True, text=True, check=False
    )
    if answer.returncode:
        raise BuildError(f"in {module}: {' '.join(command)}\n{answer.stdout}{answer.stderr}")
    return answer.stdout
