"""A folder as the code of a job, or the refusal of one that is too large."""

from collections.abc import Sequence
from typing import Final

from tfadmit_client import fault
from tfadmit_client.submit import entry, launcher_zip, pack, source
from tfadmit_client.submit.objects import Code
from tfadmit_client.submit.wish import NO_CODE

# A ConfigMap holds 1 MiB, and the launcher lies in it as well.
MOST_BYTES: Final = 900_000
HERE: Final = "."


def of(folder: str, command: Sequence[str]) -> tuple[Code, pack.Packed | None]:
    """Pack a folder for a program.

    Raises:
        ClientError: it cannot be packed, is too large, or does not have the program.
    """
    if folder == NO_CODE:
        return Code(launcher=launcher_zip.build()), None
    packed = pack.pack(folder)
    mistakes = list(entry.mistakes(command, packed, folder=folder))
    if len(packed.content) > MOST_BYTES:
        mistakes.append(
            f"--code {folder}: packed it has {pack.amount(len(packed.content))}, and "
            f"{pack.amount(MOST_BYTES)} fit into a job; the largest: {packed.largest()}; leave "
            "them out by lines in .tfadmitignore, and read data with --data"
        )
    if mistakes:
        raise fault.ClientError("\n".join(mistakes))
    code = Code(launcher=launcher_zip.build(), archive=packed.content, source=source.of(folder))
    return code, packed
