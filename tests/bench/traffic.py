"""Reviews over kept TLS connections, and what their answers took; for load tests on loopback.

An event loop in a thread of its own and bare HTTP/1.1, so that the client costs little of the two
cores that it shares with the server.
"""

import asyncio
import contextlib
import ssl
import threading
import time
from collections import Counter
from dataclasses import dataclass, field


def request(body, *, path="/mutate/pods?timeout=10s"):
    """A review as the API server sends it."""
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@dataclass
class Result:
    """What came back. Seconds are those of answers with HTTP 200, in the order of their ends."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    retry_after: set[str] = field(default_factory=set)

    def percentile(self, share):
        """A percentile in milliseconds."""
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(len(ordered) * share))]

    def summary(self):
        """One line for people."""
        if not self.seconds:
            return f"no answer; {dict(self.statuses)} {dict(self.faults)}"
        return (
            f"{len(self.seconds)} answers, p50 {self.percentile(0.5):.1f} ms, "
            f"p99 {self.percentile(0.99):.1f} ms, {dict(self.statuses)}"
            + (f", {dict(self.faults)}" if self.faults else "")
        )


class Traffic:
    """So many clients on one address, each with a connection that it keeps."""

    def __init__(self, port, *, cafile, content, clients, rate=None, keep=True):
        """Args: `rate` is reviews per second of all together; as fast as possible without."""
        self._port, self._content = port, content
        self._clients, self._rate, self._keep = clients, rate, keep
        self._trust = ssl.create_default_context(cafile=cafile)
        self._end = 0.0

    def run(self, seconds):
        """Send for so long, in this thread."""
        return asyncio.run(self._run(seconds))

    @contextlib.contextmanager
    def beside(self, seconds):
        """Send for so long while the block runs; gives a list that then holds the result."""
        results = []
        thread = threading.Thread(target=lambda: results.append(self.run(seconds)))
        thread.start()
        try:
            yield results
        finally:
            thread.join()

    async def _run(self, seconds):
        result, self._end = Result(), time.monotonic() + seconds
        await asyncio.gather(*(self._client(number, result) for number in range(self._clients)))
        return result

    async def _client(self, number, result):
        pause = self._clients / self._rate if self._rate else 0.0
        due = time.monotonic() + pause * number / self._clients
        streams = None
        while due < self._end and time.monotonic() < self._end:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due = max(due + pause, time.monotonic() - 1)
            try:
                streams = streams or await self._connect()
                stays = await self._ask(streams, result)
            except (OSError, ValueError, asyncio.IncompleteReadError) as error:
                result.faults[type(error).__name__] += 1
                stays = False
            if not stays or not self._keep:
                streams = await _closed(streams)
        await _closed(streams)

    async def _connect(self):
        return await asyncio.open_connection(
            "127.0.0.1", self._port, ssl=self._trust, server_hostname="127.0.0.1"
        )

    async def _ask(self, streams, result):
        """Send one review and read its answer; tells whether the connection stays."""
        reader, writer = streams
        began = time.monotonic()
        writer.write(self._content)
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = head.split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        await reader.readexactly(int(headers["content-length"]))
        status = int(lines[0].split()[1])
        result.statuses[status] += 1
        if status == 200:
            result.seconds.append(time.monotonic() - began)
        elif "retry-after" in headers:
            result.retry_after.add(headers["retry-after"])
        return headers.get("connection") != "close"


async def _closed(streams):
    if streams:
        streams[1].close()
        with contextlib.suppress(OSError):
            await streams[1].wait_closed()
