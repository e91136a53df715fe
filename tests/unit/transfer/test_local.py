"""Folders as programs may leave them."""

from __future__ import annotations

import os
import subprocess

import pytest

from tfadmit_transfer import local


@pytest.fixture
def deep(tmp_path):
    """A folder with 1,200 folders in each other and a file in the last one."""
    here = os.open(tmp_path, os.O_RDONLY)
    for name in ["deep", *["d"] * 1200]:
        os.mkdir(name, dir_fd=here)
        here, above = os.open(name, os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here))
    os.close(here)
    yield tmp_path / "deep"
    # What removes the folders of tests has no more calls than others.
    subprocess.run(["rm", "-rf", tmp_path / "deep"], check=True)


def test_folders_may_be_deeper_than_python_has_calls(deep):
    assert [file.path for file in local.scan(deep)] == ["d/" * 1200 + "file"]


def test_a_small_file_is_written_over_its_room_and_is_not_longer_for_it(tmp_path):
    path = tmp_path / "control" / "saved.json"
    local.reserve(path)
    local.reserve(path)
    local.write(path, b"{}")
    assert path.read_bytes() == b"{}"
    assert [entry.name for entry in path.parent.iterdir()] == ["saved.json"]
    local.write(path, b"[]")
    assert path.read_bytes() == b"[]"
