"""The reason of a failure, where Kubernetes shows it: `kubectl describe pod`, under Last State.

Only the writing. The kubelet makes the file and reads it when the container has ended.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

# Set it where a container has another `terminationMessagePath`.
PATH_ENV: Final = "TFADMIT_TERMINATION_LOG"
_PATH: Final = "/dev/termination-log"
# The kubelet keeps the *last* so many bytes; what is wrong stands at the beginning.
_MOST_BYTES: Final = 4096
_CUT: Final = " …"


def write(reason: str, *, environ: Mapping[str, str]) -> str | None:
    """Write the reason; say what went wrong when it cannot be written.

    The usual file is written only when it is there: outside of a pod there is none, and a stray
    file in /dev helps nobody.
    """
    stated = environ.get(PATH_ENV)
    path = Path(stated or _PATH)
    try:
        if not stated and not path.exists():
            return None
        path.write_bytes(shortened(reason))
    except OSError as error:
        return f"the reason could not be written to {path} ({error.strerror})"
    return None


def written(*, environ: Mapping[str, str]) -> bool:
    """Whether a reason is there already; the kubelet makes the file empty."""
    try:
        return Path(environ.get(PATH_ENV) or _PATH).stat().st_size > 0
    except OSError:
        return False


def shortened(reason: str) -> bytes:
    """Give as much of a text as fits, cut between characters."""
    whole = reason.encode("utf-8", errors="replace")
    if len(whole) <= _MOST_BYTES:
        return whole
    room = _MOST_BYTES - len(_CUT.encode())
    return (whole[:room].decode("utf-8", errors="ignore") + _CUT).encode()
