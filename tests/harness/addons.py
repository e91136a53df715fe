"""The CRDs of cert-manager and the Prometheus Operator, which some of our manifests need.

Their controllers are not here. Both modules ship their CRDs, so nothing is built: the files are
taken out of the modules at the pinned versions.
"""

from __future__ import annotations

import functools
import json
import shutil
from pathlib import Path

from harness import binaries, cache, tools

MODULE = Path(__file__).parent / "go" / "add-ons"
# Each a module and a file in it.
CRDS = (
    ("github.com/cert-manager/cert-manager", "deploy/crds/cert-manager.io_certificates.yaml"),
    ("github.com/cert-manager/cert-manager", "deploy/crds/cert-manager.io_issuers.yaml"),
    *(
        (
            "github.com/prometheus-operator/prometheus-operator",
            f"example/prometheus-operator-crd/monitoring.coreos.com_{plural}.yaml",
        )
        for plural in ("servicemonitors", "prometheusrules")
    ),
)


def crds(*, say: cache.Say = cache.to_stderr) -> Path:
    """A folder with one file per CRD, fetched now when the cache lacks it."""
    return cache.made(entry(), "crds", make=functools.partial(_fetch, say=say), say=say)


def entry() -> Path:
    """The cache entry for exactly these files of these versions."""
    files = [MODULE / "go.mod", MODULE / "go.sum"]
    return cache.directory() / f"add-ons-{cache.key(files=files, also=[repr(CRDS)])}"


def _fetch(target: Path, *, say: cache.Say) -> None:
    go = tools.go(module=MODULE, say=say)
    with cache.created(target) as partial:
        partial.mkdir()
        for module, inside in CRDS:
            shipped = _source(go, module) / inside
            shutil.copyfile(shipped, partial / shipped.name)


def _source(go: Path, module: str) -> Path:
    # Not `go list`, as in `binaries`: that would want the checksums of all their dependencies.
    answer = json.loads(binaries.run(go, "mod", "download", "-json", module, module=MODULE))
    return Path(answer["Dir"])
