"""Looks at this machine: its port, interfaces, GPUs, InfiniBand, and the TensorFlow it has.

Only facts, no judgement. Everything here touches files, sockets or child processes, and each look
is bounded in time. Paths can be replaced by a test.
"""

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

# nvidia-smi takes seconds where persistence mode is off, and hangs where a driver is broken.
_SMI_SECONDS: Final = 20.0
# TensorFlow takes 3 to 8 s on an idle machine, longer from a cold image.
_TENSORFLOW_SECONDS: Final = 180.0
# In a child process: an import cannot be bounded, and a broken installation may crash.
_TENSORFLOW: Final = """
import importlib.util, json
if importlib.util.find_spec("tensorflow") is None:
    print(json.dumps({}))
else:
    import tensorflow as tf
    found = {"tensorflow": tf.__version__, "gpus": len(tf.config.list_physical_devices("GPU"))}
    try:
        import keras
        found["keras"] = keras.__version__
    except Exception as error:
        found["keras_error"] = str(error)
    print(json.dumps(found))
"""


@dataclass(frozen=True, kw_only=True)
class Software:
    """TensorFlow and Keras of this Python; nothing where there is none."""

    tensorflow: str = ""
    keras: str = ""
    gpus: int = 0
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Port:
    """One port of an InfiniBand device."""

    device: str
    number: str
    state: str
    rate: str


def port_error(port: int) -> str | None:
    """Say why a server could not listen on a port, as TensorFlow does: on all addresses."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
            probe.listen(1)
        except OSError as error:
            return error.strerror
    return None


def interfaces() -> list[str]:
    """Give the names of the network interfaces."""
    return [name for _, name in socket.if_nameindex()]


def gpus(*, root: Path = Path("/"), command: str = "nvidia-smi") -> list[str]:
    """Give one line for each GPU: from nvidia-smi, else from the driver, else from devices."""
    if listed := _nvidia_smi(command):
        return listed
    if driver := sorted((root / "proc/driver/nvidia/gpus").glob("*")):
        return [f"{_model(path / 'information')} at {path.name}" for path in driver]
    devices = sorted((root / "dev").glob("nvidia[0-9]*"))
    return [f"/dev/{path.name}" for path in devices]


def _nvidia_smi(command: str) -> list[str]:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [command, "-L"], capture_output=True, text=True, timeout=_SMI_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [line for line in done.stdout.splitlines() if line.startswith("GPU ")]


def _model(path: Path) -> str:
    for line in _text(path).splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "Model":
            return value.strip()
    return "GPU"


def infiniband(*, root: Path = Path("/")) -> list[Port]:
    """Give each port of each InfiniBand (or RoCE) device."""
    ports = sorted((root / "sys/class/infiniband").glob("*/ports/*"))
    return [
        Port(
            device=path.parts[-3],
            number=path.name,
            # The kernel writes the number and the name of a state: `4: ACTIVE`.
            state=_text(path / "state").rpartition(":")[2].strip() or "unknown",
            rate=_text(path / "rate").strip(),
        )
        for path in ports
    ]


def software(*, python: str = sys.executable, timeout: float = _TENSORFLOW_SECONDS) -> Software:
    """Import TensorFlow in a child process and give its versions."""
    env = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    env.pop("TF_CONFIG", None)
    try:
        done = subprocess.run(  # noqa: S603 - this Python
            [python, "-c", _TENSORFLOW],
            capture_output=True, text=True, timeout=timeout, check=False, env=env,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Software(error=f"import tensorflow took more than {timeout:g} s")
    except OSError as error:
        return Software(error=f"{python}: {error.strerror}")
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return Software(error=f"import tensorflow failed with code {done.returncode}: {last}")
    found = json.loads(lines[-1])
    return Software(
        tensorflow=found.get("tensorflow", ""),
        keras=found.get("keras", ""),
        gpus=found.get("gpus", 0),
        error=found.get("keras_error", ""),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
