"""Log lines written by a thread of their own, many at once, for as long as reviews are answered.

A line costs a system call and, where its reader is slow, any amount of time; neither must be paid
by a review. Which records there are and how they look is decided in `json_log`.
"""

import json
import logging
import queue
import select
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tfadmit_webhook import json_log, jsontext

# How long lines are gathered. A process that is killed loses as much.
_GATHER_SECONDS = 0.05
# Some seconds of the fastest server, about 10 MB. What comes beyond while nobody reads is counted.
_MOST_LINES = 10_000
# How long the end waits for a reader that takes nothing.
_END_SECONDS = 5.0


@contextmanager
def batched(
    write: Callable[[str], object] | None = None, *, most: int = _MOST_LINES
) -> Iterator[None]:
    """Let a thread write the records of this process until the context ends; then all are written.

    Args:
        write: takes some lines; standard error by default.
        most: how many lines may wait.
    """
    root = logging.getLogger()
    before = root.handlers
    handler = _Handler(write or _to_stderr, most=most)
    root.handlers = [handler]
    handler.start()
    try:
        yield
    finally:
        root.handlers = before  # first, so that nothing comes behind the last line
        handler.stop()


class _Handler(logging.Handler):
    """Passes records on to its thread."""

    def __init__(self, write: Callable[[str], object], *, most: int) -> None:
        super().__init__()
        self._write = write
        self._most = most
        self._formatter = json_log.Formatter(dump=_dump)
        self._queue: queue.SimpleQueue[logging.LogRecord | None] = queue.SimpleQueue()
        self._lost = 0
        self._ending = threading.Event()
        # A daemon: a reader that takes nothing must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="log", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._queue.put(None)
        self._thread.join(_END_SECONDS)
        if not self._thread.is_alive():  # what others were about to say when the end came
            self._write_lines(self._waiting())

    def handle(self, record: logging.LogRecord) -> bool:
        """Take a record, without the lock of other handlers: the queue needs none."""
        if self._queue.qsize() >= self._most:
            self._lost += 1
            return True
        if record.args:  # they may change before they are written
            record.msg, record.args = _message(record), None
        self._queue.put(record)
        return True

    def _run(self) -> None:
        going = True
        while going:
            records = [self._queue.get()]
            self._ending.wait(_GATHER_SECONDS)
            records += self._waiting()
            going = None not in records
            self._write_lines(records)

    def _waiting(self) -> list[logging.LogRecord | None]:
        return [self._queue.get_nowait() for _ in range(self._queue.qsize())]

    def _write_lines(self, records: Sequence[logging.LogRecord | None]) -> None:
        lines = [self._line(record) for record in records if record is not None]
        lost, self._lost = self._lost, 0
        if lost:
            lines.append(_dump({"level": "error", "event": "log lines lost", "count": lost}))
        for piece in pieces(lines):
            self._write_piece(piece)

    def _write_piece(self, piece: str) -> None:
        try:
            self._write(piece)
        except (OSError, ValueError):  # the reader is gone, or the stream is closed
            self._lost += piece.count("\n")

    def _line(self, record: logging.LogRecord) -> str:
        try:
            return self._formatter.format(record)
        except Exception as error:  # noqa: BLE001 - one bad record must not end the thread
            words = {"level": "error", "event": "log", "message": f"no line: {error!r}"}
            return json.dumps(words)


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # noqa: BLE001 - whoever logs must not fail by it
        return f"{record.msg!r}: its words do not fit ({error!r})"


def pieces(lines: Sequence[str]) -> Iterator[str]:
    """Join lines as long as a pipe takes them as one, so that those of two processes never mix."""
    piece, size = "", 0
    for line in lines:
        length = len(line.encode()) + 1
        if piece and size + length > select.PIPE_BUF:
            yield piece
            piece, size = "", 0
        piece, size = f"{piece}{line}\n", size + length
    if piece:
        yield piece


def _to_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _dump(line: object) -> str:
    return jsontext.dump(line).decode()
