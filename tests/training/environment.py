"""The Pythons with TensorFlow in which the processes of these tests run.

The tests themselves run in the project's own environment, so
that nothing but the child processes ever has TensorFlow.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from harness import cache, tools, virtualenv

_NOTE = "about a minute and 1.6 GB"


@dataclass(frozen=True, kw_only=True)
class TensorFlow:
    """One Python with one TensorFlow."""

    python: Path
    overlay: Path | None = None
    """A directory whose packages come before the installed ones: another Keras."""


def tensorflow(*, say: cache.Say = cache.to_stderr) -> TensorFlow:
    """TensorFlow 2.21 with Keras 3."""
    return TensorFlow(python=virtualenv.locked("tensorflow.lock", note=_NOTE, say=say))


def tensorflow_keras2(*, say: cache.Say = cache.to_stderr) -> TensorFlow:
    """TensorFlow 2.15 with Keras 2, for which there are wheels up to Python 3.11."""
    if sys.version_info >= (3, 12):
        raise tools.UnavailableError("TensorFlow 2.15 has no wheel for Python 3.12 and newer")
    return TensorFlow(python=virtualenv.locked("tensorflow-keras2.lock", note=_NOTE, say=say))


def with_keras(base: TensorFlow, version: str, *, say: cache.Say = cache.to_stderr) -> TensorFlow:
    """The same TensorFlow with another Keras 3 in front of its own."""
    pinned = _pinned(f"keras=={version}", text=(virtualenv.REQUIREMENTS / "keras.lock").read_text())
    entry = cache.directory() / f"keras-{version}-{cache.key(files=[], also=[pinned])}"
    installed = entry / "installed"
    with cache.lock(entry, say=say):
        if not installed.exists():
            with cache.created(installed) as target:
                options = ("--no-deps", "--target", str(target))
                virtualenv.pip(base.python, *options, text=pinned, scratch=entry)
    return TensorFlow(python=base.python, overlay=installed)


def _pinned(requirement: str, *, text: str) -> str:
    """The lines of one requirement out of a file that pins one package several times."""
    blocks = text.replace("\\\n", "").splitlines()
    return next(block for block in blocks if block.startswith(f"{requirement} ")) + "\n"
