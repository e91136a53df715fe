"""Virtual environments of their own for programs that the tests start but never import.

Each is outside of the checkout, made once from a lock file with hashes and found again by that
file's content.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from harness import cache, tools

REQUIREMENTS = tools.ROOT / "requirements"
# A marker file is the last thing written: a virtual environment cannot be renamed into place,
# because its programs carry its path.
_COMPLETE = ".complete"


def locked(name: str, *, note: str, say: cache.Say = cache.to_stderr) -> Path:
    """The Python of an environment with what a lock file pins; ``note`` says what it takes."""
    lock_file = REQUIREMENTS / name
    release = f"{sys.version_info.major}.{sys.version_info.minor}"
    key = cache.key(files=[lock_file], also=[release])
    entry = cache.directory() / f"{lock_file.stem}-{key}"
    python = entry / "venv" / "bin" / "python"
    with cache.lock(entry, say=say):
        if not (entry / _COMPLETE).exists():
            say(f"installing {name} into {entry}: once, {note}")
            venv.create(entry / "venv", clear=True, with_pip=True, symlinks=True)
            pip(python, text=lock_file.read_text(), scratch=entry)
            (entry / _COMPLETE).touch()
    return python


def pip(python: Path, *options: str, text: str, scratch: Path) -> None:
    """Install what a text pins; only wheels, and only with the hashes that it states."""
    requirements = scratch / "requirements.txt"
    requirements.write_text(text)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--only-binary", ":all:", *options]
    command += ["--requirement", str(requirements)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        first = text.lstrip().partition(" ")[0]
        raise tools.UnavailableError(f"could not install {first} …:\n{answer.stderr.strip()}")
