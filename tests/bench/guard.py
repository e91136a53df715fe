"""`make bench-check`: what one review costs in the pure path, counted and not timed.

Calls of functions and memory that is allocated are the same on every machine with the same Python,
however busy it is. Instructions are counted by valgrind, where there is one, for one path and only
against a figure of the very same build of Python. The figures of the last change that was looked at
are in `guard.json`, one set per Python.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import admission
import builders
from bench import specimens
from tfadmit_webhook import handler, review

_FILE = Path(__file__).with_name("guard.json")
# More than the few calls that a mended message costs, less than a second pass over the pod.
_TOLERANCE = 0.10
_COUNTED = "64 tasks, 4 KB"
# The start takes 800 million instructions, give or take one million; a review more than two.
_TIMES = (5, 105)
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
Figures = Mapping[str, int]


def main(argv: Sequence[str] | None = None) -> int:
    """Compare with the committed figures, or write them."""
    parser = argparse.ArgumentParser(prog="make bench-check", description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the figures of this Python")
    parser.add_argument("--repeat", type=int, help=argparse.SUPPRESS)  # the child under valgrind
    options = parser.parse_args(argv)
    committed = known()
    if options.repeat:
        repeat(options.repeat)
        return 0
    found = {name: measure(work) for name, work in paths().items()}
    if (counted := instructions()) is not None:
        found[sys.version] = {"instructions": counted}
    if options.update:
        committed[PYTHON] = {**committed.get(PYTHON, {}), **found}
        _FILE.write_text(json.dumps(committed, indent=2, sort_keys=True) + "\n")
        return 0
    if PYTHON not in committed:
        print(f"no figures for Python {PYTHON}: make bench-check ARGS=--update", file=sys.stderr)
        return 1
    return judge(found, committed[PYTHON])


def known() -> dict[str, dict[str, Figures]]:
    """The committed figures, by Python."""
    figures: dict[str, dict[str, Figures]] = json.loads(_FILE.read_text())
    return figures


def paths() -> Mapping[str, Callable[[], Any]]:
    """Bodies of requests through the pure path: read, decide, write."""
    return {
        "4 tasks, 4 KB": _path(specimens.pods(tasks=4, size=4096)),
        "64 tasks, 4 KB": _path(specimens.pods(tasks=64, size=4096)),
        "1024 tasks, 30 KB": _path(specimens.pods(tasks=1024, size=30 * 1024)),
        "no label": _path(specimens.unlabelled()),
        "denied runtime": _path(specimens.denied_runtime()),
    }


def measure(work: Callable[[], Any]) -> Figures:
    """Count once what was warmed up before, so that caches hold what they hold in a server."""
    for _ in range(3):
        work()
    gc.collect()
    gc.disable()
    try:
        return {"calls": _calls(work), "peak_bytes": _peak(work)}
    finally:
        gc.enable()


def repeat(times: int) -> None:
    """Run the one path whose instructions are counted."""
    work = paths()[_COUNTED]
    for _ in range(times):
        work()


def instructions() -> int | None:
    """Instructions of one review: those of many less those of few, so that the start drops out."""
    if shutil.which("valgrind") is None:
        print("instructions are not counted: valgrind is not installed", file=sys.stderr)
        return None
    few, many = map(_instructions, _TIMES)
    return (many - few) // (_TIMES[1] - _TIMES[0])


def _instructions(times: int) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    command += [sys.executable, "-m", "bench.guard", "--repeat", str(times)]
    answer = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        # The order of sets is that of hashes.
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    line = next(line for line in answer.stderr.splitlines() if "Collected :" in line)
    return int(line.rpartition(":")[2])


def _path(case: specimens.Case) -> Callable[[], Any]:
    body = builders.body(case.specimens[-1].review)
    context = admission.context(*specimens.objects([4, 64, 1024]))
    decide = handler.HANDLERS[case.path.partition("?")[0]]

    def work() -> str:
        request = review.parse(body)
        return json.dumps(review.render(decide(request, context), uid=request.uid))

    return work


def _calls(work: Callable[[], Any]) -> int:
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def _peak(work: Callable[[], Any]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def judge(found: Mapping[str, Figures], committed: Mapping[str, Figures]) -> int:
    """Print all figures; 1 when one grew too much or was never committed, else 0."""
    worse = 0
    for name, figures in found.items():
        for what, value in figures.items():
            before = committed.get(name, {}).get(what)
            if before is None and what == "instructions":
                print(f"{what}: {value:,}; there is no figure of this build of Python")
                continue
            if before is None:
                print(f"{name}: {what} was never written: make bench-check ARGS=--update")
                worse += 1
                continue
            change = value / before - 1
            verdict = "TOO MUCH" if change > _TOLERANCE else "ok"
            worse += change > _TOLERANCE
            print(f"{name}: {what} {value:,}, was {before:,} ({change:+.1%}) {verdict}")
    if worse:
        print(
            f"{worse} figures grew by more than {_TOLERANCE:.0%}: make the path cheaper, or, when "
            "it is worth that, make bench-check ARGS=--update and say why in the commit"
        )
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
