"""The server's life in the event loop: waiting for a certificate, serving, draining, the end.

Here is what happens when. Connections are taken in `listen`, when draining may end is computed in
`drain`, everything is put together in `serve`.
"""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp.http_exceptions import HttpProcessingError

from tfadmit_webhook import drain, identity, listen
from tfadmit_webhook.signals import INTERRUPTED, Signals

_LOG = logging.getLogger("tfadmit")
HTTP_LOG = logging.getLogger("tfadmit.http")
# How often certificates in files are read and slow connections are looked for.
_TICK_SECONDS = 1.0
# The first certificate is shown as soon as it is there: pods wait for it.
_FIRST_SECONDS = 0.05
# Longer than any review takes (the API server waits 30 s at most).
_FINISH_SECONDS = 30.0
# For the last answers on the plain port.
_LAST_SECONDS = 0.1


class Observer(Protocol):
    """Who is told."""

    def draining(self) -> None:
        """Take note that the server was told to end."""


class Gate(Protocol):
    """What answers beside the reviews: the plain port, or the line to the main process."""

    def open(self) -> None:
        """Answer from now on."""

    def close(self) -> None:
        """Answer nobody new."""

    async def finish(self, seconds: float) -> None:
        """Let what is in work end."""

    def sweep(self) -> None:
        """End what is overdue."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What lives."""

    reviews: Callable[[], listen.Door]
    """Makes the door for reviews; in the loop."""

    beside: Callable[[], Gate | None]
    """Makes what tells of metrics and probes, if anything does; in the loop."""

    keeper: identity.Keeper
    drain: drain.Drain
    observer: Observer
    looks: Sequence[Callable[[], None]]
    """What is to be done every second, in a thread."""

    listening: Callable[[], None]
    """Is called when reviews can come."""


async def live(parts: Parts, signals: Signals) -> None:
    """Serve until a signal comes, and until nobody asks any more."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_log_loop_fault)
    HTTP_LOG.addFilter(_is_ours)
    told = asyncio.Event()
    signals.listen(_Listener(loop, parts.drain, told))
    reviews = parts.reviews()
    beside = parts.beside()
    if beside:
        beside.open()
    ticking = asyncio.create_task(_tick(parts, [gate for gate in (reviews, beside) if gate]))
    try:
        if await _has_certificate(parts, told):
            reviews.open()
            parts.listening()
            await told.wait()
            await _drain(parts, told)
        _LOG.info("stopping", extra={"fields": {}})
        reviews.close()
        await reviews.finish(_FINISH_SECONDS)
    finally:
        ticking.cancel()
        # Last, so that probes and metrics tell of the end.
        if beside:
            beside.close()
            await beside.finish(_LAST_SECONDS)


async def _has_certificate(parts: Parts, told: asyncio.Event) -> bool:
    """Wait for the first certificate; tells whether it came before the end."""
    while parts.keeper.context is None and not told.is_set():
        await _wait(told, _FIRST_SECONDS)
    return not told.is_set()


async def _drain(parts: Parts, told: asyncio.Event) -> None:
    parts.observer.draining()
    _LOG.info("draining", extra={"fields": {"seconds": parts.drain.left()}})
    while (left := parts.drain.left()) > 0:
        told.clear()
        await _wait(told, left)


async def _wait(told: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(told.wait(), seconds)


async def _tick(parts: Parts, gates: Sequence[Gate]) -> None:
    while True:
        await asyncio.to_thread(_look, parts.looks)
        for gate in gates:
            gate.sweep()
        await asyncio.sleep(_TICK_SECONDS)


def _look(looks: Sequence[Callable[[], None]]) -> None:
    try:
        for look in looks:
            look()
    except Exception:  # noqa: BLE001 - logged, and the next look may do better
        _LOG.exception("look", extra={"fields": {}})


class _Listener:
    """What a signal means: SIGTERM drains; SIGINT waits for nobody, a second one not for answers.

    It runs between any two instructions of the main thread, so it only passes the word on.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, draining: drain.Drain, told: asyncio.Event
    ) -> None:
        self._loop = loop
        self._drain = draining
        self._told = told
        self._interrupted = False

    def __call__(self, number: signal.Signals) -> None:
        if number is signal.SIGINT and self._interrupted:
            os._exit(INTERRUPTED)
        self._interrupted = self._interrupted or number is signal.SIGINT
        # RuntimeError: the loop is closed, so the end is near anyway.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._pass_on, number)

    def _pass_on(self, number: signal.Signals) -> None:
        if number is signal.SIGINT:
            self._drain.hurry()
        else:
            self._drain.begin()
        self._told.set()


def _is_ours(record: logging.LogRecord) -> bool:
    """Keep out what clients do wrong: anybody who reaches the port could fill the log."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError | ConnectionError)


def _log_loop_fault(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, OSError):  # connections that break
        return
    _LOG.error("fault in the event loop", exc_info=error, extra={"fields": context})
