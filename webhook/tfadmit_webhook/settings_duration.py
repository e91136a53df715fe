"""Durations as Kubernetes and Go write them: `8760h`, `1h30m`, `90s`. Pure."""

import re

PATTERN = r"^([0-9]+(\.[0-9]+)?(h|m|s|ms))+$"
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(h|ms|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
# Of what is shown of a text that is no duration.
_MAX_TEXT = 40


def parse(text: str) -> float:
    """Read a duration; in seconds.

    Raises:
        ValueError: it is none; the message says how one looks.
    """
    if len(text) > _MAX_TEXT or not re.match(PATTERN, text):
        shown = text[:_MAX_TEXT]
        raise ValueError(f"is {shown!r}, which is no duration such as 8760h, 1h30m or 90s")
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
