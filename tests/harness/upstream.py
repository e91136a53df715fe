"""The runtimes that Kubeflow Trainer ships, out of the Go module that is pinned here.

Copied on demand, beside the programs of the same modules.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Sequence
from pathlib import Path

from harness import binaries, cache, tools

_TRAINER = "github.com/kubeflow/trainer/v2"
_INSIDE = "manifests/base/runtimes"


def trainer_runtimes(*, say: cache.Say = cache.to_stderr) -> Sequence[Path]:
    """One file per runtime, without the kustomizations that list them."""
    copy = functools.partial(_copy, say=say)
    found = cache.made(binaries.entry(), "trainer-runtimes", make=copy, say=say)
    return sorted(path for path in found.rglob("*.yaml") if path.name != "kustomization.yaml")


def _copy(target: Path, *, say: cache.Say) -> None:
    go = tools.go(module=binaries.MODULE, say=say)
    with cache.created(target) as partial:
        shipped = binaries.source(go, _TRAINER) / _INSIDE
        # Files of the module cache are read-only, which would make the cache hard to remove.
        shutil.copytree(shipped, partial, copy_function=shutil.copyfile)
        for folder in (partial, *filter(Path.is_dir, partial.rglob("*"))):
            folder.chmod(0o755)
