"""What a process uses, as the kernel counts it."""

import os
import pathlib
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Usage:
    """Resident bytes, the most there were, open descriptors and threads."""

    rss: int
    peak: int
    fds: int
    threads: int

    def __str__(self):
        return (
            f"RSS {self.rss / 2**20:.0f} MiB (peak {self.peak / 2**20:.0f}), "
            f"{self.fds} descriptors, {self.threads} threads"
        )


def of(pid):
    """Look at a process."""
    process = pathlib.Path(f"/proc/{pid}")
    status = (process / "status").read_text()
    pages = int((process / "statm").read_text().split()[1])
    return Usage(
        rss=pages * os.sysconf("SC_PAGE_SIZE"),
        peak=1024 * int(re.findall(r"VmHWM:\s+(\d+)", status)[0]),
        fds=len(list((process / "fd").iterdir())),
        threads=len(list((process / "task").iterdir())),
    )


def forget_peak(pid):
    """Let the most there were begin anew."""
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
