"""A folder as the code of a job: in a ConfigMap, or, where it is too large, in an object store."""

import dataclasses
from collections.abc import Sequence
from typing import Final, Protocol

from tfadmit_client import fault
from tfadmit_client.submit import entry, launcher_zip, pack, source
from tfadmit_client.submit.objects import Code, Stored
from tfadmit_client.submit.wish import NO_CODE

# A ConfigMap holds 1 MiB, and the launcher lies in it as well.
MOST_BYTES: Final = 900_000
HERE: Final = "."
# Where anybody can write from his own machine; a volume is reached in the cluster only.
_STORES: Final = ("s3://", "gs://")


class CodeStore(Protocol):
    """The objects below one address. Each call raises ClientError where it cannot be done."""

    def has(self, name: str) -> bool:
        """Whether there is an object."""

    def write(self, name: str, content: bytes) -> None:
        """Write an object."""


def of(folder: str, command: Sequence[str]) -> tuple[Code, pack.Packed | None]:
    """Pack a folder for a program.

    Raises:
        ClientError: it cannot be packed, is too large, or does not have the program.
    """
    if folder == NO_CODE:
        return Code(launcher=launcher_zip.build()), None
    packed = pack.pack(folder)
    if mistakes := list(entry.mistakes(command, packed, folder=folder)):
        raise fault.ClientError("\n".join(mistakes))
    code = Code(launcher=launcher_zip.build(), archive=packed.content, source=source.of(folder))
    return code, packed


def warnings(packed: pack.Packed | None) -> list[str]:
    """Say what may not work of code that was packed now."""
    return [] if packed is None else list(entry.warnings(packed))


def placed(found: Code, packed: pack.Packed | None, *, folder: str, output: str) -> Code:
    """Give the code as it travels: too large an archive lies beside the results of all jobs.

    Raises:
        ClientError: it is too large, and there is no object store.
    """
    if packed is None or len(packed.content) <= MOST_BYTES:
        return found
    if output.startswith(_STORES):
        stored = Stored(base=output, sha256=found.sha256)
        return dataclasses.replace(found, archive=None, stored=stored)
    raise fault.ClientError(
        f"--code {folder}: packed it has {pack.amount(len(packed.content))}, and "
        f"{pack.amount(MOST_BYTES)} fit into a job; the largest: {packed.largest()}; leave them "
        "out by lines in .tfadmitignore and read data with --data, or name an object store with "
        "--output s3://bucket/folder"
    )


def upload(store: CodeStore, stored: Stored, content: bytes) -> bool:
    """Upload an archive, unless it is there; tells whether it was."""
    if store.has(stored.name):
        return False
    store.write(stored.name, content)
    return True
