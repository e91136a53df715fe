"""Reviews at a steady rate against a real server, and what it uses meanwhile.

    PYTHONPATH=tests .venv/bin/python tests/bench/soak.py --minutes 5 --rate 200

One line per interval: resident memory, threads, descriptors, p50 and p99. A certificate is renewed
in each, as rotations must leave nothing behind. Exit 1 when a review failed, when memory grew by
more than a tenth after the first minute, descriptors at all, or threads beyond those of reviews.
"""

import argparse
import pathlib
import sys
import tempfile
import time

import builders
from bench import traffic, usage
from unit.webhook import live_server

# Until all threads have started and every path was used once.
WARM_UP_SECONDS = 60.0
# 32 for reviews, started as they are needed, and those that run from the start.
THREADS = 32 + 8


def main() -> int:
    """Run the soak."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--rate", type=float, default=200.0, help="reviews per second")
    parser.add_argument("--clients", type=int, default=16, help="kept connections")
    parser.add_argument("--interval", type=float, default=15.0, help="seconds per line")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = live_server.certificates(pathlib.Path(name))
        server = live_server.LiveServer(
            directory,
            objects=[builders.make_jobset()],
            # One, so that what it uses is what one process uses; two do the same twice.
            settings={"server": {"processes": 1}},
            environment={"MALLOC_MMAP_THRESHOLD_": "131072"},  # as in the image
        )
        with server.stopped_at_the_end():
            return int(soak(server, options))


def soak(server, options):
    """Send reviews until the time is over; gives the exit code."""
    body = builders.body(builders.make_review(builders.make_pod(index=2)))
    began, lines, faults, warm = time.monotonic(), 0, 0, None
    print(f"{options.rate:.0f}/s by {options.clients} connections, {len(body)} bytes each")
    while (passed := time.monotonic() - began) < options.minutes * 60:
        result = traffic.Traffic(
            server.port,
            cafile=server.directory / "ca.crt",
            content=traffic.request(body),
            clients=options.clients,
            rate=options.rate,
        ).run(min(options.interval, options.minutes * 60 - passed))
        now = usage.of(server.process.pid)
        print(f"{time.monotonic() - began:5.0f} s  {now}  {result.summary()}", flush=True)
        lines, faults = lines + 1, faults + result.faults.total() + not_200(result)
        if warm is None and time.monotonic() - began >= WARM_UP_SECONDS:
            warm = now
        live_server.certificates(server.directory)
    return verdict(warm or now, now, faults)


def not_200(result):
    """How many were answered with something else."""
    return sum(count for status, count in result.statuses.items() if status != 200)


def verdict(warm, now, faults):
    """Say what was found."""
    grown = (now.rss - warm.rss) / warm.rss
    leaks = now.fds > warm.fds or now.threads > THREADS
    print(f"{faults} failed; memory {100 * grown:+.1f} % since the first minute")
    return int(bool(faults) or grown > 0.1 or leaks)


if __name__ == "__main__":
    sys.exit(main())
