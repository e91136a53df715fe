"""The server's certificate out of a watched Secret: it never lies on a file system.

The Secret is of the type kubernetes.io/tls, with the CAs of the clients in `ca.crt`. Watching is
done in `kube.secret`.
"""

from collections.abc import Mapping

from tfadmit_webhook import identity
from tfadmit_webhook.kube import api, secret


class Pair:
    """The pair of one Secret, offered to a keeper as often as it changes."""

    def __init__(
        self, server: api.Api, *, namespace: str, name: str, keeper: identity.Keeper
    ) -> None:
        self._where = f"Secret {namespace}/{name}"
        self._keeper = keeper
        self._secret = secret.Secret(server, namespace=namespace, name=name, take=self._take)

    def start(self) -> None:
        """Begin to watch."""
        self._secret.start()

    def stop(self) -> None:
        """End watching."""
        self._secret.stop()

    def look(self) -> None:
        """Say what keeps the Secret from being read, as long as there is nothing to show."""
        if self._keeper.context is None and self._secret.trouble:
            self._keeper.refuse(self._secret.trouble)

    def _take(self, content: Mapping[str, bytes] | None) -> None:
        if content is None:
            self._keeper.refuse(f"{self._where} does not exist; it is taken as soon as it does")
            return
        self._keeper.offer(
            identity.Offer(
                certificate=content.get("tls.crt", b""),
                key=content.get("tls.key", b""),
                ca=content.get("ca.crt", b""),
                certificate_name=f"tls.crt of {self._where}",
                key_name=f"tls.key of {self._where}",
            )
        )
