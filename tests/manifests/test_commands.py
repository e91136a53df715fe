"""The pages that somebody reads in trouble: every `tfadmit` command on them exists."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from manifests import shipped

PAGES = ("docs/runbooks.md", "deploy/README.md", "SECURITY.md")


def commands():
    """What stands in blocks and between backticks, without comments."""
    for page in PAGES:
        text = (shipped.ROOT / page).read_text()
        blocks = "\n".join(re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL))
        lines = re.findall(r"^ *tfadmit (.*)$", blocks, flags=re.MULTILINE)
        spans = re.findall(r"`tfadmit ([a-z][^`]*)`", text)
        for found in (*lines, *spans):
            yield " ".join(shlex.split(found, comments=True))


@pytest.mark.parametrize("command", sorted(set(commands())))
def test_the_command_and_its_options_exist(command):
    words = command.split()
    named = words[: 2 if words[0] == "certs" else 1]
    done = subprocess.run(
        [sys.executable, "-m", "tfadmit_client", *named, "--help"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    for option in (word for word in words if word.startswith("-")):
        assert re.search(rf"(?<![\w-]){option}\b", done.stdout), f"{option} of {command}"
