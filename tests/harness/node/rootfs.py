"""A root file system that stands for the official image ``python:3.13-slim``, made by debootstrap.

The same: Debian trixie, Python 3.13, `python` and `pip` in /usr/local/bin. Not the same: there
Python is built into /usr/local, here it is Debian's own and /usr/local a virtual environment of it;
and the variables that name the release of Python are missing.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

from harness import cache, tools

NAME = "python:3.13-slim"
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"}

_SUITE = "trixie"
_PACKAGES = ("python3", "python3-venv", "ca-certificates")
# What the package manager needs and no image does; what belongs to the machine that made it.
_REMOVED = ("var/cache/apt", "var/lib/apt/lists", "var/log", "usr/share/doc", "usr/share/man")
_EMPTIED = ("etc/resolv.conf", "etc/hostname")
_FORMAT = "2"


def entry() -> Path:
    """The cache entry for exactly this recipe and this kind of machine."""
    recipe = [_SUITE, *_PACKAGES, *_REMOVED, *_EMPTIED, _FORMAT, platform.machine()]
    return cache.directory() / f"rootfs-{_SUITE}-{cache.key(files=[], also=recipe)}"


def ready(*, say: cache.Say = cache.to_stderr) -> Path:
    """The directory, made now when it is missing.

    Raises:
        tools.UnavailableError: Debian's mirror cannot be reached.
    """
    target = entry() / "rootfs"
    if not target.exists():
        with cache.lock(entry(), say=say):
            if not target.exists():
                say(f"debootstrap {_SUITE}: once, 1 to 2 minutes")
                with cache.created(target) as partial:
                    _make(partial)
    return target


def _make(target: Path) -> None:
    include = f"--include={','.join(_PACKAGES)}"
    _run("debootstrap", "--variant=minbase", include, _SUITE, str(target))
    _run("chroot", str(target), "python3", "-m", "venv", "/usr/local")
    for name in _REMOVED:
        shutil.rmtree(target / name, ignore_errors=True)
        (target / name).mkdir()
    for name in _EMPTIED:
        (target / name).write_text("")


def _run(*command: str) -> None:
    environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    done = subprocess.run(
        ["nice", *command], capture_output=True, text=True, check=False, env=environ
    )
    if done.returncode:
        end = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise tools.UnavailableError(f"`{' '.join(command)}` failed:\n{end}")
