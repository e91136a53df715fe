"""Everything outside that the start of a task touches, in one value that a test can replace.

No decisions here. Whoever needs the environment, the host name, files, name servers, the clock or
the log takes a `Host`; nobody else in this package reads `os.environ`.
"""

import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path

from tfadmit_trainer import resolve, voice


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


@dataclass(frozen=True, kw_only=True)
class Host:
    """This machine, as the start of a task sees it."""

    environ: MutableMapping[str, str] = field(default_factory=lambda: os.environ)
    name: str = field(default_factory=lambda: socket.gethostname().partition(".")[0])
    """The pod's host name, without the domain that `setHostnameAsFQDN` adds."""

    modules: Mapping[str, object] = field(default_factory=lambda: sys.modules)
    read: Callable[[str], str | None] = _read
    """Text of a file, or None when it cannot be read."""

    lookup: resolve.Lookup = resolve.lookup
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    say: voice.Say = voice.say
    warn: voice.Say = voice.warn
