"""What the benchmarks run, built or installed once and kept in the cache.

The Go programs of `harness/go/bench`, kwok, and a virtual environment with the servers that are
compared.
"""

from __future__ import annotations

import functools
import platform
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from harness import binaries, cache, tools

MODULE = Path(binaries.__file__).parent / "go" / "bench"
LOCK_FILE = tools.ROOT / "requirements" / "bench.lock"
_FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w")
_PACKAGES = ("anchor", "load")
KWOK_MODULE = Path(binaries.__file__).parent / "go" / "kwok"
_KWOK = "sigs.k8s.io/kwok/cmd/kwok"
# The last thing written: a virtual environment cannot be renamed into place.
_COMPLETE = ".complete"


@dataclass(frozen=True, kw_only=True)
class Programs:
    """The Go programs."""

    anchor: Path
    load: Path


def build(*, say: cache.Say = cache.to_stderr) -> Programs:
    """The Go programs, built now when this state of their source was not built before."""
    sources = sorted([MODULE / "go.mod", MODULE / "go.sum", *MODULE.glob("*/*.go")])
    entry = (
        cache.directory() / f"bench-{cache.key(files=sources, also=[*_FLAGS, platform.machine()])}"
    )
    found = {name: entry / name for name in _PACKAGES}
    with cache.lock(entry, say=say):
        for name, path in found.items():
            if not path.exists():
                say(f"go build {name}: once, a minute or two")
                go = tools.go(module=MODULE, say=say)
                with cache.created(path) as target:
                    binaries.run(go, "build", *_FLAGS, "-o", target, f"./{name}", module=MODULE)
    return Programs(**found)


def kwok(*, say: cache.Say = cache.to_stderr) -> Path:
    """The kubelet of nodes that do not exist, built now when the cache lacks it."""
    files = [KWOK_MODULE / "go.mod", KWOK_MODULE / "go.sum"]
    name = cache.key(files=files, also=[*_FLAGS, _KWOK, platform.machine()])
    entry = cache.directory() / f"kwok-{name}"
    return cache.made(entry, "kwok", make=functools.partial(_build_kwok, say=say), say=say)


def _build_kwok(target: Path, *, say: cache.Say) -> None:
    say(f"go build {_KWOK}: once, one to three minutes")
    go = tools.go(module=KWOK_MODULE, say=say)
    with cache.created(target) as partial:
        binaries.run(go, "build", *_FLAGS, "-o", partial, _KWOK, module=KWOK_MODULE)


def python(*, say: cache.Say = cache.to_stderr) -> Path:
    """A Python that has the servers that are compared, and what the webhook needs."""
    release = f"{sys.version_info.major}.{sys.version_info.minor}"
    entry = cache.directory() / f"bench-python-{cache.key(files=[LOCK_FILE], also=[release])}"
    program = entry / "venv" / "bin" / "python"
    with cache.lock(entry, say=say):
        if not (entry / _COMPLETE).exists():
            say(f"installing {LOCK_FILE.name} into {entry}: once")
            venv.create(entry / "venv", clear=True, with_pip=True, symlinks=True)
            _install(program)
            (entry / _COMPLETE).touch()
    return program


def _install(program: Path) -> None:
    command = [str(program), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--only-binary", ":all:", "--requirement", str(LOCK_FILE)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise tools.UnavailableError(f"could not install {LOCK_FILE}:\n{answer.stderr.strip()}")
