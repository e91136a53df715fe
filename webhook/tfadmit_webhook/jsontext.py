"""JSON text to values and back, as quickly as a library can.

orjson reads and writes what RFC 8259 allows. What it refuses and the standard library takes is left
to that: halves of surrogate pairs, which users can write as escapes, and NaN. So nothing that could
be answered is refused. Of two keys of one name the last one counts, as in Go; numbers beyond 64
bits become floats, as in the API server. No I/O.
"""

import json
from typing import Any

import orjson


def load(text: bytes) -> Any:  # noqa: ANN401 - JSON has any type
    """Read a JSON text.

    Raises:
        ValueError: it is none.
        RecursionError: it is nested too deeply.
    """
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text)


def dump(value: object) -> bytes:
    """Write a value without blanks; what JSON does not know is written as its text."""
    try:
        return orjson.dumps(value, default=str)
    except TypeError:
        return json.dumps(value, separators=(",", ":"), default=str).encode("ascii")
