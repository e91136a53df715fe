"""`--patch`: fields of a pod's spec that no other option has, as Trainer lets a job set them. Pure.

The one door for the rest: node selectors, tolerations, volumes, service accounts. Which fields
there are is Trainer's decision (`PodSpecPatch`, 2.3).
"""

from collections.abc import Mapping
from typing import Any, Final

from tfadmit_client import fault
from tfadmit_client.expand import patches
from tfadmit_trainer import workspace
from tfadmit_webhook import raw

_OURS: Final = (workspace.VOLUME, workspace.CODE_VOLUME)
_ENV_ELSEWHERE: Final = "write --env NAME=VALUE"


def judge(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the patch, if Trainer takes such fields.

    Raises:
        ClientError: it does not, and what it takes.
    """
    unknown = [key for key in content if key not in patches.POD_SPEC]
    if unknown:
        raise fault.ClientError(
            f"--patch: Trainer lets a job set no {unknown[0]!r} of a pod's spec; it takes "
            f"{', '.join(patches.POD_SPEC)}; the rest is the runtime's"
        )
    for volume in raw.sequence(content.get("volumes")):
        name = raw.text(raw.mapping(volume).get("name"))
        if name in _OURS:
            raise fault.ClientError(
                f"--patch: a volume {name} is tfadmit's own: take another name; mounted at "
                f"{workspace.ROOT} it is the workspace in place of ours"
            )
    for kind in ("containers", "initContainers"):
        for item in raw.sequence(content.get(kind)):
            _container(raw.mapping(item), kind=kind)
    return content


def _container(container: raw.JsonObject, *, kind: str) -> None:
    name = raw.text(container.get("name"))
    if not name:
        raise fault.ClientError(f"--patch: one of {kind} has no name; write `name: node`")
    if name == "node" and container.get("env"):
        raise fault.ClientError(f"--patch: env of the container node: {_ENV_ELSEWHERE}")
    for key in container:
        if key not in patches.CONTAINER:
            raise fault.ClientError(
                f"--patch: Trainer lets a job set no {key!r} of a container; it takes "
                f"{', '.join(patches.CONTAINER)}"
            )
