"""The init container: the results can be saved, the checkpoints are there, the data is there.

In this order, because each is cheaper than the next and a mistake should cost seconds.
`fetched.json` is written last. A call that was interrupted goes on where it broke off.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tfadmit_transfer import (
    download,
    fault,
    handover,
    http_source,
    inputs,
    layout,
    local,
    options,
    pieces,
    results,
    retry,
    store,
    stores,
    uri,
)


def run(
    told: options.Options, *, environ: Mapping[str, str], patience: retry.Patience
) -> Sequence[handover.Fetched]:
    """Make the workspace ready.

    Raises:
        TransferError: something is missing, and what mends that.
    """
    # Its files belong to this user, and the program, which may be another, writes beside them.
    os.umask(0)
    place = told.place
    for folder in (place.model, place.checkpoints, place.logs, place.control):
        Path(folder).mkdir(parents=True, exist_ok=True)
    at = stores.of_job(told, environ)
    if at is not None:
        # For the sidecar, which may start later than a program that fills the volume.
        local.reserve(Path(place.saved))
        retry.run(lambda: _probe(at, told), patience=patience)
        _restore(at, told, patience=patience)
    there = [_input(item, told, environ=environ, patience=patience) for item in told.inputs]
    local.write(Path(place.fetched), handover.fetched_json(there))
    return there


def _probe(at: store.Store, told: options.Options) -> None:
    """Write and delete an object: a wrong bucket shows now and not after hours of training."""
    key = f"{layout.PROBE}-{told.task}"
    at.write(key, b"")
    at.remove([key])


def _restore(at: store.Store, told: options.Options, *, patience: retry.Patience) -> None:
    """Bring the checkpoints of an earlier attempt of this run, or of before it was suspended."""
    found = retry.run(lambda: results.read(at), patience=patience)
    saved = found.checkpoints if found else None
    if not saved or not saved.entries:
        return
    if saved.run != told.job.run:
        patience.say(
            f"{at.name(layout.CHECKPOINTS)} has checkpoints of another job of this name: "
            "they are left alone"
        )
        return
    wanted = [
        pieces.Piece(
            origin=at.origin(entry.key),
            target=Path(told.place.checkpoints, local.inside(entry.path)),
            wanted=download.Wanted(size=entry.size, sha256=entry.sha256),
        )
        for entry in saved.entries.values()
    ]
    pieces.bring(wanted, what=f"checkpoints of attempt {saved.attempt}", patience=patience)


def _input(
    item: inputs.Input,
    told: options.Options,
    *,
    environ: Mapping[str, str],
    patience: retry.Patience,
) -> handover.Fetched:
    if item.mounted:
        return handover.Fetched(name=item.name, uri=str(item.uri), bytes=0)
    folder = Path(told.place.root, item.folder)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = retry.run(lambda: _pieces(item, folder, environ=environ), patience=patience)
    got = pieces.bring(wanted, what=item.name, patience=patience)
    return handover.Fetched(
        name=item.name,
        uri=str(item.uri),
        bytes=sum(file.size for file in got),
        sha256=got[0].sha256 if len(got) == 1 else "",
    )


def _pieces(item: inputs.Input, folder: Path, *, environ: Mapping[str, str]) -> list[pieces.Piece]:
    if item.uri.scheme in ("http", "https"):
        target = folder / (item.uri.name or item.name)
        wanted = download.Wanted(sha256=item.uri.sha256)
        return [pieces.Piece(origin=http_source.HttpSource(item.uri), target=target, wanted=wanted)]
    return _objects(item.uri, folder, environ=environ)


def _objects(where: uri.Uri, folder: Path, *, environ: Mapping[str, str]) -> list[pieces.Piece]:
    """Take all objects below an address, or the one that it names."""
    at = store.open_store(where, environ=environ)
    found = [item for item in at.listing() if not item.key.endswith("/")]
    if not found and where.path.strip("/"):
        wanted = download.Wanted(sha256=where.sha256, size=at.size(""))
        return [pieces.Piece(origin=at.origin(""), target=folder / where.name, wanted=wanted)]
    if not found:
        raise fault.RefusedError(f"{where}: the bucket is empty")
    if where.sha256:
        raise fault.RefusedError(
            f"{where}: #sha256= is for one file, and there are {len(found):,}: leave it out"
        )
    return [
        pieces.Piece(
            origin=at.origin(item.key),
            target=folder / local.inside(item.key),
            wanted=download.Wanted(size=item.size),
        )
        for item in found
    ]
