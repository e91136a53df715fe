"""One run of a container from its first line to its last, over connections that break."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tfadmit_client.cluster import listing
from tfadmit_client.logs import source
from tfadmit_client.logs.line import Line
from tfadmit_client.logs.position import Position

# A training may be silent for long; after this the connection is made anew, which costs nothing.
_SILENCE_SECONDS = 120.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
# 400 until the container has started, 404 when its node is gone, 408 and 429 while the API server
# is busy; 500 and above while the node does not answer. Before the next try the pod is looked for.
_PASSING = frozenset({400, 404, 408, 429})
# With status 200 the kubelet answers in words when a log is gone, or cannot be watched
# (kubernetes/kubernetes#142258). Lines of the program begin with their time.
_WORDS_OF_THE_NODE = (
    b"unable to retrieve container logs for ",
    b"failed to try resolving symlinks in path ",
    b"failed to open log file ",
    b"failed to create fsnotify watcher: ",
    b"failed to get container status ",
    b"rpc error: code = ",
)
# Of one that is not followed; a break in the middle is mended as when following.
_TRIES = 3


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a log is read."""

    follow: bool = False
    tail: int | None = None
    """Only so many of the lines that are there at first."""

    stopped: Callable[[], bool] = lambda: False
    sleep: Callable[[float], None] = time.sleep
    opened: Callable[[source.Stream], None] = lambda _: None
    """Is told of each connection, so that somebody else can interrupt it."""


class GoneError(listing.ReadError):
    """The node has the log no more, and not all of it is known to have been told."""


def lines(cluster: source.Cluster, run: source.Run, options: Options) -> Iterator[Line]:
    """Give each line once; when following, until the run has ended or its pod is gone.

    Raises:
        GoneError: its node has it no more.
        ReadError: it cannot be read; when following, only what another try would not mend.
    """
    reader = _Reader(cluster, run, options)
    pause, broken = _FIRST_PAUSE, 0
    while not options.stopped():
        told = reader.told
        try:
            yield from reader.once()
        except listing.UnreachableError:
            broken = 0 if reader.told > told else broken + 1
            if not options.follow and broken >= _TRIES:
                raise
        except listing.StatusError as error:
            if not options.follow or (error.status not in _PASSING and error.status < 500):
                raise
        if reader.over:
            return
        pause = _FIRST_PAUSE if reader.told > told else min(2 * pause, _LONGEST_PAUSE)
        options.sleep(pause)


class _Reader:
    """Reads a run in as many connections as it takes."""

    def __init__(self, cluster: source.Cluster, run: source.Run, options: Options) -> None:
        self._cluster = cluster
        self._run = run
        self._options = options
        self._position = Position()
        self.told = 0
        self.over = False
        """Whether the last line has been told."""

        self._ended = False
        """Whether a connection that followed the log came to its end in order."""

    def once(self) -> Iterator[Line]:
        """Give the lines of one connection that were not told before."""
        standing = source.standing(self._cluster, self._run)
        if standing == "gone":
            self.over = True
            return
        if standing == "waiting":
            self.over = not self._options.follow
            return
        # What has ended is read once more to its end: a broken connection may have hidden it.
        last = standing in ("ended", "previous") or not self._options.follow
        self._position.reconnected()
        stream = self._cluster.log(
            self._run.namespace,
            self._run.pod,
            query=self._query(follow=not last, previous=standing == "previous"),
            silence=_SILENCE_SECONDS,
        )
        self._options.opened(stream)
        for raw in stream:
            if raw.startswith(_WORDS_OF_THE_NODE):
                if last and not self._ended:
                    said = raw.decode("utf-8", "replace").strip()
                    raise GoneError(f"the node has it no more: {said}")
                self.over = last
                return
            # Without its line feed it is a line that was cut off, unless it is the last one.
            if (raw.endswith(b"\n") or last) and (line := self._line(raw)):
                self.told += 1
                yield line
        self.over, self._ended = last, True

    def _line(self, raw: bytes) -> Line | None:
        taken = self._position.take(raw)
        if taken is None:
            return None
        at, text = taken
        return Line(replica=self._run.replica, attempt=self._run.attempt, text=text, at=at)

    def _query(self, *, follow: bool, previous: bool) -> dict[str, str]:
        query = {"container": self._run.container, "timestamps": "true"}
        if follow:
            query["follow"] = "true"
        if previous:
            query["previous"] = "true"
        if self._position.since:
            query["sinceTime"] = self._position.since
        elif self._options.tail is not None:
            query["tailLines"] = str(self._options.tail)
        return query
