"""What the server tells about itself: Prometheus metrics and one log line per decision.

Names and labels stand here, once. Labels are few and closed; nothing of a pod is one. No log line
holds an object or a value of an environment variable. Serving `/metrics` is done in `serve`.
"""

import logging
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

import tfadmit_trainer
from tfadmit_webhook import raw
from tfadmit_webhook.decision import Decision
from tfadmit_webhook.review import Request

_LOG = logging.getLogger("tfadmit")
# From an answer without a look-up (about 1 ms) to the API server's default patience.
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Observer:
    """Counts and logs what happens; safe to call from any thread."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "tfadmit_admission_requests_total",
            "Admission requests that were decided.",
            ("hook", "allowed", "reason", "dry_run"),
            registry=registry,
        )
        self._seconds = Histogram(
            "tfadmit_admission_duration_seconds",
            "Time from the arrival of a review to its answer.",
            ("hook",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._in_flight = Gauge(
            "tfadmit_in_flight", "Reviews in work or waiting for a thread.", registry=registry
        )
        self._rejected = Counter(
            "tfadmit_rejected_requests_total",
            "Requests that were refused as HTTP requests.",
            ("status",),
            registry=registry,
        )
        self._init_lookups(registry)

    def _init_lookups(self, registry: CollectorRegistry) -> None:
        self._lookups = Counter(
            "tfadmit_lookups_total",
            "Look-ups of JobSets and Jobs.",
            ("object", "source", "outcome"),
            registry=registry,
        )
        self._lookup_seconds = Histogram(
            "tfadmit_lookup_duration_seconds",
            "Time that the API server took to answer a look-up.",
            ("object",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._synced = Gauge(
            "tfadmit_cache_synced", "1 while the watch of JobSets is up.", registry=registry
        )
        self._objects = Gauge("tfadmit_cache_objects", "JobSets in the cache.", registry=registry)
        self._certificates = Counter(
            "tfadmit_certificate_reads_total",
            "Renewed certificates that were read while serving.",
            ("outcome",),
            registry=registry,
        )
        Gauge(
            "tfadmit_build_info",
            "1, with the versions in use.",
            ("version", "python"),
            registry=registry,
        ).labels(tfadmit_trainer.__version__, platform.python_version()).set(1)

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
        reason = decision.reason.value
        allowed, dry_run = _word(decision.allowed), _word(request.dry_run)
        self._requests.labels(hook, allowed, reason, dry_run).inc()
        self._seconds.labels(hook).observe(seconds)
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
        """Count and log that a renewed certificate is used, or why it cannot be."""
        self._certificates.labels("failed" if trouble else "used").inc()
        fields = {"used": not trouble, "message": trouble or "renewed"}
        _LOG.log(
            logging.ERROR if trouble else logging.INFO, "certificate", extra={"fields": fields}
        )

    def rejected(self, *, status: int, message: str, path: str) -> None:
        """Count and log a request that was refused as an HTTP request."""
        self._rejected.labels(str(status)).inc()
        fields = {"status": status, "path": path, "message": message}
        _LOG.warning("rejected", extra={"fields": fields})

    @contextmanager
    def in_flight(self) -> Iterator[None]:
        """Count a review as long as the context lasts."""
        with self._in_flight.track_inprogress():
            yield

    def looked_up(
        self, *, kind: str, source: str, outcome: str, seconds: float | None = None
    ) -> None:
        """Count a look-up; `seconds` when the API server was asked."""
        self._lookups.labels(kind, source, outcome).inc()
        if seconds is not None:
            self._lookup_seconds.labels(kind).observe(seconds)

    def cache_changed(self, *, objects: int) -> None:
        """Tell how many JobSets the cache holds."""
        self._objects.set(objects)

    def watch_changed(self, *, up: bool) -> None:
        """Tell whether the cache follows the API server."""
        self._synced.set(int(up))


def _word(value: bool) -> str:  # noqa: FBT001 - the value itself is the subject
    return "true" if value else "false"


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
