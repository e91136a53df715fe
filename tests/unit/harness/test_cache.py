"""The cache: where it is, when it is a different one, and that half a build is never used."""

from __future__ import annotations

import multiprocessing
import os
import time
from pathlib import Path

import pytest

from harness import cache


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"TFADMIT_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b"}, Path("/b/tfadmit")),
        ({"TFADMIT_CACHE": "", "XDG_CACHE_HOME": ""}, Path.home() / ".cache" / "tfadmit"),
    ],
    ids=["stated", "xdg", "home"],
)
def test_the_cache_is_outside_of_the_tree(environ, expected):
    assert cache.directory(environ) == expected


def test_the_same_content_has_the_same_key(tmp_path: Path):
    one, other = tmp_path / "one", tmp_path / "other"
    for file in (one, other):
        file.write_text("module x\n")
    assert cache.key(files=[one], also=["-a"]) == cache.key(files=[other], also=["-a"])


def test_any_change_gives_another_key(tmp_path: Path):
    mod, total = tmp_path / "go.mod", tmp_path / "go.sum"
    mod.write_text("ab")
    total.write_text("c")
    first = cache.key(files=[mod, total], also=["-s"])
    assert cache.key(files=[mod, total], also=["-w"]) != first
    mod.write_text("a")
    total.write_text("bc")
    assert cache.key(files=[mod, total], also=["-s"]) != first


def test_a_failed_build_leaves_nothing(tmp_path: Path):
    target = tmp_path / "bin" / "etcd"

    def build() -> None:
        with cache.created(target) as partial:
            partial.write_text("half")
            raise RuntimeError("no compiler")

    with pytest.raises(RuntimeError, match="no compiler"):
        build()
    assert list(target.parent.iterdir()) == []


def test_leftovers_of_a_killed_build_are_not_taken_over(tmp_path: Path):
    target = tmp_path / "manifests"
    (tmp_path / ".manifests.partial").mkdir()
    (tmp_path / ".manifests.partial" / "old").touch()
    with cache.created(target) as partial:
        partial.mkdir()
        (partial / "new").touch()
    assert [file.name for file in target.iterdir()] == ["new"]


def test_a_second_run_waits_and_says_so(tmp_path: Path):
    said: list[str] = []
    # A lock is held by an open file, so another process is needed to wait for it.
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(tmp_path, held, release))
    other.start()
    try:
        assert held.wait(20)

        def say(line: str) -> None:
            said.append(line)
            release.set()

        with cache.lock(tmp_path, say=say):
            assert len(said) == 1
            assert "waiting" in said[0]
    finally:
        release.set()
        other.join(20)
        other.close()


def _hold(entry: Path, held, release) -> None:
    with cache.lock(entry, say=print):
        held.set()
        release.wait(20)


def test_what_nobody_used_for_days_is_forgotten_and_the_rest_stays(tmp_path: Path):
    for name in ("old", "new", "held"):
        with cache.lock(tmp_path / name, say=print):
            (tmp_path / name / "file").touch()
    now = (tmp_path / "old" / ".lock").stat().st_mtime + 10 * 86_400
    os.utime(tmp_path / "new" / ".lock", (now, now))
    with cache.lock(tmp_path / "held", say=print):
        os.utime(tmp_path / "held" / ".lock", (0, 0))
        assert cache.forget(tmp_path, unused_days=3, now=now) == ["old"]
    assert {path.name for path in tmp_path.iterdir()} == {"new", "held"}
    cache.used(tmp_path / "new")
    assert cache.forget(tmp_path, unused_days=3, now=time.time()) == ["held"]


def test_of_entries_in_use_as_many_stay_as_are_asked_for(tmp_path: Path):
    now = time.time()
    for name, age in (("older", 30), ("newest", 10), ("oldest", 40), ("newer", 20)):
        with cache.lock(tmp_path / name, say=print):
            os.utime(tmp_path / name / ".lock", (now - age, now - age))
    assert cache.forget(tmp_path, unused_days=3, now=now, most=2) == ["older", "oldest"]
    assert {path.name for path in tmp_path.iterdir()} == {"newer", "newest"}
