"""What a job wants to read: `train=s3://bucket/train`, one a line or with commas between. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tfadmit_trainer import workspace
from tfadmit_transfer import fault, uri

# The name becomes a folder, a volume and the end of an environment variable.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9_.]{0,38}[a-z0-9])?", re.IGNORECASE)
_NAMED = re.compile(r"\s*([^=:/,\s]*)=(.*)", re.DOTALL)
# A comma ends an input only where another can begin, so that a URI may have commas.
_BETWEEN = re.compile(r"[\r\n]+|,\s*(?=(?:[^=:/,\s]*=)?[A-Za-z][A-Za-z0-9+.-]*://)")


@dataclass(frozen=True, kw_only=True)
class Input:
    """Something to read, and the name under which the program finds it."""

    name: str
    uri: uri.Uri

    @property
    def mounted(self) -> bool:
        """Whether it is a volume and not a copy."""
        return self.uri.scheme in uri.MOUNTED

    @property
    def folder(self) -> str:
        """Where it lies, below the workspace."""
        return workspace.Tree(root=".").input(self.name)

    @property
    def variable(self) -> str:
        """Its name as the end of an environment variable: `train-2` gives `TRAIN_2`."""
        return workspace.variable(self.name)


def parse(text: str) -> tuple[Input, ...]:
    """Read the value of the annotation `tfadmit.dev/data`; an empty one has no inputs.

    Raises:
        RefusedError: it cannot be understood, and how it would be.
    """
    found = tuple(_input(part) for part in _BETWEEN.split(text) if part.strip(" \t,"))
    names: dict[str, str] = {}
    for item in found:
        if other := names.get(item.variable):
            raise fault.RefusedError(
                f"two inputs are named {other!r} and {item.name!r}: give each a name of its own, "
                "as in train=s3://…,test=s3://…"
            )
        names[item.variable] = item.name
    return found


def render(items: tuple[Input, ...]) -> str:
    """Write inputs as an annotation has them."""
    return "\n".join(_lines(items))


def _lines(items: tuple[Input, ...]) -> Iterator[str]:
    for item in items:
        checksum = f"#sha256={item.uri.sha256}" if item.uri.sha256 else ""
        yield f"{item.name}={item.uri}{checksum}"


def _input(part: str) -> Input:
    part = part.strip(" \t,")
    named = _NAMED.fullmatch(part)
    name, where = (named[1], named[2]) if named else (workspace.ONLY_INPUT, part)
    if not _NAME.fullmatch(name):
        raise fault.RefusedError(
            f"{part!r}: {name!r} is no name of an input: use up to 40 of a-z, 0-9, '-', '_' and "
            "'.', as in train=s3://bucket/train"
        )
    return Input(name=name, uri=uri.parse(where))
