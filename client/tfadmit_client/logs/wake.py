"""Word of changes of a job and its pods, so that one that lives for a second is not overlooked.

Only a nudge to look: what is true is read anew, and where watching is not allowed, or a watch
breaks unseen, looking now and then is enough.
"""

import threading
from collections.abc import Callable

from tfadmit_client.cluster import kinds, listing
from tfadmit_client.logs import source
from tfadmit_trainer import contract

# The API server ends a watch after half an hour to an hour; a dead connection says nothing.
_SILENCE_SECONDS = 600.0
_PAUSE_SECONDS = 5.0


class Waker:
    """Watches one job and its pods."""

    def __init__(self, cluster: source.Cluster, *, namespace: str, name: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._watched = (
            (kinds.TRAINJOB, {"fieldSelector": f"metadata.name={name}"}),
            (kinds.POD, {"labelSelector": f"{contract.JOBSET_NAME_LABEL}={name}"}),
        )
        self._stop = threading.Event()
        self._streams: dict[str, source.Stream] = {}

    def start(self, wake: Callable[[], None]) -> None:
        """Call `wake` at each change, from threads of its own, until `stop`."""
        for kind, selectors in self._watched:
            words = (kind, selectors, wake)
            threading.Thread(target=self._run, args=words, daemon=True, name=kind.name).start()

    def stop(self) -> None:
        """End the threads."""
        self._stop.set()
        for stream in list(self._streams.values()):
            stream.interrupt()

    def _run(self, kind: listing.Kind, selectors: dict[str, str], wake: Callable[[], None]) -> None:
        while not self._stop.is_set() and self._is_watched(kind, selectors, wake):
            self._stop.wait(_PAUSE_SECONDS)

    def _is_watched(
        self, kind: listing.Kind, selectors: dict[str, str], wake: Callable[[], None]
    ) -> bool:
        """Watch once; gives whether it makes sense to try again."""
        try:
            stream = self._cluster.changes(
                kind, namespace=self._namespace, silence=_SILENCE_SECONDS, **selectors
            )
            self._streams[kind.name] = stream
            for _ in stream:
                wake()
        except listing.ReadError as error:
            return not (isinstance(error, listing.StatusError) and error.status == 403)
        return True
