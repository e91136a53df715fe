"""Changes of the server while jobs are being created: none of them is refused for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from harness.api import ApiError
from harness.cluster import Cluster, load
from harness.node import deploy
from node import support

pytestmark = pytest.mark.timeout(900)

_LABELS = {"app.kubernetes.io/component": "server"}
# Two a second, each with two pods: about what one team does with a script.
_PAUSE_SECONDS = 0.5


class Jobs:
    """TrainJobs that are created one after the other, and what was said to them."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._end = threading.Event()
        self.created: list[str] = []
        self.refused: list[str] = []

    def run(self) -> None:
        while not self._end.wait(_PAUSE_SECONDS):
            name = f"job-{len(self.created) + len(self.refused)}"
            try:
                self._cluster.create(self._trainjob(name))
            except ApiError as error:
                self.refused.append(f"{name}: {error}")
            else:
                self.created.append(name)

    def stop(self) -> None:
        self._end.set()

    def _trainjob(self, name: str) -> support.Json:
        return {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": name, "namespace": self._namespace},
            "spec": {
                "runtimeRef": {"name": "nowhere", "kind": "TrainingRuntime"},
                "trainer": {"numNodes": 2},
            },
        }


@pytest.fixture
def while_jobs_are_created(
    cluster: Cluster, tfadmit: None, namespace: str
) -> Iterator[Callable[[], object]]:
    """A block of a test during which jobs come; afterwards it is judged that none failed."""
    (runtime,) = load(deploy.RUNTIME)
    runtime["kind"] = "TrainingRuntime"
    runtime["metadata"] |= {"name": "nowhere", "namespace": namespace}
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    # Admission is what is tested: no node takes these pods.
    job["template"]["spec"]["template"]["spec"]["nodeSelector"] = {"nowhere": "true"}
    cluster.apply(runtime)

    @contextmanager
    def block() -> Iterator[None]:
        jobs = Jobs(cluster, namespace)
        thread = threading.Thread(target=jobs.run)
        thread.start()
        try:
            yield
        finally:
            jobs.stop()
            thread.join(30)
        _judge(cluster, namespace, jobs)

    yield block
    deploy.wait_until_available(cluster)


def _judge(cluster: Cluster, namespace: str, jobs: Jobs) -> None:
    assert jobs.refused == []
    assert len(jobs.created) >= 10
    pods = cluster.wait(
        lambda: cluster.list("Pod", namespace),
        until=lambda seen: len(seen) >= 2 * len(jobs.created),
        timeout=60,
        what=f"two pods of each of {len(jobs.created)} jobs",
    )
    events = cluster.list("Event", namespace)
    failed = [e["message"] for e in events if e.get("reason") == "FailedCreate"]
    assert failed == []
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        assert "TF_TASK_INDEX" in {variable["name"] for variable in container["env"]}
    print(f"{len(jobs.created)} jobs, {len(pods)} pods, 0 failed")


def test_a_rollout_restart(cluster: Cluster, while_jobs_are_created):
    before = _names(cluster)
    with while_jobs_are_created():
        _kubectl(cluster, "rollout", "restart", f"deployment/{deploy.DEPLOYMENT}")
        deploy.wait_until_available(cluster, seconds=180)
        # The old pods serve on while they are taken out of the Service.
        cluster.wait(
            lambda: _names(cluster),
            until=lambda names: not names & before,
            timeout=90,
            what="the old pods are gone",
        )
    assert len(_names(cluster)) == 3


def test_one_replica_and_back_to_three(cluster: Cluster, while_jobs_are_created):
    with while_jobs_are_created():
        _scale(cluster, 1)
        cluster.wait(
            lambda: _names(cluster),
            until=lambda names: len(names) == 1,
            timeout=90,
            what="one pod is left",
        )
        time.sleep(3)
        _scale(cluster, 3)
        deploy.wait_until_available(cluster)


def test_a_deleted_pod(cluster: Cluster, while_jobs_are_created):
    name = min(_names(cluster))
    with while_jobs_are_created():
        cluster.delete("Pod", name, deploy.NAMESPACE)
        cluster.wait(
            lambda: _names(cluster),
            until=lambda names: name not in names,
            timeout=90,
            what=f"{name} is gone",
        )
        deploy.wait_until_available(cluster)


def test_a_deleted_secret_of_the_server_s_certificate(cluster: Cluster, while_jobs_are_created):
    before = _uid(cluster)
    with while_jobs_are_created():
        cluster.delete("Secret", deploy.LEAF_SECRET, deploy.NAMESPACE)
        cluster.wait(
            lambda: _uid(cluster),
            until=lambda uid: uid != before,
            timeout=60,
            what="a new Secret",
        )
        # Every replica takes it up at once; jobs come for a while after that.
        time.sleep(10)
    deploy.tfadmit(cluster, "certs", "status")


def test_a_rotation_of_the_ca(cluster: Cluster, while_jobs_are_created):
    kind = "MutatingWebhookConfiguration"
    before = cluster.get(kind, "tfadmit")["webhooks"][0]["clientConfig"]["caBundle"]
    with while_jobs_are_created():
        deploy.tfadmit(cluster, "certs", "rotate", "--ca")
        time.sleep(5)
    after = cluster.get(kind, "tfadmit")["webhooks"][0]["clientConfig"]["caBundle"]
    # The old one is still trusted, beside the new one.
    assert after != before
    deploy.tfadmit(cluster, "certs", "status")


def test_a_node_that_is_drained(cluster: Cluster, nodes, while_jobs_are_created):
    """One at a time, as the disruption budget asks: a drain as in an upgrade of the cluster."""
    if len(nodes.names) < 2:
        pytest.skip("the only node cannot be drained")
    node = nodes.names[1]
    with while_jobs_are_created():
        try:
            selected = f"--pod-selector={next(iter(_LABELS))}=server"
            options = ("--delete-emptydir-data", "--timeout=150s", selected)
            cluster.kubectl("drain", node, *options, timeout=160)
        finally:
            cluster.kubectl("uncordon", node)
        deploy.wait_until_available(cluster)
    assert len(_names(cluster)) == 3


def _names(cluster: Cluster) -> set[str]:
    pods = cluster.list("Pod", deploy.NAMESPACE, labels=_LABELS)
    return {pod["metadata"]["name"] for pod in pods}


def _uid(cluster: Cluster) -> str:
    uid: str = cluster.get("Secret", deploy.LEAF_SECRET, deploy.NAMESPACE)["metadata"]["uid"]
    return uid


def _scale(cluster: Cluster, replicas: int) -> None:
    _kubectl(cluster, "scale", f"deployment/{deploy.DEPLOYMENT}", f"--replicas={replicas}")


def _kubectl(cluster: Cluster, *arguments: str) -> None:
    cluster.kubectl(*arguments, "--namespace", deploy.NAMESPACE)
