"""What the program prints: passed on at once, and kept in a file line by line.

Bytes stay bytes. The two streams are passed on as they come; in the file a line of one never tears
a line of the other. A file that cannot be written is told once, and the program goes on.
"""

import os
from pathlib import Path
from typing import Final

from tfadmit_trainer import voice

# Room for a traceback with long messages.
_TAIL_BYTES: Final = 64 * 1024
# A line that is longer is no line any more.
_LINE_BYTES: Final = 64 * 1024


class Log:
    """The file."""

    def __init__(self, path: Path | None) -> None:
        self._file: int | None = None
        if path is not None:
            self._open(path)

    def _open(self, path: Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            self._give_up(error)

    def write(self, content: bytes) -> None:
        """Append."""
        try:
            if self._file is not None:
                all_of(self._file, content)
        except OSError as error:
            self._give_up(error)

    def say(self, text: str) -> None:
        """Write a line of our own, to the file and to standard error."""
        self.write(f"[tfadmit] {text}\n".encode(errors="surrogateescape"))
        voice.say(text)

    def _give_up(self, error: OSError) -> None:
        self._file = None
        voice.say(
            f"the log is not kept in a file ({error.filename or 'writing'}: {error.strerror})"
        )


class Stream:
    """One of the two streams."""

    def __init__(self, *, source: int, target: int, log: Log) -> None:
        self.source = source
        self._target: int | None = target
        self._log = log
        self._line = bytearray()
        self._tail = bytearray()

    def take(self, content: bytes) -> None:
        """Pass on what the program has printed."""
        if self._target is not None:
            try:
                all_of(self._target, content)
            except OSError:  # nobody reads any more; the file goes on
                self._target = None
        self._tail += content
        if len(self._tail) > 2 * _TAIL_BYTES:  # now and then, not with each line
            del self._tail[:-_TAIL_BYTES]
        self._line += content
        end = self._line.rfind(b"\n") + 1
        if end or len(self._line) > _LINE_BYTES:
            self._keep(end or len(self._line))

    def flush(self) -> None:
        """Keep an unfinished line: a progress bar, or the program's last words."""
        self._keep(len(self._line))

    @property
    def tail(self) -> bytes:
        """The end of what was printed."""
        return bytes(self._tail[-_TAIL_BYTES:])

    def _keep(self, length: int) -> None:
        if length:
            self._log.write(bytes(self._line[:length]))
            del self._line[:length]


def all_of(target: int, content: bytes) -> None:
    """Write everything, also where the other side takes it in small pieces."""
    view = memoryview(content)
    while view:
        try:
            view = view[os.write(target, view) :]
        except BlockingIOError:  # noqa: PERF203 - once at most
            os.set_blocking(target, True)
