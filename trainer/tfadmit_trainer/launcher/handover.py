"""How launcher, init container and sidecar speak: small JSON files in the control folder.

Each is written to another name first and then renamed, so that a reader never sees half of one.
"""

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tfadmit_trainer import workspace
from tfadmit_trainer.launcher.fault import LaunchError

VERSION: Final = 1
# A save takes seconds; nobody notices a fifth of one.
_POLL_SECONDS: Final = 0.2
# A block of all common file systems.
_RESERVED: Final = 4096


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the program ended, as a shell counts: 128 + n for signal n."""

    code: int
    signal: int | None = None


@dataclass(frozen=True, kw_only=True)
class Saved:
    """What the sidecar says of its last save."""

    ok: bool
    message: str


def forget(where: workspace.Tree) -> None:
    """Remove what an earlier container of the same pod has left, and take room for the last word.

    A program that fills its volume would else end without one, and the sidecar wait for it.
    """
    for path in (where.ended, where.saved):
        Path(path).unlink(missing_ok=True)
    # Whether it can be written at all shows later, with a reason.
    with contextlib.suppress(OSError):
        draft = _draft(where)
        draft.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(b" " * _RESERVED)


def demand_inputs(where: workspace.Tree, names: tuple[str, ...]) -> None:
    """Check that all inputs were fetched or mounted.

    Raises:
        LaunchError: one is not there.
    """
    if not names:
        return
    fetched = _read(where.fetched)
    said = {item.get("name"): item for item in fetched.get("inputs", ()) if isinstance(item, dict)}
    for name in names:
        path = where.input(name)
        if not Path(path).exists():
            uri = said.get(name, {}).get("uri", "")
            source = f" ({uri})" if uri else ""
            raise LaunchError(
                f"the input {name!r}{source} is not at {path}: see the log of the container that "
                "fetches it, and whether tfadmit's webhook has seen this pod"
            )


def tell_ended(where: workspace.Tree, ended: Ended, *, attempt: int) -> None:
    """Write that the program has ended, for the sidecar."""
    content = {"version": VERSION, "attempt": attempt, "code": ended.code, "signal": ended.signal}
    draft = _draft(where)
    draft.parent.mkdir(parents=True, exist_ok=True)
    # Over what is reserved: to shorten that first would give the room away.
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as stream:
        stream.write(f"{json.dumps(content)}\n".encode())
        stream.truncate()
    draft.replace(where.ended)


def _draft(where: workspace.Tree) -> Path:
    return Path(f"{where.ended}.new")


def await_saved(
    where: workspace.Tree,
    *,
    attempt: int,
    timeout: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Saved:
    """Wait until the sidecar says how its last save went."""
    deadline = clock() + timeout
    while True:
        said = _read(where.saved)
        if said.get("attempt") == attempt and isinstance(said.get("ok"), bool):
            return Saved(ok=said["ok"], message=str(said.get("message") or "no reason given"))
        if clock() >= deadline:
            return Saved(ok=False, message=_silence(timeout))
        sleep(_POLL_SECONDS)


def seconds(environ: Mapping[str, str]) -> float:
    """Give how long to wait for a save.

    Raises:
        LaunchError: what is set is no such number.
    """
    text = environ.get(workspace.SAVE_TIMEOUT_ENV) or str(workspace.SAVE_TIMEOUT_SECONDS)
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise LaunchError(f"{workspace.SAVE_TIMEOUT_ENV}={text!r} is no number of seconds")
    return found


def _silence(timeout: float) -> str:
    return (
        f"nothing was heard of the container that saves within {timeout:g} s: is it in this pod? "
        "tfadmit's webhook adds it"
    )


def _read(path: str) -> dict[str, Any]:
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # not there yet
        return {}
    return content if isinstance(content, dict) else {}
