"""The metrics of the controller, and the HTTP port that serves them together with the probes.

Here: names and values of metrics, /metrics, /healthz and /readyz. Not here: when something is worth
counting (`controller`). I/O: a plain HTTP port.
"""

import http.server
import threading
from collections.abc import Callable, Mapping
from datetime import datetime

import prometheus_client as prometheus

from tfadmit_certs import bundle, plan, state

# A probe answers at once; whoever is slower is cut off and holds no thread.
_REQUEST_SECONDS = 5.0


class Metrics:
    """Counters and gauges in a registry of their own."""

    def __init__(self) -> None:
        self.registry = prometheus.CollectorRegistry()
        self._not_after = prometheus.Gauge(
            "tfadmit_certs_not_after_timestamp_seconds",
            "When a certificate ends, in seconds since 1970; 0 when there is none.",
            ["certificate"],
            registry=self.registry,
        )
        self._bundle_bytes = prometheus.Gauge(
            "tfadmit_certs_bundle_bytes", "Size of the caBundle.", registry=self.registry
        )
        self._bundle_certificates = prometheus.Gauge(
            "tfadmit_certs_bundle_certificates",
            "Number of CAs in the caBundle.",
            registry=self.registry,
        )
        self._untrusting = prometheus.Gauge(
            "tfadmit_certs_webhooks_without_bundle",
            "Number of webhooks of ours whose caBundle is not the wanted one.",
            registry=self.registry,
        )
        self._webhooks = prometheus.Gauge(
            "tfadmit_certs_webhooks", "Number of webhooks of ours.", registry=self.registry
        )
        self._leader = prometheus.Gauge(
            "tfadmit_certs_leader", "1 in the replica that writes.", registry=self.registry
        )
        self._refused = prometheus.Gauge(
            "tfadmit_certs_refused",
            "1 while a person must do something; the log says what.",
            registry=self.registry,
        )
        self._phase = prometheus.Gauge(
            "tfadmit_certs_phase",
            "1 for the phase that a rotation is in.",
            ["phase"],
            registry=self.registry,
        )
        self._steps = prometheus.Counter(
            "tfadmit_certs_steps",
            "Writes by step and reason.",
            ["step", "reason"],
            registry=self.registry,
        )
        self._rotations = prometheus.Counter(
            "tfadmit_certs_rotations",
            "Steps of rotations by phase.",
            ["phase"],
            registry=self.registry,
        )
        self._mended = prometheus.Counter(
            "tfadmit_certs_mended",
            "Broken certificates replaced, by reason.",
            ["reason"],
            registry=self.registry,
        )
        self._healed = prometheus.Counter(
            "tfadmit_certs_bundles_healed",
            "caBundles put back after somebody changed them.",
            ["kind"],
            registry=self.registry,
        )
        self._errors = prometheus.Counter(
            "tfadmit_certs_errors",
            "Looks and writes that failed, by reason.",
            ["reason"],
            registry=self.registry,
        )
        for phase in ("steady", "publish", "settle", "promote", "reissue", "retire"):
            self._phase.labels(phase).set(0)
            self._rotations.labels(phase)
        self._leader.set(0)
        self._refused.set(0)

    def leading(self, held: bool) -> None:  # noqa: FBT001 - a callback with one fact
        """Take note of whether this replica writes."""
        self._leader.set(int(held))

    def saw(self, view: state.View, *, refused: bool, phase: str) -> None:
        """Take note of a look."""
        for name, end in _ends(view).items():
            self._not_after.labels(name).set(end.timestamp() if end else 0)
        authority = view.authority
        pem = authority.pem if authority else b""
        self._bundle_bytes.set(len(pem))
        self._bundle_certificates.set(len(authority.trusted) if authority else 0)
        self._webhooks.set(sum(len(item.hooks) for item in view.configurations))
        self._untrusting.set(sum(len(item.lacks(pem)) for item in view.configurations))
        self._refused.set(int(refused))
        for name in ("steady", "publish", "settle", "promote", "reissue", "retire"):
            self._phase.labels(name).set(int(name == phase))

    def did(self, step: plan.Step, *, healed: bool) -> None:
        """Take note of a step that was carried out."""
        self._steps.labels(step.name, step.word).inc()
        if step.mends:
            self._mended.labels(step.word).inc()
        if healed and step.target:
            self._healed.labels(step.target.kind).inc()
        elif step.name not in ("copy-bundle", "adopt", "disown"):
            self._rotations.labels(step.phase).inc()

    def failed(self, reason: str) -> None:
        """Take note of a failure."""
        self._errors.labels(reason).inc()


def _ends(view: state.View) -> Mapping[str, datetime | None]:
    authority, leaf = view.authority, view.leaf
    following = authority.next if authority else None
    found: dict[str, bundle.Certificate | None] = {
        "ca": authority.current.certificate if authority else None,
        "next": following.certificate if following else None,
        "leaf": leaf.certificate if leaf else None,
    }
    return {name: item.not_valid_after_utc if item else None for name, item in found.items()}


class Port:
    """The HTTP port. `start` binds it; OSError when that fails."""

    def __init__(
        self,
        *,
        host: str,
        port: int,
        registry: prometheus.CollectorRegistry,
        alive: Callable[[], str],
        ready: Callable[[], str],
    ) -> None:
        answers: dict[str, Callable[[], tuple[int, bytes]]] = {
            "/metrics": lambda: (200, prometheus.generate_latest(registry)),
            "/healthz": lambda: _probe(alive()),
            "/readyz": lambda: _probe(ready()),
        }
        self._server = http.server.ThreadingHTTPServer((host, port), _handler(answers))
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]

    def start(self) -> None:
        """Serve in a thread, until the process ends."""
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()

    def stop(self) -> None:
        """End serving."""
        self._server.shutdown()
        self._server.server_close()


def _probe(trouble: str) -> tuple[int, bytes]:
    return (503, f"{trouble}\n".encode()) if trouble else (200, b"ok\n")


def _handler(
    answers: Mapping[str, Callable[[], tuple[int, bytes]]],
) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = _REQUEST_SECONDS

        def do_GET(self) -> None:
            answer = answers.get(self.path.partition("?")[0])
            status, content = answer() if answer else (404, b"not found\n")
            self.send_response(status)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing: probes come every few seconds."""

    return Handler
