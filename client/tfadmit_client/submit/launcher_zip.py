"""The launcher as a file that python3 runs by itself, made of the installed library.

The same bytes for the same library: names are sorted, times and modes fixed. It travels beside the
code, so a training image needs nothing but python3, and the launcher is always the one that this
command knows.
"""

import functools
import importlib.resources
import io
import zipfile
from collections.abc import Iterator
from importlib.abc import Traversable
from typing import Final

PACKAGE: Final = "tfadmit_trainer"
# The earliest time that the format can hold.
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = 0o644 << 16
# Programs of their own, which a launcher does not need.
_LEFT_OUT: Final = frozenset({"examples", "__pycache__"})
# Read by whatever python3 the image has, so it is written in what all of them understand.
_MAIN: Final = """\
import sys

if sys.version_info < (3, 10):
    sys.exit(
        "[tfadmit] python3 in this image is %d.%d: the launcher needs 3.10 or newer; "
        "use another image" % sys.version_info[:2]
    )

from tfadmit_trainer.launcher import command

sys.exit(command.main())
"""


@functools.lru_cache(maxsize=1)
def build() -> bytes:
    """Give the launcher's bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression=zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        _add(archive, "__main__.py", _MAIN.encode())
        package = importlib.resources.files(PACKAGE)
        for name, content in sorted(_modules(package, prefix=PACKAGE)):
            _add(archive, name, content)
    return stream.getvalue()


def _modules(folder: Traversable, *, prefix: str) -> Iterator[tuple[str, bytes]]:
    for item in folder.iterdir():
        name = f"{prefix}/{item.name}"
        if item.name in _LEFT_OUT:
            continue
        if item.is_dir():
            yield from _modules(item, prefix=name)
        elif item.name.endswith(".py"):
            yield name, item.read_bytes()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, date_time=_EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.create_system = 3  # Unix, wherever it is made
    info.external_attr = _MODE
    archive.writestr(info, content)
