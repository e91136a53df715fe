"""The kinds of objects that submitting touches, and their paths in the API. Pure."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A kind, as its paths name it."""

    group: str
    version: str
    plural: str

    def path(self, *, namespace: str, name: str = "") -> str:
        """Give the path of an object, or of all; without a namespace that of the cluster's."""
        start = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{namespace}" if namespace else ""
        end = f"/{name}" if name else ""
        return f"{start}{inside}/{self.plural}{end}"


TRAINJOB: Final = Resource(group="trainer.kubeflow.org", version="v1alpha1", plural="trainjobs")
RUNTIME: Final = Resource(
    group="trainer.kubeflow.org", version="v1alpha1", plural="trainingruntimes"
)
CLUSTER_RUNTIME: Final = Resource(
    group="trainer.kubeflow.org", version="v1alpha1", plural="clustertrainingruntimes"
)
CONFIG_MAP: Final = Resource(group="", version="v1", plural="configmaps")
NAMESPACE: Final = Resource(group="", version="v1", plural="namespaces")
CLAIM: Final = Resource(group="", version="v1", plural="persistentvolumeclaims")
SECRET: Final = Resource(group="", version="v1", plural="secrets")
# Kueue serves this version since 0.3, beside newer ones.
LOCAL_QUEUE: Final = Resource(group="kueue.x-k8s.io", version="v1beta1", plural="localqueues")
