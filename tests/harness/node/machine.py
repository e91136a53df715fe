"""A machine out of namespaces: processes, mounts and network of its own, on the tests' kernel.

The kernel ends all processes of a process namespace with the first one of them, and with the last
process go the mounts and the network. The first process ends with the test run, however that ends:
so nothing is left, not even after `kill -9`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from harness.process import Process

# The kubelet sets these for the whole kernel. It is shown the values that it wants, so that it
# leaves those of the tests' machine alone.
KERNEL_SETTINGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}

# $1 is the machine's name, $2 its directory, $3 the program that stays. What containerd, the
# kubelet and CNI keep under fixed paths is hidden from the tests' machine by mounts over their
# parents.
_SET_UP = """
set -eu
mount --make-rshared /
hostname "$1"
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib
mount -t tmpfs tmpfs /var/log
mkdir -p /var/lib/kubelet /var/log/pods "$2/kubelet" "$2/pods"
mount --bind "$2/kubelet" /var/lib/kubelet
mount --bind "$2/pods" /var/log/pods
while read -r setting value; do
    [ -e "/proc/sys/$setting" ] || continue
    echo "$value" > "/run/shown"
    cp /run/shown "/run/shown-$(echo "$setting" | tr / -)"
    mount --bind "/run/shown-$(echo "$setting" | tr / -)" "/proc/sys/$setting"
done < "$2/kernel-settings"
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
touch "$2/set-up"
exec "$3"
"""
_NAMESPACES = ("--mount", "--net", "--uts", "--ipc", "--pid")


class Machine:
    """One such machine; programs are started in it by putting ``inside`` before their commands."""

    def __init__(self, *, name: str, directory: Path, first: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.directory = directory
        self._ready = directory / "set-up"
        self._process = Process(
            name=f"machine {name}",
            command=[
                "/usr/bin/unshare",
                *_NAMESPACES,
                "--fork",
                "--kill-child",
                "--mount-proc",
                *("/bin/sh", "-c", _SET_UP, "sh", name, directory, first),
            ],
            log=directory / "machine.log",
        )

    def start(self) -> Machine:
        """Make the namespaces; afterwards programs can be started in them."""
        self._ready.unlink(missing_ok=True)
        settings = "".join(f"{name} {value}\n" for name, value in KERNEL_SETTINGS.items())
        (self.directory / "kernel-settings").write_text(settings)
        self._process.start(ready=self._ready.exists)
        return self

    def stop(self) -> None:
        """End every process in it, and with them its mounts and its network."""
        if self._process.running:
            first = self.pid
            # The first process of a namespace heeds only signals that it handles, and this one.
            with suppress(ProcessLookupError):
                subprocess.run(["kill", "-KILL", str(first)], check=False, capture_output=True)
        self._process.stop()

    @property
    def pid(self) -> int:
        """The id of its first process, on the tests' machine."""
        outer = self._process.pid
        (first,) = Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
        return int(first)

    def inside(self, *command: str | Path) -> list[str | Path]:
        """The command that runs a command in this machine."""
        return ["/usr/bin/nsenter", f"--target={self.pid}", *_NAMESPACES, "--", *command]

    def run(self, *command: str | Path, timeout: float = 120) -> str:
        """Run a command in this machine and return what it prints; a failure shows it."""
        return run(self.inside(*command), timeout=timeout)


def run(command: Sequence[str | Path], *, timeout: float = 60) -> str:
    """Run a command and return what it prints; a failure shows it."""
    arguments = [str(part) for part in command]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=timeout)
    if done.returncode:
        raise AssertionError(f"{' '.join(arguments)}\n{done.stdout}{done.stderr}")
    return done.stdout


def why_not() -> str | None:
    """Why no such machine can be had here, in a sentence; None when it can."""
    if sys.platform != "linux":
        return f"nodes need Linux, and this is {sys.platform}"
    try_it = [
        "unshare",
        *_NAMESPACES,
        "--fork",
        "--mount-proc",
        "mount",
        "-t",
        "tmpfs",
        "none",
        "/run",
    ]
    done = subprocess.run(try_it, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"nodes need root: `{' '.join(try_it)}` says: {done.stderr.strip()}"
    return None
