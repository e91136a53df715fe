"""One Secret, followed: whoever wants its content is told of each change within moments.

It is listed and watched by its name, so that the right for that one name is enough. What the
content means is none of this module's business.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping

from tfadmit_webhook import raw
from tfadmit_webhook.kube import api, watch

# Until the right or the API server is there; the rest of the start waits for the certificate.
_LONGEST_PAUSE = 2.0

Taker = Callable[[Mapping[str, bytes] | None], None]
"""Is given the content of the Secret, or None when there is no such Secret."""


class Secret:
    """The thread that follows the Secret. `start()` it after any fork, `stop()` it at the end."""

    def __init__(self, server: api.Api, *, namespace: str, name: str, take: Taker) -> None:
        self._watch = watch.Watch(
            source=server.secret(namespace=namespace, name=name),
            store=_Store(name, take),
            monitor=_Unheard(),
            timing=watch.Timing(longest_pause=_LONGEST_PAUSE),
        )

    def start(self) -> None:
        """Begin."""
        self._watch.start()

    def stop(self) -> None:
        """End."""
        self._watch.stop()

    @property
    def trouble(self) -> str:
        """What keeps the Secret from being followed now; empty when nothing does."""
        return self._watch.trouble


class _Store:
    """Takes what the watch says and passes on what it means for the one Secret."""

    def __init__(self, name: str, take: Taker) -> None:
        self._name = name
        self._take = take
        self._uid: object = None

    def __len__(self) -> int:
        return int(self._uid is not None)

    def replace(self, items: Iterable[raw.JsonObject]) -> None:
        # All pages before a word is said: a list that breaks off says nothing.
        found = [item for item in items if self._is_it(item)]
        if found:
            self.put(found[0])
        else:
            self._uid = None
            self._take(None)

    def put(self, item: raw.JsonObject) -> None:
        if self._is_it(item):
            self._uid = raw.at(item, ("metadata", "uid"))
            self._take(_decoded(raw.mapping(item.get("data"))))

    def remove(self, item: raw.JsonObject) -> None:
        if self._is_it(item):
            self._uid = None
            self._take(None)

    def sweep(self) -> None:
        """Nothing grows old here."""

    def _is_it(self, item: raw.JsonObject) -> bool:
        return bool(raw.at(item, ("metadata", "name")) == self._name)


class _Unheard:
    """The metrics of the cache are about JobSets."""

    def cache_changed(self, *, objects: int) -> None:
        pass

    def watch_changed(self, *, up: bool) -> None:
        pass

    def heard(self) -> None:
        pass


def _decoded(data: raw.JsonObject) -> dict[str, bytes]:
    return {key: _bytes(value) for key, value in data.items()}


def _bytes(value: object) -> bytes:
    try:
        return base64.b64decode(raw.text(value))
    except (binascii.Error, ValueError):
        return b""
