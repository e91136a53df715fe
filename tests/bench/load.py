"""Runs the load generator: reviews in, requests, failures and latencies out."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any, Literal

# `fresh` makes a connection for each review, `apiserver` is the HTTP client that API servers have.
Client = Literal["fast", "fresh", "apiserver"]


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where a webhook listens."""

    port: int
    ca: Path


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one run gave; latencies in milliseconds."""

    requests: int
    failed: dict[str, int]
    seconds: float
    p50_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float

    @property
    def per_second(self) -> float:
        """Right answers per second."""
        return self.requests / self.seconds

    @property
    def broken(self) -> int:
        """Reviews without the right answer; a refused connection loses none."""
        return sum(count for why, count in self.failed.items() if why != "refused")


def start(
    program: Path,
    target: Target,
    *,
    path: str,
    reviews: Path,
    connections: int,
    seconds: float,
    client: Client = "fast",
) -> subprocess.Popen[str]:
    """Begin to send; `finish` waits for the result."""
    plan: dict[str, Any] = {
        "address": f"127.0.0.1:{target.port}",
        "ca": str(target.ca),
        "path": path,
        "reviews": str(reviews),
        "connections": connections,
        "seconds": seconds,
        "client": client,
    }
    child = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin
    child.stdin.write(json.dumps(plan))
    child.stdin.close()
    child.stdin = None  # communicate() would write to it again
    return child


def finish(child: subprocess.Popen[str], *, timeout: float = 45) -> Result:
    """Wait for the result of a run; a server that lets all clients hang gives none."""
    try:
        output, _ = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        return Result(
            requests=0,
            failed={"hung": 1},
            seconds=timeout,
            p50_ms=nan,
            p99_ms=nan,
            p999_ms=nan,
            max_ms=nan,
        )
    finally:
        child.kill()
        child.wait()
    return Result(**json.loads(output))
