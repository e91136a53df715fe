"""What nodes leave on the tests' machine: finding it, and removing it.

The kernel ends processes, mounts, namespaces and interfaces with a node; here is the rest, and the
list by which a test proves that there is no more.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from harness import cache
from harness.node import machine, plan

_GROUPS = Path("/sys/fs/cgroup")
_SECONDS = 10


def remove(place: Path) -> None:
    """Remove what nodes that ended, or were killed, left: interfaces, control groups, files."""
    for name in _interfaces():
        subprocess.run(["/usr/sbin/ip", "link", "delete", name], check=False, capture_output=True)
    for group in _control_groups():
        _remove_group(group)
    for entry in place.iterdir() if place.exists() else ():
        # The lock is held through its file.
        if entry.name != ".lock":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def of_this_machine(place: Path) -> dict[str, list[str]]:
    """Everything that a node could leave, by kind, as sorted lines to compare."""
    return {
        "processes": sorted(_processes(place)),
        "mounts": sorted(Path("/proc/self/mountinfo").read_text().splitlines()),
        "namespaces": sorted(_namespaces()),
        "interfaces": sorted(_every_interface()),
        "routes": sorted(_printed("/usr/sbin/ip", "route", "show", "table", "all")),
        "rules of the packet filter": sorted(_packet_filter()),
        "control groups": sorted(map(str, _control_groups())),
        "files": sorted(str(entry) for entry in place.glob("[!.]*")),
        "settings of the kernel": sorted(_settings()),
    }


def _interfaces() -> list[str]:
    return [name for name in _every_interface() if name.startswith(plan.PREFIX)]


def _every_interface() -> list[str]:
    return [link["ifname"] for link in json.loads(machine.run(["/usr/sbin/ip", "-json", "link"]))]


def _control_groups() -> Iterator[Path]:
    """Our top-most groups: one in each hierarchy of version 1, one in all of version 2."""
    wanted = f"{plan.PREFIX}-node-*"
    for parent in (_GROUPS, *(child for child in _GROUPS.iterdir() if child.is_dir())):
        yield from parent.glob(wanted)


def _remove_group(group: Path) -> None:
    deadline = time.monotonic() + _SECONDS
    for folder, _, _ in os.walk(group, topdown=False):
        # The kernel counts a process that was killed until it is gone altogether.
        while not _removed(Path(folder)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{folder} still has processes after {_SECONDS} s")
            time.sleep(0.05)


def _removed(group: Path) -> bool:
    with suppress(OSError):
        group.rmdir()
    return not group.exists()


def _processes(place: Path) -> Iterator[str]:
    """Those that were started from our programs or with our files."""
    marks = (f"{cache.directory()}/node-", f"{place}/", "/pause")
    for folder in Path("/proc").glob("[0-9]*"):
        # It may have ended since.
        with suppress(OSError):
            command = (folder / "cmdline").read_bytes().replace(bytes(1), b" ").decode()
            if any(mark in command for mark in marks):
                yield f"{folder.name} {command}"


def _namespaces() -> Iterator[str]:
    """Networks and mounts other than the tests' own, and who is in them."""
    own = {kind: Path("/proc/self/ns", kind).readlink() for kind in ("net", "mnt", "pid")}
    for kind, ours in own.items():
        for link in Path("/proc").glob(f"[0-9]*/ns/{kind}"):
            with suppress(OSError):
                if link.readlink() != ours:
                    yield f"{link.readlink()} of {link.parents[1].name}"


def _packet_filter() -> list[str]:
    if not Path("/usr/sbin/iptables-save").exists():
        return []
    lines = _printed("/usr/sbin/iptables-save")
    # Comments hold the time.
    return [line for line in lines if not line.startswith(("#", ":"))]


def _settings() -> Iterator[str]:
    for name in (*machine.KERNEL_SETTINGS, "net/ipv4/ip_forward", "net/netfilter/nf_conntrack_max"):
        file = Path("/proc/sys", name)
        if file.exists():
            yield f"{name}={file.read_text().strip()}"


def _printed(*command: str) -> list[str]:
    return machine.run(command).splitlines()
