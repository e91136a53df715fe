"""The CRDs of the schedulers that Kubeflow Trainer makes PodGroups for: found, or made once.

The schedulers themselves are not here: what Trainer asks of them is what the tests look at.
Volcano's module holds its API as Go types only, so controller-gen makes the CRDs out of them, at
the version that Trainer is built with. Coscheduling's module ships its own.
"""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
import time
from pathlib import Path

from harness import binaries, cache, tools

GENERATOR = Path(__file__).parent / "go" / "controller-gen"
PACKAGE = "sigs.k8s.io/controller-tools/cmd/controller-gen"
VOLCANO = "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
COSCHEDULING = (
    "sigs.k8s.io/scheduler-plugins",
    "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
)


def crds(*, say: cache.Say = cache.to_stderr) -> Path:
    """A folder with one file per CRD, made now when the cache lacks it."""
    return cache.made(entry(), "crds", make=functools.partial(_make, say=say), say=say)


def entry() -> Path:
    """The cache entry for exactly this generator and these versions of the APIs."""
    modules = (binaries.MODULE, GENERATOR)
    files = [module / name for module in modules for name in ("go.mod", "go.sum")]
    recipe = [*binaries.BUILD_FLAGS, PACKAGE, VOLCANO, repr(COSCHEDULING)]
    return cache.directory() / f"gang-{cache.key(files=files, also=recipe)}"


def _make(target: Path, *, say: cache.Say) -> None:
    say("generating the CRDs of the gang schedulers: once, half a minute or more")
    started = time.monotonic()
    go = tools.go(module=GENERATOR, say=say)
    with cache.created(target) as partial, tempfile.TemporaryDirectory() as scratch:
        partial.mkdir()
        generator = Path(scratch, "controller-gen")
        binaries.run(go, "build", *binaries.BUILD_FLAGS, "-o", generator, PACKAGE, module=GENERATOR)
        # It asks `go` for the packages, in the module that pins them.
        path = os.pathsep.join([str(go.parent), os.environ.get("PATH", "")])
        binaries.run(
            generator,
            "crd",
            f"paths={VOLCANO}",
            f"output:crd:dir={partial}",
            environ={"PATH": path},
        )
        module, inside = COSCHEDULING
        shutil.copyfile(binaries.source(go, module) / inside, partial / Path(inside).name)
    say(f"the CRDs took {time.monotonic() - started:.0f} s")
