"""Several `tfadmit serve` behind one address, as the Deployment and its Service are.

Each server is a process with a port of its own; the balancer in front sends new connections to
those that are ready.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import urllib3

from harness import balancer, loopback
from harness.install import PROGRAM
from harness.process import Process

_SERVER_PORT, _METRICS_PORT = "--port", "--metrics-port"
# The longest drain, and the reviews that are in flight then.
_END_SECONDS = 90.0


class Replicas:
    """The servers of one address."""

    def __init__(self, *, port: int, servers: Sequence[Process]) -> None:
        self.port = port
        self.url = f"https://127.0.0.1:{port}"
        self.servers = servers

    def roll(self) -> None:
        """Replace one server after the other, each only when the one before is ready."""
        for server in self.servers:
            code = server.stop(grace=_END_SECONDS)
            if code != 0:
                raise AssertionError(f"a server ended with {code}:\n{server.tail()}")
            _start(server)

    def metric(self, pattern: str) -> float:
        """The sum over all servers of the samples whose name and labels match."""
        return sum(
            float(line.rpartition(" ")[2])
            for server in self.servers
            for line in _metrics(server).splitlines()
            if re.match(pattern, line)
        )


@contextmanager
def running(
    *, directory: Path, arguments: Sequence[str | Path], count: int = 3
) -> Iterator[Replicas]:
    """Start them with these arguments of `tfadmit serve`, ended with the context."""
    directory.mkdir(parents=True, exist_ok=True)
    servers = [_server(directory, number, arguments) for number in range(count)]
    port = loopback.free_port()
    with ExitStack() as undo:
        for server in servers:
            undo.callback(server.stop, grace=1)
            server.start(ready=functools.partial(_up, server))
        ports = [int(_option(server, _SERVER_PORT)) for server in servers]
        undo.callback(balancer.started(port=port, backends=ports, directory=directory).stop)
        yield Replicas(port=port, servers=servers)


def _server(directory: Path, number: int, arguments: Sequence[str | Path]) -> Process:
    ports = [loopback.free_port(), loopback.free_port()]
    command: list[str | Path] = [PROGRAM, "serve", "--host", "127.0.0.1"]
    command += [_SERVER_PORT, str(ports[0]), _METRICS_PORT, str(ports[1]), *arguments]
    log = directory / f"server-{number}.log"
    return Process(name=f"tfadmit serve ({number})", command=command, log=log)


def _start(server: Process) -> None:
    server.start(ready=lambda: _ready(server))


def _ready(server: Process) -> bool:
    return loopback.ready(int(_option(server, _SERVER_PORT)))


def _up(server: Process) -> bool:
    return loopback.listening(int(_option(server, _METRICS_PORT)))


def _metrics(server: Process) -> str:
    url = f"http://127.0.0.1:{_option(server, _METRICS_PORT)}/metrics"
    with urllib3.PoolManager() as pool:
        return pool.request("GET", url, timeout=10).data.decode()


def _option(server: Process, name: str) -> str:
    return server.command[server.command.index(name) + 1]
