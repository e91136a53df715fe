"""From what a pod was told to the store of its job. I/O: `store`."""

from collections.abc import Mapping

from tfadmit_transfer import options, store


def of_job(told: options.Options, environ: Mapping[str, str]) -> store.Store | None:
    """Open the store of the job's results; None when nothing is to be saved."""
    if told.output is None:
        return None
    return store.open_store(told.output, environ=environ, mount=told.output_mount)
