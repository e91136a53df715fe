"""What the pods of a job take in etcd, as etcd itself says.

The API server keeps a pod as protocol buffers, with what it fills in, who set which field, and the
status. So the bytes are not those of the handler's JSON; what admission adds can be compared.
"""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import urllib3

from bench import burst, hook, rounds, specimens, stage


@dataclass(frozen=True, kw_only=True)
class Stored:
    """The newest versions of some objects."""

    objects: int
    total: int
    """Bytes of their values."""

    writes: float
    """How often one was written on the average; etcd keeps older versions until compaction."""

    @property
    def each(self) -> float:
        """Bytes of one on the average."""
        return self.total / self.objects


def pods(etcd: str, namespace: str) -> Stored:
    """Ask etcd for the pods of a namespace."""
    prefix = f"/registry/pods/{namespace}/"
    answer = urllib3.request(
        "POST", f"{etcd}/v3/kv/range", body=json.dumps(_range(prefix)), timeout=60, retries=False
    )
    if answer.status != 200:
        raise RuntimeError(f"etcd answers {answer.status}: {answer.data.decode()[:300]}")
    return read(answer.json())


def read(answer: Mapping[str, Sequence[Mapping[str, str]]]) -> Stored:
    """An answer of etcd's gateway, which has no `kvs` when there are none."""
    found = answer.get("kvs", [])
    return Stored(
        objects=len(found),
        total=sum(len(base64.b64decode(one["value"])) for one in found),
        writes=sum(int(one["version"]) for one in found) / max(1, len(found)),
    )


def _range(prefix: str) -> dict[str, str]:
    # The first key that no longer begins so: etcd's own way to ask for a prefix.
    end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    return {
        name: base64.b64encode(key.encode()).decode()
        for name, key in (("key", prefix), ("range_end", end))
    }


def compare(sizes: Sequence[int]) -> list[tuple[Stored, Stored]]:
    """The pods of a job of each size: as they come without a webhook, and with the product."""
    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        bench = _Bench(stack, Path(scratch), pods=max(sizes))
        return [(bench.measure(tasks), bench.measure(tasks, admitted=True)) for tasks in sizes]


class _Bench:
    """A cluster whose etcd is looked at, with the namespace and names of the specimens.

    Hosts and so the size of what is added depend on them.
    """

    def __init__(self, stack: ExitStack, directory: Path, *, pods: int) -> None:
        made = stage.enter(stack, directory, pods=pods)
        self._cluster, self._ca = made.cluster, made.ca
        self._server = stack.enter_context(made.both.ours())
        self._cluster.create_namespace(name=specimens.NAMESPACE)
        burst.prepare(self._cluster, specimens.NAMESPACE)

    def measure(self, tasks: int, *, admitted: bool = False) -> Stored:
        """Let the pods of one job run, and read what they take."""
        cluster, namespace = self._cluster, specimens.NAMESPACE
        one = burst.Burst(jobs=1, workers=tasks, name=specimens.jobset_name(tasks))
        if admitted:
            hook.call(cluster, self._server, namespace=namespace, ca=self._ca)
        try:
            took = burst.run(cluster, one, namespace=namespace)
            assert cluster.etcd
            found = pods(cluster.etcd, namespace)
        finally:
            hook.end(cluster)
            burst.clear(cluster, namespace)
        rounds.say(f"{one}, {'admitted' if admitted else 'as they are'}: {took.running:.0f} s")
        return found
