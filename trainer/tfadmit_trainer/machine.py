"""The machine of a task, judged: GPUs, NCCL's settings, InfiniBand, TensorFlow and Keras.

Facts come from `probes`; here is what they mean for a training.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfadmit_trainer import contract, probes
from tfadmit_trainer.findings import Finding


@dataclass(frozen=True, kw_only=True)
class Looks:
    """How to look at the machine."""

    port_error: Callable[[int], str | None] = probes.port_error
    interfaces: Callable[[], Sequence[str]] = probes.interfaces
    gpus: Callable[[], Sequence[str]] = probes.gpus
    infiniband: Callable[[], Sequence[probes.Port]] = probes.infiniband
    software: Callable[[], probes.Software] = probes.software


def look(environ: Mapping[str, str], *, looks: Looks, distributed: bool) -> Iterator[Finding]:
    """Look at everything."""
    gpus = list(looks.gpus())
    yield from _gpus(gpus)
    yield from _nccl(environ, looks, gpus=len(gpus))
    yield from _infiniband(environ, looks)
    yield from _software(looks.software(), distributed=distributed, gpus=len(gpus))


def _gpus(gpus: Sequence[str]) -> Iterator[Finding]:
    if not gpus:
        yield Finding(topic="GPUs", text="none")
    for line in gpus:
        yield Finding(topic="GPUs", text=line)


def _nccl(environ: Mapping[str, str], looks: Looks, *, gpus: int) -> Iterator[Finding]:
    for name in sorted(name for name in environ if name.startswith("NCCL_")):
        yield Finding(topic="NCCL", text=f"{name}={environ[name]}")
    stated = environ.get("NCCL_SOCKET_IFNAME", "")
    if not stated:
        return
    there = list(looks.interfaces())
    if chosen := chosen_interfaces(stated, there=there):
        yield Finding(topic="NCCL", text=f"uses {', '.join(chosen)}")
        return
    text = (
        f"NCCL_SOCKET_IFNAME={stated} names no interface of this pod, which has "
        f"{', '.join(there)}: NCCL will not start. Is the network attached "
        f"({contract.NETWORKS_ANNOTATION})? Without one set NCCL_SOCKET_IFNAME=eth0"
    )
    yield Finding(topic="NCCL", text=text, level="fault" if gpus else "note")


def chosen_interfaces(stated: str, *, there: Sequence[str]) -> list[str]:
    """Give the interfaces that NCCL_SOCKET_IFNAME stands for.

    As NCCL reads it: a list of prefixes; after `=` of whole names; after `^` of what is not to be
    used. Loopback is taken by NCCL only when it is named.
    """
    without, exact = stated.startswith("^"), stated.lstrip("^").startswith("=")
    names = [name for name in stated.lstrip("^=").split(",") if name]

    def named(interface: str) -> bool:
        return interface in names if exact else interface.startswith(tuple(names))

    if without:
        return [name for name in there if not named(name) and name != "lo"]
    return [name for name in there if named(name)]


def _infiniband(environ: Mapping[str, str], looks: Looks) -> Iterator[Finding]:
    ports = looks.infiniband()
    wanted = environ.get("NCCL_IB_DISABLE") == "0"
    if not ports:
        text = "none"
        if wanted:
            text = (
                "none, but NCCL_IB_DISABLE=0: NCCL falls back to sockets, which is slow. Does the "
                "container request the device (nvidia.com/hostdev, rdma/…)?"
            )
        yield Finding(topic="InfiniBand", text=text, level="note" if wanted else "ok")
    active = [port for port in ports if port.state == "ACTIVE"]
    for port in ports:
        yield Finding(
            topic="InfiniBand",
            text=f"{port.device} port {port.number}: {port.state}, {port.rate}",
            level="ok" if port.state == "ACTIVE" else "note",
        )
    if ports and wanted and not active:
        text = "no port is ACTIVE: is the cable in, and is the subnet manager running?"
        yield Finding(topic="InfiniBand", text=text, level="fault")


def _software(found: probes.Software, *, distributed: bool, gpus: int) -> Iterator[Finding]:
    if found.error and not found.tensorflow:
        yield Finding(topic="TensorFlow", text=found.error, level="fault")
        return
    if not found.tensorflow:
        text = "not installed in this Python; right for a program that is not in Python"
        yield Finding(topic="TensorFlow", text=text, level="note")
        return
    text, lost = f"{found.tensorflow}, sees {found.gpus} GPUs", gpus > found.gpus
    if lost:
        text += f" of {gpus}: a build without CUDA, or a driver that is too old for it?"
    yield Finding(topic="TensorFlow", text=text, level="fault" if lost else "ok")
    if distributed and unsynchronised(found.keras):
        text = (
            f"{found.keras} does not sum gradients over workers, so their weights drift apart "
            "without an error: use Keras 3.8 or newer, or tf_keras with TF_USE_LEGACY_KERAS=1"
        )
        yield Finding(topic="Keras", text=text, level="fault")
    else:
        shown = found.keras or found.error or "not installed"
        yield Finding(topic="Keras", text=shown, level="ok" if found.keras else "note")


def unsynchronised(version: str) -> bool:
    """Whether this Keras trains out of sync on more than one worker: 3.0 to 3.4."""
    return re.match(r"3\.[0-4](\D|$)", version) is not None
