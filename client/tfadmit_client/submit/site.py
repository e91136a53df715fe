"""What a runtime says to `tfadmit run`: the defaults of the site, as annotations. Pure.

A user's laptop needs only a kubeconfig: image, quota, base of the results and the Secret for them
stand on the runtime, where the platform team keeps them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tfadmit_client import fault
from tfadmit_client.submit import words
from tfadmit_trainer import contract
from tfadmit_webhook import raw

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class Site:
    """Defaults; empty where the site has none."""

    image: str = ""
    cpu: str = ""
    memory: str = ""
    gpu: tuple[str, int] | None = None
    output: str = ""
    store_secret: str = ""
    gpu_label: str = words.NVIDIA_TYPE


def read(runtime: raw.JsonObject, *, label: str) -> Site:
    """Read the annotations of a runtime.

    Raises:
        ClientError: one has a value that cannot be used, which the platform team must mend.
    """
    stated = raw.strings(raw.at(runtime, ("metadata", "annotations")))

    def take(name: str, read_one: Callable[..., Value], otherwise: Value) -> Value:
        text = stated.get(name)
        if not text:
            return otherwise
        try:
            return read_one(text, option=f"annotation {name} of {label}:")
        except fault.ClientError as error:
            raise fault.ClientError(f"{error}; your platform team can mend the runtime") from error

    return Site(
        image=take(contract.DEFAULT_IMAGE_ANNOTATION, words.image, ""),
        cpu=take(contract.DEFAULT_CPU_ANNOTATION, words.cpu, ""),
        memory=take(contract.DEFAULT_MEMORY_ANNOTATION, words.memory, ""),
        gpu=take(contract.DEFAULT_GPU_ANNOTATION, words.gpu, None),
        output=take(contract.DEFAULT_OUTPUT_ANNOTATION, words.output, ""),
        store_secret=take(contract.DEFAULT_STORE_SECRET_ANNOTATION, words.object_name, ""),
        gpu_label=stated.get(contract.GPU_TYPE_LABEL_ANNOTATION) or words.NVIDIA_TYPE,
    )
