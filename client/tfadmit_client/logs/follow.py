"""All logs of a job at once, from before its start, across restarts of all tasks, to its end.

Threads read one container each; the caller's thread looks at the job in between and hands out what
they bring. It is the only one that prints.
"""

import contextlib
import dataclasses
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from tfadmit_client import fault
from tfadmit_client.cluster import listing
from tfadmit_client.jobs import find, read
from tfadmit_client.logs import choose, source, stream, wake
from tfadmit_client.logs.line import Line
from tfadmit_client.watch import event, job, seen, state

# Beside the word of changes (`wake`), and where that is not to be had; a big job less often.
_POLL_SECONDS, _POLL_PER_TASK = 1.0, 0.005
# After a word of changes: there are more to come when all pods of a job change.
_SOONEST_SECONDS = 0.2
# Reading all events of a namespace is dear; they tell why a job waits.
_EVENTS_EVERY = 5
# How long the API server may be away; an upgrade of a control plane takes minutes.
_AWAY_SECONDS = 300.0
# What a pod that is gone has printed may still be on its way.
_GONE_SECONDS = 10.0
# After the end of the job, for pods that a lost node never ends.
_LINGER_SECONDS = 30.0
# Lines that wait to be printed; readers wait while there are more.
_AHEAD = 10_000


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is followed, and by which clock."""

    choice: choose.Choice = field(default_factory=choose.Choice)
    tail: int | None = None
    tell: Callable[[str], None] = lambda _: None
    """Is told of each change of the job's state, and of what is missing."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    poll: float = _POLL_SECONDS


class Follower:
    """Follows one job."""

    def __init__(
        self, cluster: source.Cluster, *, namespace: str, name: str, options: Options | None = None
    ) -> None:
        self._cluster = cluster
        self._namespace, self._name = namespace, name
        self._options = options or Options()
        self._queue: queue.Queue[Line | str | Exception | None] = queue.Queue(maxsize=_AHEAD)
        """Lines, what is to be told, what is to be raised, and that the job has changed."""
        self._stop = threading.Event()
        self._readers: dict[source.Run, threading.Thread] = {}
        self._streams: dict[source.Run, source.Stream] = {}
        self._gone: dict[source.Run, float] = {}
        """When the pod of a run was first missing."""
        self._gaps: set[str] = set()
        self._events: Sequence[event.Event] = ()
        self._looks = 0
        self._told = ""
        self._reached = self._options.clock()
        self._uid = ""
        self.final: job.Job | None = None
        """The job when it was last seen; None before that, and when it was deleted."""

    def lines(self) -> Iterator[Line]:
        """Give all lines as they come, until the job has ended and all is told.

        Raises:
            ClientError: there is no such job, or it may not be read.
            UnreachableError: the cluster has not answered for minutes.
        """
        clock, last = self._options.clock, self._options.clock()
        waker = wake.Waker(self._cluster, namespace=self._namespace, name=self._name)
        try:
            waker.start(self._wake)
            while True:
                over = self._look()
                for line in self._waiting_lines(over=over):
                    last = clock()
                    yield line
                alive = any(reader.is_alive() for reader in self._readers.values())
                if over and self._queue.empty() and (not alive or clock() - last > _LINGER_SECONDS):
                    return
        finally:
            self._stop.set()
            waker.stop()
            for opened in list(self._streams.values()):
                opened.interrupt()

    def _waiting_lines(self, *, over: bool) -> Iterator[Line]:
        """Give what the readers bring until it is time to look at the job again."""
        tasks = self.final.tasks if self.final else 0
        begun = self._options.clock()
        poll = self._options.poll + tasks * _POLL_PER_TASK
        until = begun + (min(poll, _POLL_SECONDS) if over else poll)
        while (left := until - self._options.clock()) > 0:
            try:
                item = self._queue.get(timeout=left)
            except queue.Empty:
                return
            if isinstance(item, Exception):
                raise item
            if isinstance(item, str):
                self._options.tell(item)
            elif item is None:
                until = min(until, begun + _SOONEST_SECONDS)
            else:
                yield item

    def _wake(self) -> None:
        """Let the job be looked at soon; a full queue comes to that by itself."""
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(None)

    def _look(self) -> bool:
        """Look at the job: begin to read what has started. Gives whether the job is over."""
        try:
            found = self._read()
        except (listing.UnreachableError, fault.ClientError) as error:
            # What cannot be read at first is a mistake; later, the cluster may be in trouble.
            if not self._uid or self._options.clock() - self._reached > _AWAY_SECONDS:
                raise
            self._say(f"the cluster does not answer; trying again: {error}")
            return False
        self._reached = self._options.clock()
        if found is None:
            self._say(f"{self._name} was deleted")
            self.final = None
            return True
        self.final = job.safe(found)
        reason = self.final.reason.text
        self._say(f"{self._name}: {self.final.state.text}" + (f": {reason}" if reason else ""))
        choose.check(self._options.choice, found)
        self._give_up({seen.uid(pod) for pod in found.pods})
        for run in choose.runs(found, self._options.choice):
            if run not in self._readers:
                self._begin(run)
        return self.final.state.word in state.ENDED

    def _read(self) -> seen.Seen | None:
        first = self._looks == 0
        waits = self.final is None or self.final.state.word not in ("Running", "Suspended")
        events = waits and self._looks % _EVENTS_EVERY == 0
        self._looks += 1
        where = {"namespace": self._namespace, "name": self._name}
        reading = (
            find.one(self._cluster, **where)
            if first
            else read.one(self._cluster, **where, events=events)
        )
        if not reading.jobs:
            return None
        for text in reading.gaps:
            if text not in self._gaps:
                self._gaps.add(text)
                self._options.tell(f"not all is known: {text}")
        (found,) = reading.jobs
        if first or events:
            self._events = found.events
        found = dataclasses.replace(found, events=self._events)
        # Another job of the same name is another story.
        self._uid = self._uid or seen.uid(found.trainjob)
        return found if seen.uid(found.trainjob) == self._uid else None

    def _give_up(self, uids: set[str]) -> None:
        """Let go of logs whose pods are gone: a lost node ends none of its connections."""
        now = self._options.clock()
        for run, opened in list(self._streams.items()):
            if run.uid not in uids and now - self._gone.setdefault(run, now) > _GONE_SECONDS:
                opened.interrupt()

    def _begin(self, run: source.Run) -> None:
        reader = threading.Thread(target=self._bring, args=(run,), daemon=True, name=run.replica)
        self._readers[run] = reader
        reader.start()

    def _bring(self, run: source.Run) -> None:
        options = stream.Options(
            follow=True,
            tail=self._options.tail,
            stopped=self._stop.is_set,
            sleep=self._options.sleep,
            opened=lambda opened: self._streams.update({run: opened}),
        )
        try:
            for line in stream.lines(self._cluster, run, options):
                self._put(line)
        except stream.GoneError as error:
            self._put(f"the end of the log of {run.replica} is missing: {error}")
        except listing.ReadError as error:
            self._put(fault.ClientError(f"the log of {run.replica} cannot be read: {error}"))
        except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
            self._put(error)
        finally:
            self._streams.pop(run, None)

    def _put(self, item: Line | str | Exception) -> None:
        while not self._stop.is_set() and not self._has_put(item):
            pass

    def _has_put(self, item: Line | str | Exception) -> bool:
        try:
            self._queue.put(item, timeout=1)
        except queue.Full:
            return False
        return True

    def _say(self, text: str) -> None:
        if text != self._told:
            self._told = text
            self._options.tell(text)
