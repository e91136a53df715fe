"""Certificate, key and the CAs of clients out of files that may be replaced at any time.

The files are read at every look, not only when their times change: three small files cost nothing,
and a time can be the same after a change. When to look is decided in `serve`.
"""

from dataclasses import dataclass
from pathlib import Path

from tfadmit_webhook import identity, tls


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Certificate and key, as Kubernetes mounts them or another tool writes them."""

    certificate: Path
    key: Path

    def read(self) -> identity.Offer:
        """Read both.

        Raises:
            TlsFault: one cannot be read.
        """
        return identity.Offer(
            certificate=tls.read("--tls-cert", self.certificate),
            key=tls.read("--tls-key", self.key),
            certificate_name=f"--tls-cert {self.certificate}",
            key_name=f"--tls-key {self.key}",
        )

    def look(self, keeper: identity.Keeper) -> None:
        """Offer what the files hold now."""
        try:
            offer = self.read()
        except tls.TlsFault as fault:
            keeper.refuse(str(fault))
        else:
            keeper.offer(offer)


class Follower:
    """Looks into the files of a pair for a keeper."""

    def __init__(self, pair: Pair, keeper: identity.Keeper) -> None:
        self._pair = pair
        self._keeper = keeper

    def start(self) -> None:
        """Take what is there."""
        self.look()

    def stop(self) -> None:
        """Nothing runs here."""

    def look(self) -> None:
        """Take what is there now."""
        self._pair.look(self._keeper)


@dataclass(frozen=True, kw_only=True)
class ClientCa:
    """The CAs of clients."""

    path: Path

    def read(self) -> bytes:
        """Read the file.

        Raises:
            TlsFault: it cannot be read, or is empty, which would let everybody in.
        """
        content = tls.read("--client-ca", self.path)
        if not content.strip():
            raise tls.TlsFault(f"--client-ca {self.path}: is empty")
        return content

    def look(self, keeper: identity.Keeper) -> None:
        """Hand over what the file holds now."""
        try:
            content = self.read()
        except tls.TlsFault as fault:
            keeper.distrust(str(fault))
        else:
            keeper.trust_clients(content)
