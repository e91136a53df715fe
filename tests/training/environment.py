"""The Pythons with TensorFlow in which the processes of these tests run.

Each is a virtual environment outside of the checkout, made once from a lock file with hashes and
found again by that file's content. The tests themselves run in the project's own environment, so
that nothing but the child processes ever has TensorFlow.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from harness import cache, tools

REQUIREMENTS = tools.ROOT / "requirements"
# A marker file is the last thing written: a virtual environment cannot be renamed into place,
# because its programs carry its path.
_COMPLETE = ".complete"


@dataclass(frozen=True, kw_only=True)
class TensorFlow:
    """One Python with one TensorFlow."""

    python: Path
    overlay: Path | None = None
    """A directory whose packages come before the installed ones: another Keras."""


def tensorflow(*, say: cache.Say = cache.to_stderr) -> TensorFlow:
    """TensorFlow 2.21 with Keras 3."""
    return TensorFlow(python=_environment("tensorflow.lock", say=say))


def tensorflow_keras2(*, say: cache.Say = cache.to_stderr) -> TensorFlow:
    """TensorFlow 2.15 with Keras 2, for which there are wheels up to Python 3.11."""
    if sys.version_info >= (3, 12):
        raise tools.UnavailableError("TensorFlow 2.15 has no wheel for Python 3.12 and newer")
    return TensorFlow(python=_environment("tensorflow-keras2.lock", say=say))


def with_keras(base: TensorFlow, version: str, *, say: cache.Say = cache.to_stderr) -> TensorFlow:
    """The same TensorFlow with another Keras 3 in front of its own."""
    pinned = _pinned(f"keras=={version}", text=(REQUIREMENTS / "keras.lock").read_text())
    entry = cache.directory() / f"keras-{version}-{cache.key(files=[], also=[pinned])}"
    installed = entry / "installed"
    with cache.lock(entry, say=say):
        if not installed.exists():
            with cache.created(installed) as target:
                _pip(base.python, "--no-deps", "--target", str(target), text=pinned, scratch=entry)
    return TensorFlow(python=base.python, overlay=installed)


def _environment(name: str, *, say: cache.Say) -> Path:
    lock_file = REQUIREMENTS / name
    release = f"{sys.version_info.major}.{sys.version_info.minor}"
    key = cache.key(files=[lock_file], also=[release])
    entry = cache.directory() / f"{lock_file.stem}-{key}"
    python = entry / "venv" / "bin" / "python"
    with cache.lock(entry, say=say):
        if not (entry / _COMPLETE).exists():
            say(f"installing {name} into {entry}: once, about a minute and 1.6 GB")
            venv.create(entry / "venv", clear=True, with_pip=True, symlinks=True)
            _pip(python, text=lock_file.read_text(), scratch=entry)
            (entry / _COMPLETE).touch()
    return python


def _pip(python: Path, *options: str, text: str, scratch: Path) -> None:
    requirements = scratch / "requirements.txt"
    requirements.write_text(text)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--require-hashes", "--only-binary", ":all:", *options]
    command += ["--requirement", str(requirements)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise tools.UnavailableError(f"could not install TensorFlow:\n{answer.stderr.strip()}")


def _pinned(requirement: str, *, text: str) -> str:
    """The lines of one requirement out of a file that pins one package several times."""
    blocks = text.replace("\\\n", "").splitlines()
    return next(block for block in blocks if block.startswith(f"{requirement} ")) + "\n"
