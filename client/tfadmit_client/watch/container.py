"""A container of a pod as the kubelet reports it. Pure views, null-safe; nothing is judged."""

from collections.abc import Iterator
from dataclasses import dataclass

from tfadmit_webhook import raw


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a run of a container ended."""

    code: int
    reason: str
    """The kubelet's word: `Error`, `OOMKilled`, `StartError`, `ContainerCannotRun`, …"""

    message: str
    """What the container left in its termination log, or the kubelet's own sentence."""

    at: str
    """RFC 3339; empty when it is not known."""


@dataclass(frozen=True, kw_only=True)
class Container:
    """A container and the state of its present run."""

    name: str
    init: bool
    sidecar: bool
    """An init container that stays, `restartPolicy: Always`."""

    image: str
    restarts: int
    running: bool
    waiting: str
    """The kubelet's word for why it does not run; empty when it does, or did."""

    message: str
    """What the kubelet says to that word."""

    ended: Ended | None
    before: Ended | None
    """How the run before this one ended."""

    log_policy: str
    memory: str
    """The limit of memory, as it was written."""

    @property
    def started(self) -> bool:
        """Whether the run with the number `restarts` has a log."""
        return self.running or self.ended is not None or self.crashed

    @property
    def crashed(self) -> bool:
        """Whether it waits to be started again; until then the kubelet counts the run before."""
        return bool(self.waiting) and self.before is not None


def containers(pod: raw.JsonObject) -> list[Container]:
    """Give the containers of a pod, init containers first, as the spec has them."""
    return [*_of(pod, init=True), *_of(pod, init=False)]


def _of(pod: raw.JsonObject, *, init: bool) -> Iterator[Container]:
    statuses = raw.at(pod, ("status", "initContainerStatuses" if init else "containerStatuses"))
    by_name = {
        raw.text(item.get("name")): item for item in map(raw.mapping, raw.sequence(statuses))
    }
    specs = raw.sequence(raw.at(pod, ("spec", "initContainers" if init else "containers")))
    for spec in map(raw.mapping, specs):
        name = raw.text(spec.get("name"))
        yield _container(spec, by_name.get(name, {}), name=name, init=init)


def _container(spec: raw.JsonObject, status: raw.JsonObject, *, name: str, init: bool) -> Container:
    state = raw.mapping(status.get("state"))
    waiting = raw.mapping(state.get("waiting"))
    return Container(
        name=name,
        init=init,
        sidecar=init and spec.get("restartPolicy") == "Always",
        image=raw.text(spec.get("image")),
        restarts=raw.count(status.get("restartCount"), default=0),
        running=isinstance(state.get("running"), dict),
        waiting=raw.text(waiting.get("reason")),
        message=" ".join(raw.text(waiting.get("message")).split()),
        ended=_ended(state.get("terminated")),
        before=_ended(raw.at(status, ("lastState", "terminated"))),
        log_policy=raw.text(spec.get("terminationMessagePolicy")),
        memory=str(raw.at(spec, ("resources", "limits", "memory")) or ""),
    )


def _ended(value: object) -> Ended | None:
    if not isinstance(value, dict):
        return None
    code = value.get("exitCode")
    return Ended(
        code=code if isinstance(code, int) else -1,
        reason=raw.text(value.get("reason")),
        message=raw.text(value.get("message")),
        at=raw.text(value.get("finishedAt")),
    )
