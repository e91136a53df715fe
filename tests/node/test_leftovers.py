"""Nodes leave nothing on the tests' machine, however they end.

They run in a process of their own here, because one that is killed is part of it. These tests come
first: there is one set of nodes on a machine at a time.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from harness import environment, tools
from harness.node import leftovers, nodes

pytestmark = [
    pytest.mark.skipif(
        bool(os.environ.get(environment.NAMED)), reason="the nodes are somebody else's"
    ),
    # The first one may build everything.
    pytest.mark.timeout(1800),
]

_TESTS = tools.ROOT / "tests"


@pytest.fixture
def before() -> Mapping[str, list[str]]:
    """What is on the machine without nodes."""
    # A run that was killed before this one may have left something, which the next start removes.
    nodes.state().mkdir(parents=True, exist_ok=True)
    leftovers.remove(nodes.state())
    return leftovers.of_this_machine(nodes.state())


def new(before: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """What has come to the machine since, by kind."""
    after = leftovers.of_this_machine(nodes.state())
    found = {kind: sorted(set(after[kind]) - set(before[kind])) for kind in before}
    return {kind: lines for kind, lines in found.items() if lines}


def settled(before: Mapping[str, list[str]], *, but: Collection[str] = ()) -> dict[str, list[str]]:
    """The same, once the kernel has ended all that was killed; of some kinds there may be more."""
    deadline = time.monotonic() + 15
    while True:
        found = new(before)
        if found.keys() <= set(but) or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


@contextmanager
def started(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with two nodes that are ready."""
    with (tmp_path / "nodes.log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "harness.node"],
            cwd=_TESTS,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    try:
        assert process.stdout
        line = process.stdout.readline()
        assert line.startswith("export KUBECONFIG="), (tmp_path / "nodes.log").read_text()
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout:
            process.stdout.close()


def test_nodes_that_are_ended_leave_nothing(before, tmp_path: Path):
    with started(tmp_path) as process:
        # So that the list below is known to see what there is.
        assert {"processes", "namespaces", "interfaces", "routes", "files"} <= new(before).keys()
        process.terminate()
        process.wait(60)
    assert settled(before) == {}


def test_after_a_kill_only_files_are_left_and_the_next_start_removes_them(before, tmp_path: Path):
    with started(tmp_path) as process:
        process.kill()
        process.wait()
    left = settled(before, but={"files", "control groups"})
    assert left.keys() <= {"files", "control groups"}, left
    assert left["files"]

    with started(tmp_path) as process:
        process.terminate()
        process.wait(60)
    assert settled(before) == {}


def test_nodes_never_touch_the_packet_filter_and_the_kernels_settings(before, tmp_path: Path):
    with started(tmp_path):
        changed = new(before).keys()
    assert not changed & {"rules of the packet filter", "settings of the kernel", "mounts"}
    settled(before, but={"files", "control groups"})
