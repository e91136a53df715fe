"""The chief listens until all others are there and agree, and then lets all go on together.

I/O: a listening socket on the task's own port, one connection for each other task, the log.
"""

import selectors
import socket
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Final, NoReturn

from tfadmit_trainer import meeting, peers, voice
from tfadmit_trainer.context import TaskContext
from tfadmit_trainer.meeting import DisagreementError, MeetingError, Message, Who

# Thousands of tasks may come in the same second.
_BACKLOG: Final = 4096
_TICK_SECONDS: Final = 0.5


@dataclass
class _Link:
    """A connection to the chief, and what it said."""

    link: socket.socket
    buffer: bytes = b""
    who: Who | None = None
    card: Message = field(default_factory=dict)


class Host:
    """The chief's side of the meeting."""

    def __init__(self, context: TaskContext, *, deadline: float, every: float) -> None:
        self._context, self._deadline, self._every = context, deadline, every
        self._own = meeting.card(context)
        everybody = peers.members(context)
        self._awaited = {
            (peer.role, peer.index): peer
            for peer in everybody
            if not peers.is_own(peer, context=context)
        }
        self._present: dict[Who, _Link] = {}
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Wait for all; see `rendezvous.meet`."""
        with closing(self._selector), self._listen() as listener:
            self._selector.register(listener, selectors.EVENT_READ)
            try:
                self._wait(listener)
                # Before anybody goes on: what connects from now on shall find TensorFlow.
                self._selector.unregister(listener)
                listener.close()
                self._tell({"state": "go"})
            finally:
                for link in self._links():
                    link.link.close()

    def _wait(self, listener: socket.socket) -> None:
        began = said = time.monotonic()
        while len(self._present) < len(self._awaited):
            for key, _ in self._selector.select(timeout=_TICK_SECONDS):
                if key.fileobj is listener:
                    self._accept(listener)
                else:
                    self._read(key.data)
            now = time.monotonic()
            if now - began >= self._deadline:
                self._give_up(now - began)
            if now - said >= self._every:
                said = now
                self._report(now - began)

    def _listen(self) -> socket.socket:
        port = int(self._context.address.rpartition(":")[2])
        return socket.create_server(("", port), backlog=_BACKLOG)

    def _accept(self, listener: socket.socket) -> None:
        link, _ = listener.accept()
        link.setblocking(False)  # noqa: FBT003 - as the library has it
        self._selector.register(link, selectors.EVENT_READ, _Link(link))

    def _read(self, link: _Link) -> None:
        try:
            received = link.link.recv(meeting.MAX_LINE)
        except OSError:
            received = b""
        link.buffer += received
        if not received or len(link.buffer) > meeting.MAX_LINE:
            self._drop(link)
        elif link.buffer.endswith(b"\n"):
            self._welcome(link)

    def _welcome(self, link: _Link) -> None:
        message = meeting.parse(link.buffer)
        link.buffer = b""
        who = meeting.who(message)
        if message is None or who is None or who not in self._awaited:
            self._drop(link)
            return
        differ = [name for name in ("cluster", "attempt") if message.get(name) != self._own[name]]
        if differ:
            self._refuse(who, differ)
        link.who = who
        self._present[who] = link

    def _drop(self, link: _Link) -> None:
        self._selector.unregister(link.link)
        link.link.close()
        if link.who is not None and self._present.get(link.who) is link:
            del self._present[link.who]

    def _refuse(self, who: Who, differ: list[str]) -> NoReturn:
        text = (
            f"{who[0]} {who[1]} sees another {' and another '.join(differ)} than "
            f"{self._context.role} {self._context.index}: all tasks must start together, with the "
            "same environment"
        )
        self._tell({"state": "differs", "text": text})
        raise DisagreementError(text)

    def _tell(self, message: Message) -> None:
        for link in self._links():
            with suppress(OSError):
                link.link.send(meeting.written(message))

    def _links(self) -> list[_Link]:
        keys = list(self._selector.get_map().values())
        return [key.data for key in keys if isinstance(key.data, _Link)]

    def _missing(self) -> list[peers.Peer]:
        return [peer for who, peer in self._awaited.items() if who not in self._present]

    def _report(self, waited: float) -> None:
        absent = self._missing()
        named = f"{peers.describe(absent)} ({len(absent)} of {self._context.members})"
        voice.say(f"waiting for {named}, {waited:.0f} s in the start of the training")
        self._tell({"state": "waiting", "missing": named})

    def _give_up(self, waited: float) -> NoReturn:
        text = meeting.last_words(self._context, self._missing(), waited=waited)
        self._tell({"state": "gave up", "text": text})
        raise MeetingError(text)
