"""The Lease: which of the replicas writes.

Here: acquire, renew, release, by the rules of client-go. Another holder's time is measured on this
process's own clock from the last change that was seen, so that clocks need not agree. Nothing rests
on the Lease alone: every write is guarded by a version too. (The election in the Kubernetes package
cannot be stopped, never releases, and measures by wall clock.) I/O: by way of `kube`.
"""

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Protocol

from tfadmit_certs import kube

_LOG = logging.getLogger("tfadmit.certs")


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Seconds, clocks and chance. Whoever waits takes over within `duration` and two `retry`."""

    duration: float = 10.0
    # Without renewal for longer than this, nothing is written: 3 s before another may begin.
    deadline: float = 7.0
    retry: float = 2.0
    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], datetime] = lambda: datetime.now(timezone.utc)
    chance: Callable[[], float] = random.random


class Objects(Protocol):
    """Where the Lease is kept."""

    def read(self) -> Mapping[str, Any] | None:
        """Give the Lease; None when there is none."""

    def create(self, spec: Mapping[str, Any]) -> None:
        """Create it; ConflictError when somebody else did."""

    def replace(self, lease: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
        """Replace it; ConflictError when it is not as it was read."""


class LeaseObject:
    """The Lease on an API server."""

    def __init__(self, api: kube.Api, *, namespace: str, name: str) -> None:
        self._api = api
        self._name = name
        self.path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    def read(self) -> Mapping[str, Any] | None:
        """Give the Lease; None when there is none."""
        try:
            return self._api.request("GET", f"{self.path}/{self._name}")
        except kube.NotFoundError:
            return None

    def create(self, spec: Mapping[str, Any]) -> None:
        """Create it."""
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name},
            "spec": dict(spec),
        }
        self._api.request("POST", self.path, body=body)

    def replace(self, lease: Mapping[str, Any], spec: Mapping[str, Any]) -> None:
        """Replace it."""
        self._api.request("PUT", f"{self.path}/{self._name}", body={**lease, "spec": dict(spec)})


class Lease:
    """One candidate. `attempt` and `release` are called by one thread, `held` by any."""

    def __init__(self, objects: Objects, *, identity: str, timing: Timing | None = None) -> None:
        self._objects = objects
        self._identity = identity
        self._timing = timing or Timing()
        self._seen: object = None
        self._seen_at = 0.0
        self._renewed_at: float | None = None

    @property
    def held(self) -> bool:
        """Whether this process may write now."""
        renewed = self._renewed_at
        return renewed is not None and self._timing.monotonic() - renewed < self._timing.deadline

    def attempt(self) -> None:
        """Acquire or renew it if that is possible now.

        Raises:
            kube.ApiError: the API server did not do as asked; it may be held still.
        """
        # Before the request: the answer may take long, and the others' time begins with the write.
        began = self._timing.monotonic()
        lease = self._objects.read()
        try:
            if lease is None:
                self._objects.create(self._spec({}))
            elif self._may_take(lease.get("spec") or {}):
                self._objects.replace(lease, self._spec(lease.get("spec") or {}))
            else:
                self._renewed_at = None
                return
        except kube.ConflictError:
            # Somebody else was faster; the next attempt sees who.
            return
        self._renewed_at = began

    def release(self) -> None:
        """Give it away, so that another takes it at once.

        Raises:
            kube.ApiError: it could not be given; the others wait for its end.
        """
        if self._renewed_at is None:
            return
        self._renewed_at = None
        lease = self._objects.read()
        spec = (lease or {}).get("spec") or {}
        if lease is not None and spec.get("holderIdentity") == self._identity:
            self._objects.replace(lease, {**spec, "holderIdentity": "", "leaseDurationSeconds": 1})

    def pause(self) -> float:
        """How long to wait until the next attempt, in seconds; spread, so that replicas differ."""
        return self._timing.retry * (0.8 + 0.4 * self._timing.chance())

    def _may_take(self, spec: Mapping[str, Any]) -> bool:
        holder = spec.get("holderIdentity")
        if not holder or holder == self._identity:
            return True
        now = self._timing.monotonic()
        record = (holder, spec.get("renewTime"), spec.get("leaseTransitions"))
        if record != self._seen:
            self._seen, self._seen_at = record, now
        stated = spec.get("leaseDurationSeconds")
        duration = (
            float(stated) if isinstance(stated, int) and stated > 0 else self._timing.duration
        )
        return now - self._seen_at > duration

    def _spec(self, old: Mapping[str, Any]) -> dict[str, Any]:
        now = self._timing.wall().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        mine = old.get("holderIdentity") == self._identity
        transitions = int(old.get("leaseTransitions") or 0)
        return {
            **old,
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(self._timing.duration),
            "acquireTime": old.get("acquireTime") if mine and old.get("acquireTime") else now,
            "renewTime": now,
            "leaseTransitions": transitions if mine or not old else transitions + 1,
        }


class Keeper:
    """The thread that acquires and renews a Lease, and gives it away at the end."""

    def __init__(self, lease: Lease, *, changed: Callable[[bool], None]) -> None:
        self._lease = lease
        self._changed = changed
        self._stopped = threading.Event()
        self._wake = threading.Event()
        self._told = False
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    @property
    def leading(self) -> bool:
        """Whether this process may write now."""
        return self._lease.held and not self._stopped.is_set()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def look(self) -> None:
        """Let the thread look at the Lease now: it has changed."""
        if not self._lease.held:
            self._wake.set()

    def stop(self) -> None:
        """End and give the Lease away; bounded by the time of two requests."""
        self._stopped.set()
        self._wake.set()
        self._thread.join()
        try:
            self._lease.release()
        except kube.ApiError as error:
            _LOG.warning("lease_not_released", extra={"fields": {"reason": str(error)}})

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._lease.attempt()
            except kube.ApiError as error:
                _LOG.warning("lease", extra={"fields": {"reason": str(error)}})
            self._tell()
            self._wake.wait(self._lease.pause())
            self._wake.clear()
            self._tell()

    def _tell(self) -> None:
        held = self._lease.held
        if held != self._told:
            self._told = held
            self._changed(held)
