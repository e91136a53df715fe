"""One address in front of several servers, as a Service is; the file is also the program.

New connections go to the backends in turn, among those that were ready at the last look;
connections that are there already stay where they are, as with kube-proxy. TLS passes through.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path

from harness import loopback
from harness.process import Process

_HOST = "127.0.0.1"
# The kubelet's look and the way of an endpoint to every node take longer in a cluster; what a
# server may rely on is tested there.
_LOOK_SECONDS = 0.25
_CHUNK = 65536


def started(*, port: int, backends: Sequence[int], directory: Path) -> Process:
    """Start one on `port` in front of these ports of this machine."""
    command = [sys.executable, str(Path(__file__)), str(port), *map(str, backends)]
    process = Process(
        name="balancer",
        command=command,
        log=directory / "balancer.log",
        environ={"PYTHONPATH": str(Path(__file__).parents[1])},
    )
    return process.start(ready=lambda: loopback.listening(port))


class _Balancer:
    def __init__(self, backends: Sequence[int]) -> None:
        self._backends = backends
        self._ready: tuple[int, ...] = ()
        self._turn = itertools.count()
        self._trust_anybody = ssl.create_default_context()
        self._trust_anybody.check_hostname = False
        self._trust_anybody.verify_mode = ssl.CERT_NONE

    async def watch(self) -> None:
        while True:
            looks = [self._is_ready(port) for port in self._backends]
            answers = await asyncio.gather(*looks)
            self._ready = tuple(
                port for port, ready in zip(self._backends, answers, strict=True) if ready
            )
            await asyncio.sleep(_LOOK_SECONDS)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            ready = self._ready
            if not ready:
                return
            port = ready[next(self._turn) % len(ready)]
            with contextlib.suppress(OSError):
                far_reader, far_writer = await asyncio.open_connection(_HOST, port)
                with contextlib.closing(far_writer):
                    await _both_ways(reader, writer, far_reader, far_writer)

    async def _is_ready(self, port: int) -> bool:
        try:
            return await asyncio.wait_for(self._ask(port), 2)
        except (OSError, asyncio.TimeoutError):
            return False

    async def _ask(self, port: int) -> bool:
        reader, writer = await asyncio.open_connection(_HOST, port, ssl=self._trust_anybody)
        with contextlib.closing(writer):
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n")
            return (await reader.readline()).split()[1:2] == [b"200"]


async def _both_ways(
    near_reader: asyncio.StreamReader,
    near_writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    ways = [
        asyncio.create_task(_copy(near_reader, far_writer)),
        asyncio.create_task(_copy(far_reader, near_writer)),
    ]
    # When one side has closed, the connection is over for both.
    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    for way in ways:
        way.cancel()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()


async def _main(port: int, backends: Sequence[int]) -> None:
    balancer = _Balancer(backends)
    async with await asyncio.start_server(balancer.serve, _HOST, port, backlog=1024):
        await balancer.watch()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("backends", type=int, nargs="+")
    given = parser.parse_args()
    asyncio.run(_main(given.port, given.backends))
