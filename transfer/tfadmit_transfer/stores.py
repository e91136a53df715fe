"""From what a pod was told to the store of its job. I/O: `store`."""

import dataclasses
from collections.abc import Mapping

from tfadmit_transfer import options, store, uri


def of_job(told: options.Options, environ: Mapping[str, str]) -> store.Store | None:
    """Open the store below `<base>/<job>/`; None when nothing is to be saved."""
    if told.output is None:
        return None
    mount = told.output_mount / told.job.name if told.output_mount else None
    return store.open_store(below(told.output, told.job.name), environ=environ, mount=mount)


def below(base: uri.Uri, name: str) -> uri.Uri:
    """Give the address of a folder below another."""
    path = "/".join(part for part in (base.path.strip("/"), name) if part)
    slash = "" if base.text.endswith("/") else "/"
    return dataclasses.replace(base, path=path, text=f"{base.text}{slash}{name}")
