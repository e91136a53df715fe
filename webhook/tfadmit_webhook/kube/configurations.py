"""The webhook configurations of one name, read again and again.

A GET of each, because two objects that change a few times a year are not worth a watch, and the
right for that one name is enough. What they mean is judged in `trust`.
"""

import logging
import threading
from collections.abc import Callable, Mapping

from tfadmit_webhook import raw
from tfadmit_webhook.kube import api, asking

_LOG = logging.getLogger("tfadmit")
# Readiness waits for the first good answer, nothing waits for those after it.
_SOON_SECONDS, _LATER_SECONDS = 1.0, 10.0
_ANSWER_SECONDS = 5.0
_STOP_SECONDS = 2.0
_KINDS = ("mutating", "validating")

Taker = Callable[[Mapping[str, raw.JsonObject | str]], bool]
"""Is given each configuration or why it cannot be read; tells whether it may wait longer now."""


class Configurations:
    """The thread that reads. `start()` it after any fork, `stop()` it at the end."""

    def __init__(self, server: api.Api, *, name: str, take: Taker) -> None:
        self._server = server
        self._name = name
        self._take = take
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="configurations", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and wait a little until nothing runs any more."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        pause = 0.0
        while not self._stopped.wait(pause):
            try:
                calm = self._take({kind: self._read(kind) for kind in _KINDS})
            except Exception:  # noqa: BLE001 - logged, and the thread goes on
                _LOG.exception("caBundle", extra={"fields": {"fault": True}})
                calm = True
            pause = _LATER_SECONDS if calm else _SOON_SECONDS

    def _read(self, kind: str) -> raw.JsonObject | str:
        try:
            return self._server.webhook_configuration(
                kind=kind, name=self._name, timeout=_ANSWER_SECONDS
            )
        except asking.NotFoundError:
            return f"the {kind} configuration {self._name} does not exist"
        except asking.ApiError as error:
            return f"the {kind} configuration {self._name} cannot be read: {error}"
