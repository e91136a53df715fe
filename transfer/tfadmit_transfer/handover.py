"""The contents of the files by which the containers of a pod talk. Pure.

The launcher in the training container writes `ended.json`; `fetch` writes `fetched.json`, `sync`
writes `saved.json`. Where they are, `tfadmit_trainer.workspace` knows.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

VERSION = 1
# What comes of reading a document that somebody else could have written.
MALFORMED = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """An input that is there."""

    name: str
    uri: str
    bytes: int
    sha256: str = ""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the program ended."""

    attempt: int
    code: int
    signal: int | None


def fetched_json(items: Sequence[Fetched]) -> bytes:
    """Write the content of `fetched.json`."""
    inputs = [
        {
            "name": item.name,
            "uri": item.uri,
            "bytes": item.bytes,
            **({"sha256": item.sha256} if item.sha256 else {}),
        }
        for item in items
    ]
    return json.dumps({"version": VERSION, "inputs": inputs}).encode()


def saved_json(*, attempt: int, ok: bool, message: str) -> bytes:
    """Write the content of `saved.json`."""
    return json.dumps(
        {"version": VERSION, "attempt": attempt, "ok": ok, "message": message}
    ).encode()


def parse_ended(content: bytes) -> Ended | None:
    """Read `ended.json`; None for what is none."""
    try:
        found = json.loads(content)
        signal = found.get("signal")
        return Ended(
            attempt=int(found.get("attempt", 0)),
            code=int(found["code"]),
            signal=None if signal is None else int(signal),
        )
    except MALFORMED:
        return None
