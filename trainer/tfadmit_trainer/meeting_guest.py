"""Everybody but the chief goes to the chief, says who it is, and waits for its word.

I/O: one connection, made again when it breaks, and the log.
"""

import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final, NoReturn

from tfadmit_trainer import chief_watch, meeting, peers, voice
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.meeting import DisagreementError, MeetingError, Message

_CONNECT_SECONDS: Final = 5.0
_AGAIN_SECONDS: Final = 1.0
_TICK_SECONDS: Final = 0.5
# A chief that says nothing for so long is lost; it speaks every 10 s.
_SILENCE_SECONDS: Final = 45.0
_CHIEF_FIRST_SECONDS: Final = 3.0


class Guest:
    """The side of everybody else."""

    def __init__(self, context: TaskContext, *, deadline: float, every: float) -> None:
        self._context, self._deadline, self._every = context, deadline, every
        self._began = time.monotonic()
        self._said = self._began
        self._missing = ""
        self._foreign = False

    def run(self) -> None:
        """Wait for the chief's word; see `rendezvous.meet`."""
        host, _, port = chief_watch.address(self._context).rpartition(":")
        while True:
            with (
                suppress(OSError),
                socket.create_connection((host, int(port)), _CONNECT_SECONDS) as link,
            ):
                link.sendall(meeting.written(meeting.card(self._context)))
                if self._listen(link):
                    return
            self._wait(_AGAIN_SECONDS * random.uniform(0.5, 1.5))  # noqa: S311 - not all at once

    def _listen(self, link: socket.socket) -> bool:
        """Whether the chief said to go on; False when the connection ended."""
        for line in _lines(link, idle=self._tick):
            message = meeting.parse(line)
            self._foreign = message is None
            if message is None:
                return False
            if message.get("state") == "go":
                return True
            self._stop_if_told(message)
            self._missing = str(message.get("missing"))[: meeting.MAX_LINE]
        return False

    def _stop_if_told(self, message: Message) -> None:
        text = str(message.get("text"))[: meeting.MAX_LINE]
        if message.get("state") == "differs":
            raise DisagreementError(text)
        if message.get("state") == "gave up":
            raise MeetingError(text)

    def _wait(self, seconds: float) -> None:
        time.sleep(seconds)
        self._tick()

    def _tick(self) -> None:
        now = time.monotonic()
        waited = now - self._began
        # The chief knows more, so its last words come first.
        if waited >= self._deadline + _CHIEF_FIRST_SECONDS:
            self._give_up(waited)
        if now - self._said >= self._every:
            self._said = now
            whom = self._missing or f"{self._chief()} to start"
            voice.say(f"waiting for {whom}, {waited:.0f} s in the start of the training")

    def _chief(self) -> peers.Peer:
        return peers.members(self._context)[0]

    def _give_up(self, waited: float) -> NoReturn:
        own = f"{self._context.role} {self._context.index}"
        if self._foreign:
            raise MeetingError(
                f"{own} gave up after {waited:.0f} s in the start of the training: {self._chief()} "
                "is training already. This task was started again alone, which TensorFlow does not "
                "allow: all tasks must start again together"
            )
        if self._missing:
            raise MeetingError(
                f"{own} gave up after {waited:.0f} s in the start of the training: waiting for "
                f"{self._missing}; the log of {self._chief()} says more"
            )
        raise MeetingError(meeting.last_words(self._context, [self._chief()], waited=waited))


def _lines(link: socket.socket, *, idle: Callable[[], None]) -> Iterator[bytes]:
    """Give what comes in, line by line, until the other side ends or says nothing for long."""
    link.settimeout(_TICK_SECONDS)
    buffer, last = b"", time.monotonic()
    while time.monotonic() - last < _SILENCE_SECONDS:
        idle()
        try:
            received = link.recv(meeting.MAX_LINE)
        except TimeoutError:
            continue
        except ConnectionError:  # a stranger closes without reading us, after his own first words
            received = b""
        if not received:
            # TensorFlow's first words do not end in a line.
            if buffer:
                yield buffer
            return
        last = time.monotonic()
        buffer += received
        *complete, buffer = buffer.split(b"\n")
        yield from complete
        if len(buffer) > meeting.MAX_LINE:
            return
