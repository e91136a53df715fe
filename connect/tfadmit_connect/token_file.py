"""A token in a file that somebody writes anew before it expires, as a kubelet does for a pod.

The Kubernetes client reads the `tokenFile` of a kubeconfig once, so that whoever runs for longer
than the token lives is refused from then on. I/O: that file.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from tfadmit_connect import acting_as

Clock = Callable[[], float]

# As client-go (transport/token_source.go): good for a minute, less ten seconds.
_AGAIN_SECONDS: Final = 50.0


class TokenFile:
    """The token that stands in a file now; while that cannot be read, the one before.

    Many threads may ask at once: each is given a whole token, at worst one that was read twice.
    """

    def __init__(self, path: Path, *, token: str, clock: Clock) -> None:
        self.path, self._clock = path, clock
        self._read_at, self._token = clock(), self._read() or token

    def current(self) -> str:
        """Give the token, read again when the last time was too long ago."""
        now = self._clock()
        if now - self._read_at >= _AGAIN_SECONDS:
            self._read_at = now
            self._token = self._read() or self._token
        return self._token

    def _read(self) -> str:
        try:
            found = self.path.read_text().strip()
        except (OSError, ValueError):  # gone, or no text: perhaps it is being written
            return ""
        return found if acting_as.is_header(found) else ""
