"""The kinds of objects that make up a job."""

from tfadmit_client.cluster.listing import Kind

_TRAINER = "trainer.kubeflow.org"
TRAINJOB = Kind(name="TrainJob", group=_TRAINER, version="v1alpha1")
RUNTIMES = {
    "TrainingRuntime": Kind(name="TrainingRuntime", group=_TRAINER, version="v1alpha1"),
    "ClusterTrainingRuntime": Kind(
        name="ClusterTrainingRuntime", group=_TRAINER, version="v1alpha1", namespaced=False
    ),
}
JOBSET = Kind(name="JobSet", group="jobset.x-k8s.io", version="v1alpha2")
JOB = Kind(name="Job", group="batch", version="v1")
POD = Kind(name="Pod", group="", version="v1")
EVENT = Kind(name="Event", group="", version="v1")
NAMESPACE = Kind(name="Namespace", group="", version="v1", namespaced=False)
KUEUE = "kueue.x-k8s.io"


def workload(version: str) -> Kind:
    """Give Kueue's kind in the version that the cluster serves."""
    return Kind(name="Workload", group=KUEUE, version=version)
