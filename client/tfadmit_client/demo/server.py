"""The real server as a child process, for the time of a demonstration.

Here: `tfadmit certs issue` and `tfadmit serve` as a user starts them, waiting until it listens, and
ending it by its id in every case. Not here: what is sent to it (`review`).
"""

import contextlib
import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from tfadmit_client import fault

# Starting takes about a second; this is for machines that are very busy.
_START_SECONDS = 30.0
_STOP_SECONDS = 5.0
_TFADMIT = (sys.executable, "-m", "tfadmit_client")


def issue_certificates(directory: Path) -> None:
    """Issue a CA and a certificate for loopback: ca.crt, tls.crt and tls.key.

    Raises:
        ClientError: the command failed; with what it said.
    """
    command = [*_TFADMIT, "certs", "issue", "--ip", "127.0.0.1", "--out", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own
    if done.returncode:
        raise fault.ClientError(done.stderr.strip() or "tfadmit certs issue failed")


@contextlib.contextmanager
def running(arguments: Sequence[str]) -> Iterator[str]:
    """Run `tfadmit serve` with these arguments; gives its address.

    Raises:
        ClientError: it ended, or does not listen in time; with what it logged.
    """
    command = [*_TFADMIT, "serve", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own
        lines: queue.Queue[str | None] = queue.Queue()
        reader = threading.Thread(target=_collect, args=(process.stderr, lines), daemon=True)
        reader.start()
        try:
            yield _address(lines)
        finally:
            _stop(process)
            reader.join(_STOP_SECONDS)


def _collect(stream: IO[str] | None, lines: "queue.Queue[str | None]") -> None:
    for line in stream or ():
        lines.put(line)
    lines.put(None)


def _address(lines: "queue.Queue[str | None]") -> str:
    """Wait for the log line that says where the server listens."""
    seen: list[str] = []
    while True:
        try:
            line = lines.get(timeout=_START_SECONDS)
        except queue.Empty:
            line = None
        if line is None:
            log = "".join(seen[-20:]).strip() or "it logged nothing"
            raise fault.ClientError(f"the server did not start:\n{log}")
        seen.append(line)
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict) and entry.get("event") == "listening":
                return str(entry["address"])


def _stop(process: "subprocess.Popen[str]") -> None:
    # As Ctrl-C does: after SIGTERM it would go on answering for a while.
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
