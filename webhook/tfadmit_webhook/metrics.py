"""The Prometheus metrics: their names, labels and texts, once.

Labels are few and closed; nothing of a pod is one. What is counted when is decided in `observe`.
"""

import platform
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

import tfadmit_trainer
from tfadmit_webhook import merged

# From an answer without a look-up (under 1 ms) to the API server's default patience.
_SECONDS = (
    *(0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
# What a gauge of several processes means, where it is not their sum: all have the same cache, and
# where two differ the worse one is told.
GAUGES: Mapping[str, merged.Join] = {
    "tfadmit_draining": max,
    "tfadmit_cache_synced": min,
    "tfadmit_cache_objects": max,
    "tfadmit_cache_age_seconds": merged.largest,
    "tfadmit_certificate_not_after_seconds": min,
    "tfadmit_ca_bundle_trusted": min,
    "tfadmit_ca_bundle_bytes": max,
    "tfadmit_build_info": max,
}


class Metrics:
    """All metrics, in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self.requests = self._counter(
            "tfadmit_admission_requests_total",
            "Admission requests that were decided.",
            ("hook", "operation", "decision", "reason", "dry_run"),
        )
        self.seconds = self._histogram(
            "tfadmit_admission_duration_seconds",
            "Time from the arrival of a review to its answer.",
            ("hook",),
        )
        self.violations = self._counter(
            "tfadmit_policy_violations_total",
            "Violations that were found in reviews.",
            ("rule", "level"),
        )
        self._server()
        self._lookups()
        self._certificates()
        self.build = self._gauge(
            "tfadmit_build_info", "1, with the versions in use.", ("version", "python")
        )
        self.build.labels(tfadmit_trainer.__version__, platform.python_version()).set(1)

    def _server(self) -> None:
        self.in_flight = self._gauge(
            "tfadmit_in_flight", "Reviews that are worked on in a thread, or wait for one."
        )
        self.connections = self._gauge("tfadmit_connections", "Open connections.")
        self.shed = self._counter(
            "tfadmit_shed_total", "What was sent away because there was too much of it.", ("cause",)
        )
        self.rejected = self._counter(
            "tfadmit_rejected_requests_total",
            "Requests that were refused as HTTP requests.",
            ("status",),
        )
        self.draining = self._gauge("tfadmit_draining", "1 after the server was told to end.")

    def _lookups(self) -> None:
        self.lookups = self._counter(
            "tfadmit_lookups_total",
            "Look-ups of JobSets, Jobs and runtimes.",
            ("object", "source", "outcome"),
        )
        self.lookup_seconds = self._histogram(
            "tfadmit_lookup_duration_seconds",
            "Time that the API server took to answer a look-up.",
            ("object",),
        )
        self.synced = self._gauge("tfadmit_cache_synced", "1 while the watch of JobSets is up.")
        self.objects = self._gauge("tfadmit_cache_objects", "JobSets in the cache.")
        self.cache_age = self._gauge(
            "tfadmit_cache_age_seconds", "Time since the watch of JobSets last said anything."
        )

    def _certificates(self) -> None:
        self.not_after = self._gauge(
            "tfadmit_certificate_not_after_seconds",
            "When the certificate in use (leaf) and its CA (ca) end, as Unix time.",
            ("certificate",),
        )
        self.reloads = self._counter(
            "tfadmit_certificate_reloads_total",
            "Certificates that were taken (used), or why not was told (failed).",
            ("outcome",),
        )
        self.trusted = self._gauge(
            "tfadmit_ca_bundle_trusted",
            "1 when the webhook configuration's caBundle trusts the certificate in use.",
            ("configuration",),
        )
        self.bundle_bytes = self._gauge(
            "tfadmit_ca_bundle_bytes",
            "Size of the largest caBundle of the webhook configuration.",
            ("configuration",),
        )

    def _counter(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Counter:
        return Counter(name, text, labels, registry=self._registry)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(name, text, labels, registry=self._registry)

    def _histogram(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Histogram:
        return Histogram(name, text, labels, buckets=_SECONDS, registry=self._registry)
