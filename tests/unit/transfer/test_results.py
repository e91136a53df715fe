"""A writer that is cut off at any step leaves something whole: each step is tried."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfadmit_transfer import fault, layout, results, store, uri

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)


class Cut(BaseException):
    """The process is gone."""


class CutStore(store.Store):
    """A store whose user is gone after a number of changes."""

    def __init__(self, at, changes=None):
        vars(self).update(vars(at))
        self._at = at
        self._left = itertools.count() if changes is None else iter(range(changes))

    def _change(self):
        if next(self._left, None) is None:
            raise Cut

    def write(self, *words):
        self._change()
        self._at.write(*words)

    def upload(self, *words, **options):
        self._change()
        self._at.upload(*words, **options)

    def copy(self, *words, **options):
        self._change()
        self._at.copy(*words, **options)

    def remove(self, keys):
        for key in keys:
            self._change()
            self._at.remove([key])


def opened(folder):
    return store.open_store(uri.parse(f"file://{folder}"), environ={})


def writer(folder, *, changes=None, attempt=0, run="uid"):
    job = layout.Job(name="mnist", run=run, attempt=attempt)
    at = CutStore(opened(folder), changes)
    return results.Results(at, job=job, now=lambda: NOW, say=lambda line: None)


def tree(root, files):
    for path in sorted(root.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    root.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return root


def whole(folder, section):
    """What a reader gets of a section; it must be as the manifest says, or nothing."""
    status = results.read(opened(folder))
    saved = getattr(status, section) if status else None
    if saved is None:
        return None
    found = {}
    for path, entry in saved.entries.items():
        content = (folder / entry.key).read_bytes()
        assert len(content) == entry.size
        assert hashlib.sha256(content).hexdigest() == entry.sha256
        found[path] = content
    return found


def objects(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix() for path in files}


OLD = {"saved_model.pb": b"old graph", "v/data": b"old weights", "v/gone": b"old"}
NEW = {"saved_model.pb": b"new graph!", "v/data": b"new weights", "v/more": b"new"}


def save(section, made, root):
    if section == "model":
        made.model(root, code=0)
    else:
        made.checkpoints(root)


@pytest.mark.parametrize("section", ["model", "checkpoints"])
def test_at_each_step_there_is_the_old_tree_or_the_new_one_and_the_next_writer_ends_it(
    tmp_path, section
):
    done = False
    for changes in itertools.count():
        folder = tmp_path / f"store-{changes}"
        folder.mkdir()
        save(section, writer(folder), tree(tmp_path / "old", OLD))
        new = tree(tmp_path / "new", NEW)
        try:
            save(section, writer(folder, changes=changes, attempt=1), new)
            done = True
        except Cut:
            assert whole(folder, section) in (OLD, NEW)
        save(section, writer(folder, attempt=2), new)
        assert whole(folder, section) == NEW
        prefix = f"output/{section}/"
        assert objects(folder) == {f"{prefix}{path}" for path in NEW} | {"status.json"}
        if done:
            break
    # Three uploads, two statuses, two or three copies, and what is cleaned up.
    assert changes >= 9


@pytest.mark.parametrize("section", ["model", "checkpoints"])
def test_a_first_tree_is_there_whole_or_not_at_all(tmp_path, section):
    for changes in itertools.count():
        folder = tmp_path / f"store-{changes}"
        folder.mkdir()
        try:
            save(section, writer(folder, changes=changes), tree(tmp_path / "new", NEW))
        except Cut:
            assert whole(folder, section) in (None, NEW)
        else:
            break
    assert whole(folder, section) == NEW


files = st.dictionaries(
    st.sampled_from(["checkpoint", "ckpt-1", "ckpt-2", "a/b", "a/c"]),
    st.sampled_from([b"", b"1", b"22", b"two"]),
    max_size=4,
)


@given(st.lists(st.tuples(files, st.integers(0, 12) | st.none()), min_size=1, max_size=5))
def test_any_row_of_saves_and_cuts_leaves_one_of_the_saved_trees(tmp_path_factory, rounds):
    root = tmp_path_factory.mktemp("rounds")
    folder = root / "store"
    folder.mkdir()
    before = None
    for number, (content, changes) in enumerate(rounds):
        local = tree(root / "local", content)
        possible = [before, content or before]
        try:
            writer(folder, changes=changes, attempt=number).checkpoints(local)
            possible = [content or before]
        except Cut:
            pass
        before = whole(folder, "checkpoints")
        assert before in possible


def test_unchanged_files_are_not_sent_again(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    made = writer(folder)
    local = tree(tmp_path / "local", {"ckpt-1": b"1"})
    made.checkpoints(local)
    # As after a restart: other times, the same content.
    (local / "ckpt-1").write_bytes(b"1")
    writer(folder, changes=1).checkpoints(local)  # the one change: whose run it is
    assert whole(folder, "checkpoints") == {"ckpt-1": b"1"}


def test_a_file_that_changes_while_it_is_read_keeps_its_older_state(tmp_path, monkeypatch):
    folder = tmp_path / "store"
    folder.mkdir()
    local = tree(tmp_path / "local", {"a": b"one", "b": b"one"})
    made = writer(folder)
    made.checkpoints(local)
    (local / "a").write_bytes(b"two")
    (local / "b").write_bytes(b"two")
    upload = store.Store.upload

    def busy(self, key, chunks, *, size):
        upload(self, key, chunks, size=size)
        if key.endswith("/a"):
            with (local / "a").open("ab") as file:
                file.write(b"!")

    monkeypatch.setattr(store.Store, "upload", busy)
    made.checkpoints(local)
    assert whole(folder, "checkpoints") == {"a": b"one", "b": b"two"}


def test_what_an_older_file_names_stays_while_the_folder_does_not_come_to_rest(
    tmp_path, monkeypatch
):
    """TensorFlow's file `checkpoint` names the newest one, and the manager deletes older ones."""
    folder = tmp_path / "store"
    folder.mkdir()
    local = tree(tmp_path / "local", {"checkpoint": b"ckpt-1", "ckpt-1": b"1"})
    made = writer(folder)
    made.checkpoints(local)
    (local / "ckpt-1").unlink()
    (local / "ckpt-2").write_bytes(b"2")
    (local / "checkpoint").write_bytes(b"ckpt-2")
    upload = store.Store.upload

    def busy(self, key, chunks, *, size):
        upload(self, key, chunks, size=size)
        if key.endswith("/checkpoint"):
            (local / "checkpoint").write_bytes(b"ckpt-2" + b" " * size)

    monkeypatch.setattr(store.Store, "upload", busy)
    made.checkpoints(local)
    assert whole(folder, "checkpoints") == {
        "checkpoint": b"ckpt-1", "ckpt-1": b"1", "ckpt-2": b"2",
    }  # fmt: skip
    monkeypatch.undo()
    made.checkpoints(local)
    assert set(whole(folder, "checkpoints")) == {"checkpoint", "ckpt-2"}


def test_a_model_that_is_still_being_written_is_not_taken_for_one(tmp_path, monkeypatch):
    folder = tmp_path / "store"
    folder.mkdir()
    local = tree(tmp_path / "local", {"a": b"one"})
    upload = store.Store.upload

    def busy(self, key, chunks, *, size):
        upload(self, key, chunks, size=size)
        with (local / "a").open("ab") as file:
            file.write(b"!")

    monkeypatch.setattr(store.Store, "upload", busy)
    with pytest.raises(fault.PassingError, match="it changed while it was saved"):
        writer(folder).model(local, code=0)
    assert whole(folder, "model") is None


def test_a_program_that_saves_no_model_is_recorded_all_the_same(tmp_path):
    folder = tmp_path / "store"
    folder.mkdir()
    writer(folder).model(pathlib.Path(tmp_path, "nothing"), code=0)
    status = results.read(opened(folder))
    assert status is not None
    assert (status.code, status.model, status.time) == (0, None, "2026-01-01T00:00:00Z")
