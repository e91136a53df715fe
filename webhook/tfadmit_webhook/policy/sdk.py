"""What the Kubeflow SDK reads of the pods of a TrainJob (kubeflow 0.5, `backend.py`).

Only names; which of them must be there and how is judged by rules.
"""

from collections.abc import Mapping
from typing import Final

_INITIALIZERS = ("dataset-initializer", "model-initializer")

READ: Final[Mapping[str, tuple[str, ...]]] = {
    "node": ("node",),
    "launcher": ("node",),
    **dict.fromkeys(_INITIALIZERS, _INITIALIZERS),
}
"""By the name of a replicated job, the containers of which it reads the first that is there."""
