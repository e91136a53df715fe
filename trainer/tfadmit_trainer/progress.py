"""How far the training is: to the log, and to Kubeflow Trainer's status server where there is one.

Trainer (v2.2 and newer, feature gate TrainJobStatus) gives the tasks of its `trainer` step a URL,
a certificate authority and a token; `kubectl get trainjob` then shows progress and metrics.
Without them only the log is written. Reporting never delays or ends a training. I/O: HTTPS.
"""

import json
import os
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from tfadmit_trainer import voice
from tfadmit_trainer.context import TaskContext

URL_ENV: Final = "KUBEFLOW_TRAINER_SERVER_URL"
CA_ENV: Final = "KUBEFLOW_TRAINER_SERVER_CA_CERT"
TOKEN_ENV: Final = "KUBEFLOW_TRAINER_SERVER_TOKEN"  # noqa: S105 - the name of a variable

# Trainer asks its clients for no more than that.
MIN_SECONDS: Final = 5.0
_TIMEOUT_SECONDS: Final = 10.0
# Limits of TrainJob.status.trainerStatus.
_MAX_METRICS: Final = 256
_MAX_CHARACTERS: Final = 64


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where to report to."""

    url: str
    ca: str
    token: str
    """Path of a file; Kubernetes renews its content."""


def target_from(environ: Mapping[str, str]) -> Target | None:
    """Give the status server, when Trainer named one."""
    url, ca, token = (environ.get(name, "") for name in (URL_ENV, CA_ENV, TOKEN_ENV))
    if not (url.startswith("https://") and ca and token):
        return None
    return Target(url=url, ca=ca, token=token)


def status(
    *, fraction: float, metrics: Mapping[str, float], remaining: float | None, now: datetime
) -> dict[str, Any]:
    """Write a status as Trainer reads it."""
    content: dict[str, Any] = {
        "progressPercentage": max(0, min(100, int(fraction * 100))),
        "metrics": [
            {"name": name[:_MAX_CHARACTERS], "value": f"{value:.6g}"}
            for name, value in list(metrics.items())[:_MAX_METRICS]
            if name
        ],
        "lastUpdatedTime": now.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    if remaining is not None:
        content["estimatedRemainingSeconds"] = max(0, int(remaining))
    return {"trainerStatus": content}


def send(target: Target, document: Mapping[str, Any]) -> None:
    """Send a status.

    Raises:
        OSError: it did not arrive (urllib's errors are OSErrors).
    """
    trust = ssl.create_default_context(cafile=target.ca)
    token = Path(target.token).read_text(encoding="utf-8").strip()
    request = urllib.request.Request(  # noqa: S310 - https only, see target_from
        target.url,
        data=json.dumps(document).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        method="POST",
    )
    # No proxy of the environment: the server is inside of the cluster, and the token is for it.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust)
    )
    with opener.open(request, timeout=_TIMEOUT_SECONDS):
        pass


class Reporter:
    """Tells how far the training is. On tasks other than the chief it does nothing."""

    def __init__(self, context: TaskContext, *, environ: Mapping[str, str] | None = None) -> None:
        self._speaks = context.is_chief
        found = target_from(os.environ if environ is None else environ)
        self._target = found if self._speaks else None
        self._started = time.monotonic()
        self._first: float | None = None
        self._sent = -MIN_SECONDS
        self._thread: threading.Thread | None = None
        self._complained = False

    def report(self, *, fraction: float, metrics: Mapping[str, float], what: str) -> None:
        """Report now. `fraction` of the whole training is done; `what` is named in the log."""
        if not self._speaks:
            return
        remaining = self._remaining(fraction)
        values = ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        left = "" if remaining is None else f", about {remaining:.0f} s left"
        voice.say(f"{what} ({fraction:.0%}): {values}{left}")
        self._send(
            status(
                fraction=fraction,
                metrics=metrics,
                remaining=remaining,
                now=datetime.now(timezone.utc),
            ),
            last=fraction >= 1,
        )

    def _remaining(self, fraction: float) -> float | None:
        """Estimate from what this attempt did: a resumed training did not start at 0."""
        if self._first is None:
            self._first, self._started = fraction, time.monotonic()
            return None
        done = fraction - self._first
        elapsed = time.monotonic() - self._started
        return elapsed / done * (1 - fraction) if done > 0 else None

    def _send(self, document: Mapping[str, Any], *, last: bool) -> None:
        if self._target is None:
            return
        busy = self._thread is not None and self._thread.is_alive()
        if not last and (busy or time.monotonic() - self._sent < MIN_SECONDS):
            return
        if busy and self._thread is not None:
            self._thread.join(_TIMEOUT_SECONDS)
        self._sent = time.monotonic()
        self._thread = threading.Thread(
            target=self._deliver, args=(self._target, document), daemon=True
        )
        self._thread.start()
        if last:
            # The process ends soon, and the last status is the one that stays.
            self._thread.join(_TIMEOUT_SECONDS)

    def _deliver(self, target: Target, document: Mapping[str, Any]) -> None:
        try:
            send(target, document)
        except (OSError, ValueError) as error:
            if not self._complained:
                self._complained = True
                voice.say(f"Trainer's status server did not take the progress: {error}")
