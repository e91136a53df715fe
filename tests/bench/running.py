"""A server under measurement: started, waited for, looked at, ended."""

from __future__ import annotations

import contextlib
import http.client
import os
import ssl
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import load
from harness import process, tools

_POLL_SECONDS = 0.005


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server that is up."""

    name: str
    target: load.Target
    program: process.Process
    start_seconds: float
    """From its start as a process to its first answer that says it is ready."""


def python_path() -> dict[str, str]:
    """The variables with which any Python finds the product and this folder."""
    folders = ("webhook", "trainer", "certs", "connect", "client", "transfer", "tests")
    return {"PYTHONPATH": os.pathsep.join(str(tools.ROOT / folder) for folder in folders)}


@contextmanager
def running(
    name: str,
    command: Sequence[str | Path],
    *,
    target: load.Target,
    directory: Path,
    environ: Mapping[str, str],
) -> Iterator[Server]:
    """Run a server until the context ends."""
    log = directory / f"{name.replace(' ', '-').replace(',', '')}.log"
    program = process.Process(name=name, command=command, log=log, environ=environ)
    began = time.monotonic()
    program.start(ready=lambda: _becomes_ready(program, target))
    took = time.monotonic() - began
    try:
        yield Server(name=name, target=target, program=program, start_seconds=took)
    finally:
        program.stop(grace=5)
        log.unlink(missing_ok=True)


def _becomes_ready(program: process.Process, target: load.Target) -> bool:
    """Ask often for a while: the harness looks too rarely to time a start."""
    trust = ssl.create_default_context(cafile=target.ca)
    end = time.monotonic() + 2
    while time.monotonic() < end and program.running:
        if is_ready(target, trust):
            return True
        time.sleep(_POLL_SECONDS)
    return False


def is_ready(target: load.Target, trust: ssl.SSLContext) -> bool:
    """Whether /readyz answers 200 on a new connection."""
    connection = http.client.HTTPSConnection("127.0.0.1", target.port, context=trust, timeout=2)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    return False


def machine() -> dict[str, str]:
    """What the figures were made on."""
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "processor": f"{len(models)} x {models[0]}" if models else "unknown",
        "kernel": os.uname().release,
        "python": sys.version.split()[0],
    }
