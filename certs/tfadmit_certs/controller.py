"""The loop: look, plan, do one step, look again.

Here: carrying out what the plan says while this process holds the Lease, waiting, pausing after
errors, and telling the log and the metrics. Not here: what to do (`plan`), the objects (`secret`),
the Lease (`lease`). I/O: the log; the rest by what is handed in.
"""

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Protocol

from tfadmit_certs import fault, hooks, kube, plan, state, steps
from tfadmit_certs.trust import Trust

_LOG = logging.getLogger("tfadmit.certs")
# At least once a minute, because a timer does not run while a machine sleeps and dates go by the
# wall clock. What changes in the cluster is told by watches, long before.
_LONGEST_WAIT = 60.0
_SHORTEST_WAIT = 0.2
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
# Somebody who writes all the time must not make us do so too.
_MANY_CONFLICTS = 25
# A round is a few requests of some seconds each; three times the longest wait is a hung process.
_HUNG_SECONDS = 180.0


class Objects(Protocol):
    """The cluster, as `secret.Store` has it."""

    def look(self) -> state.View:
        """Read everything anew."""

    def write(self, change: state.Write) -> None:
        """Write a Secret."""

    def publish(self, configuration: hooks.Configuration, *, pem: bytes) -> None:
        """Set the caBundle of our webhooks."""

    def disown(self, configuration: hooks.Configuration) -> None:
        """Own nothing of it any more."""


class Monitor(Protocol):
    """Who counts, as `metrics.Metrics` does."""

    def saw(self, view: state.View, *, refused: bool, phase: str) -> None:
        """Take note of a look."""

    def did(self, step: plan.Step, *, healed: bool) -> None:
        """Take note of a step that was carried out."""

    def failed(self, reason: str) -> None:
        """Take note of a failure."""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Time and chance."""

    wall: Callable[[], datetime] = lambda: datetime.now(timezone.utc)
    monotonic: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random


class Controller:
    """The loop and what it knows of itself. `leading` tells whether it may write now."""

    def __init__(
        self,
        objects: Objects,
        *,
        workshop: steps.Workshop,
        leading: Callable[[], bool],
        monitor: Monitor,
        clock: Clock | None = None,
    ) -> None:
        self._objects = objects
        self._workshop = workshop
        self._leading = leading
        self._monitor = monitor
        self._clock = clock or Clock()
        self._trust = Trust()
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._failures = 0
        self._conflicts = 0
        self._refused = ""
        self._beat = self._clock.monotonic()
        self._trouble = "nothing was looked at yet"

    def changed(self) -> None:
        """Look again now; from any thread."""
        self._wake.set()

    def stop(self) -> None:
        """End after the request that is on its way; from any thread or a signal handler."""
        self._stopped.set()
        self._wake.set()

    def hung(self) -> str:
        """Why this process should be restarted; empty when it should not."""
        silence = self._clock.monotonic() - self._beat
        return f"no round since {silence:.0f} s" if silence > _HUNG_SECONDS else ""

    def trouble(self) -> str:
        """Why this process is of no use now; empty when it is."""
        return self._trouble

    def run(self) -> None:
        """Go on until `stop`."""
        while not self._stopped.is_set():
            self._beat = self._clock.monotonic()
            self._wake.clear()
            wait = self._guarded_round()
            if self._failures or self._conflicts:
                # Not to be cut short by a change: a cluster in trouble changes all the time.
                self._stopped.wait(wait)
            elif wait:
                self._wake.wait(wait)

    def round(self) -> float:
        """Look once and do one step; how many seconds to wait until the next, 0 for none.

        Raises:
            kube.ApiError: the API server did not do as asked.
        """
        view = self._objects.look()
        trusted = self._trust.saw(view, at=self._clock.monotonic())
        now = self._clock.wall()
        found = plan.decide(view, wish=self._workshop.wish, trusted=trusted, now=now)
        self._monitor.saw(view, refused=isinstance(found, plan.Refuse), phase=found.phase)
        self._trouble = ""
        self._tell_refusal(found)
        if not self._leading() or isinstance(found, plan.Refuse):
            return _LONGEST_WAIT
        if isinstance(found, plan.Wait):
            left = (found.until - now) / timedelta(seconds=1)
            return min(max(left, _SHORTEST_WAIT), _LONGEST_WAIT)
        self._do(found, view, now=now)
        return 0.0

    def _do(self, step: plan.Step, view: state.View, *, now: datetime) -> None:
        healed = False
        if step.target and step.name == "disown":
            self._objects.disown(step.target)
        elif step.target and view.authority:
            healed = self._trust.was_complete(view.authority.pem)
            self._objects.publish(step.target, pem=view.authority.pem)
        else:
            change = steps.write(step, view, workshop=self._workshop, now=now)
            self._objects.write(change)
        self._monitor.did(step, healed=healed)
        fields = {"step": step.name, "phase": step.phase, "reason": step.word, "text": step.text}
        level = logging.WARNING if step.mends or healed else logging.INFO
        _LOG.log(level, "healed" if healed else "step", extra={"fields": fields})

    def _guarded_round(self) -> float:
        try:
            wait = self.round()
        except kube.ConflictError as error:
            # Somebody else was faster: nothing is wrong, another look is needed.
            self._monitor.failed("conflict")
            _LOG.info("conflict", extra={"fields": {"text": str(error)}})
            self._conflicts += 1
            return self._clock.chance() * _FIRST_PAUSE * min(self._conflicts, _MANY_CONFLICTS)
        except kube.ApiError as error:
            return self._failed("api", str(error))
        except fault.CertsError as error:
            return self._failed("certificates", str(error))
        except Exception:  # noqa: BLE001 - logged, and the loop goes on
            # A fault of ours must not end the process: the other replica would meet it too.
            _LOG.exception("fault", extra={"fields": {"fault": True}})
            return self._failed("fault", "a fault of tfadmit-certs: see the traceback in its log")
        self._failures = self._conflicts = 0
        return wait

    def _failed(self, reason: str, text: str) -> float:
        self._failures += 1
        self._trouble = text
        self._monitor.failed(reason)
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(self._failures - 1, 10))
        pause *= 0.5 + 0.5 * self._clock.chance()
        fields = {"reason": reason, "text": text, "pause": round(pause, 1)}
        _LOG.warning("failed", extra={"fields": fields})
        return pause

    def _tell_refusal(self, found: plan.Step | plan.Wait | plan.Refuse) -> None:
        text = found.text if isinstance(found, plan.Refuse) else ""
        if text and text != self._refused:
            _LOG.error("refused", extra={"fields": {"text": text}})
        self._refused = text
