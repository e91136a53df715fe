"""What the server tells about itself: what is counted, and one log line per decision.

Names and labels of the metrics stand in `metrics`. No log line holds an object or a value of an
environment variable. Serving `/metrics` is done in `serve`.
"""

import functools
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from prometheus_client import CollectorRegistry

from tfadmit_webhook import metrics, raw
from tfadmit_webhook.decision import Decision, Reason
from tfadmit_webhook.review import Request

_LOG = logging.getLogger("tfadmit")
_OPERATIONS = frozenset(("CREATE", "UPDATE", "DELETE", "CONNECT"))


class Observer:
    """Counts and logs what happens; safe to call from any thread."""

    def __init__(
        self, registry: CollectorRegistry, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._metrics = metrics.Metrics(registry)
        self._clock = clock
        self._heard: float | None = None
        # Looking for a series costs more than counting; there are as few as labels allow.
        self._requests = functools.cache(self._metrics.requests.labels)
        self._seconds = functools.cache(self._metrics.seconds.labels)
        self._lookups = functools.cache(self._metrics.lookups.labels)
        self._metrics.cache_age.set_function(self._cache_age)

    def decided(
        self,
        request: Request,
        decision: Decision,
        *,
        hook: str,
        seconds: float,
        fault: BaseException | None = None,
    ) -> None:
        """Count and log one decision; `fault` is the exception behind a fault of ours."""
        reason, dry_run = decision.reason.value, "true" if request.dry_run else "false"
        self._requests(hook, _operation(request), _kind(decision), reason, dry_run).inc()
        self._seconds(hook).observe(seconds)
        for rule, violated in decision.violations:
            self._metrics.violations.labels(rule, violated).inc()
        fields = _decision_fields(request, decision) | {
            "hook": hook,
            "ms": round(seconds * 1000, 1),
        }
        level = logging.INFO if decision.allowed else logging.WARNING
        _LOG.log(
            logging.ERROR if fault else level,
            "decision",
            exc_info=fault,
            extra={"fields": fields},
        )

    def certificate_read(self, *, trouble: str = "") -> None:
        """Count and log that another certificate is used, or why it cannot be."""
        self._metrics.reloads.labels("failed" if trouble else "used").inc()
        fields = {"used": not trouble, "message": trouble or "in use from the next handshake on"}
        _LOG.log(
            logging.ERROR if trouble else logging.INFO, "certificate", extra={"fields": fields}
        )

    def certificate_ends(self, *, leaf: datetime, ca: datetime | None) -> None:
        """Tell when the certificate in use and its CA end."""
        for name, end in (("leaf", leaf), ("ca", ca)):
            if end:
                self._metrics.not_after.labels(name).set(end.timestamp())

    def ca_bundle(self, *, configuration: str, trusted: bool, size: int) -> None:
        """Tell whether a webhook configuration trusts the certificate in use."""
        self._metrics.trusted.labels(configuration).set(int(trusted))
        self._metrics.bundle_bytes.labels(configuration).set(size)

    def draining(self) -> None:
        """Tell that the server was told to end."""
        self._metrics.draining.set(1)

    def connected(self, count: int) -> None:
        """Tell how many connections there are."""
        self._metrics.connections.set(count)

    def shed(self, cause: str) -> None:
        """Count what was sent away because there was too much of it."""
        self._metrics.shed.labels(cause).inc()

    def rejected(self, *, status: int, message: str, path: str) -> None:
        """Count and log a request that was refused as an HTTP request."""
        self._metrics.rejected.labels(str(status)).inc()
        fields = {"status": status, "path": path, "message": message}
        _LOG.warning("rejected", extra={"fields": fields})

    @contextmanager
    def in_flight(self) -> Iterator[None]:
        """Count a review as long as the context lasts."""
        with self._metrics.in_flight.track_inprogress():
            yield

    def looked_up(
        self, *, kind: str, source: str, outcome: str, seconds: float | None = None
    ) -> None:
        """Count a look-up; `seconds` when the API server was asked."""
        self._lookups(kind, source, outcome).inc()
        if seconds is not None:
            self._metrics.lookup_seconds.labels(kind).observe(seconds)

    def cache_changed(self, *, objects: int) -> None:
        """Tell how many JobSets the cache holds."""
        self._metrics.objects.set(objects)

    def watch_changed(self, *, up: bool) -> None:
        """Tell whether the cache follows the API server."""
        self._metrics.synced.set(int(up))

    def heard(self) -> None:
        """Tell that the watch of JobSets said something just now."""
        self._heard = self._clock()

    def _cache_age(self) -> float:
        return float("nan") if self._heard is None else self._clock() - self._heard


def _kind(decision: Decision) -> str:
    if decision.allowed:
        return "patched" if decision.patch else "allowed"
    return "fault" if decision.reason is Reason.FAULT else "denied"


def _operation(request: Request) -> str:
    # Closed, whatever the review says.
    return request.operation if request.operation in _OPERATIONS else "OTHER"


def _decision_fields(request: Request, decision: Decision) -> dict[str, Any]:
    metadata = raw.mapping(request.object.get("metadata"))
    fields: dict[str, Any] = {
        "uid": request.uid,
        "operation": request.operation,
        "kind": request.kind,
        "namespace": request.namespace,
        # Pods of controllers have no name yet; what is known of it ends in a hyphen.
        "name": request.name or raw.text(metadata.get("name") or metadata.get("generateName")),
        "user": request.user,
        "dry_run": request.dry_run,
        "allowed": decision.allowed,
        "reason": decision.reason.value,
        "patch_ops": len(decision.patch),
    }
    return fields if decision.allowed else fields | {"message": decision.message}
