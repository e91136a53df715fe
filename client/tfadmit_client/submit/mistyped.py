"""A value of another type than a field takes, out of what Trainer's webhook says of it. Pure.

It is Go's sentence, with the path and the types of a program. Only `--patch` can bring it about:
everything else in a TrainJob is written by us.
"""

import re
from typing import Final

_SAID: Final = re.compile(
    r"cannot unmarshal (\w+) into Go struct field \S*?\.template\.spec\.template\.spec\.(\S+)"
    r" of type (\S+)"
)
_HAS: Final = {
    "number": "a number",
    "string": "text",
    "bool": "a yes or no",
    "object": "a mapping",
    "array": "a list",
}
_TAKES: Final = (
    ("string", 'text (put it in quotes, as in "5")'),
    ("bool", "true or false"),
    ("int", "a whole number"),
    ("[]", "a list (write `- ` before each item)"),
)


def sentence(said: str) -> str:
    """Give what is wrong with a patch, or nothing when it is something else."""
    found = _SAID.search(said)
    if found is None:
        return ""
    has, field, kind = found.groups()
    takes = next((words for start, words in _TAKES if kind.startswith(start)), "a mapping")
    return f"--patch: {field} takes {takes}, and has {_HAS.get(has, has)}"
