r"""Text of others without what a terminal would obey. Pure.

A termination message, an event or a file may hold escape sequences: they could move the cursor,
rewrite the line above or its title. They are shown as Python writes them, `\x1b`. Logs are not
touched: what a program prints in colour is meant for the terminal, and `kubectl logs` shows it so.
"""

import re

# C0 but line feed and tab, DEL, C1, separators of lines, and what changes the direction of text.
_ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def text(said: str) -> str:
    """Give a text of any number of lines."""
    return _ODD.sub(_written, said)


def cell(said: str) -> str:
    """Give a text as one line."""
    return text(said.replace("\n", " ").replace("\t", " "))


def in_json(document: str) -> str:
    """Escape in JSON what JSON lets pass; whoever reads it reads the same values."""
    return _ODD.sub(lambda found: f"\\u{ord(found[0]):04x}", document)


def _written(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
