"""Where pods go: nodes with a type of GPU, and near to or far from their peers. Pure.

`--spread` and `--pack` are preferences: a training that finds no such place starts all the same.
"""

from typing import Any, Final

from tfadmit_client.submit.options import Placement
from tfadmit_client.submit.words import GpuTypes
from tfadmit_trainer import contract

_HOST: Final = "kubernetes.io/hostname"
# The strongest: it is the only preference that a user states.
_WEIGHT: Final = 100
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_KINDS: Final[dict[Placement, str]] = {"spread": "podAntiAffinity", "pack": "podAffinity"}


def of(gpus: GpuTypes | None, *, placement: Placement | None, job: str) -> dict[str, Any]:
    """Give the affinity of a job's pods; empty when nothing is asked for."""
    found: dict[str, Any] = {}
    if gpus:
        term = {"key": gpus.label, "operator": "In", "values": list(gpus.values)}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
        found["nodeAffinity"] = {_REQUIRED: terms}
    if placement:
        peers = {
            "topologyKey": _HOST,
            "labelSelector": {"matchLabels": {contract.JOBSET_NAME_LABEL: job}},
        }
        found[_KINDS[placement]] = {_PREFERRED: [{"weight": _WEIGHT, "podAffinityTerm": peers}]}
    return found
