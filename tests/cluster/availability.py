"""What the tests of availability share: a webhook of their own, and pods at a steady rate.

Their webhook has a name of its own and reviews one namespace, so that what other tests install is
neither needed nor disturbed.
"""

import base64
import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import builders
from cluster import support
from harness import install, load, webhooks
from harness.cluster import Cluster

Json = dict[str, Any]
RATE = 110.0


def configurations(cluster: Cluster, *, name: str, namespace: str, url: str) -> list[Json]:
    """The shipped hooks under another name, for one namespace, without a caBundle."""
    rendered = install.render(cluster, install.BASE)
    made = [copy.deepcopy(item) for item in rendered if item["kind"] in webhooks.KINDS]
    for item in made:
        item["metadata"]["name"] = name
        for hook in item["webhooks"]:
            path = hook["clientConfig"].pop("service")["path"]
            hook["clientConfig"]["url"] = f"{url}{path}"
            hook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
            # Runtimes of the cluster have no namespace, so a selector of these keeps out none.
            hook["matchConditions"] = [
                {"name": "of-this-test", "expression": f"request.namespace == {namespace!r}"}
            ]
    return made


@contextlib.contextmanager
def applied(cluster: Cluster, manifests: list[Json], *, ca: bytes | None = None) -> Iterator[None]:
    """The configurations while the context lasts, with this caBundle if one is given."""
    for manifest in manifests:
        if ca:
            for hook in manifest["webhooks"]:
                hook["clientConfig"]["caBundle"] = base64.b64encode(ca).decode()
        cluster.apply(manifest)
    try:
        yield
    finally:
        for manifest in manifests:
            cluster.delete(manifest["kind"], manifest["metadata"]["name"])


def pod_maker(cluster: Cluster, namespace: str, *, padding: int = 0) -> Callable[[int], Json]:
    """What creates one pod of a JobSet of the namespace, and fails if it was not mutated.

    `padding` is bytes of an annotation; above 64 KiB a review is worked on in a thread.
    """
    annotations = {"padding": "x" * padding}
    (made,) = cluster.apply(support.jobset(namespace, builders.make_replicated_job(), name="load"))
    uid = made["metadata"]["uid"]
    pods = cluster.api.resource("Pod").path(namespace=namespace)

    def create(_number: int) -> Json:
        manifest = builders.make_pod(jobset="load", uid=uid, annotations=annotations)
        pod = cluster.api.request("POST", pods, body=manifest)
        assert "TF_CONFIG" in support.env(pod), "admitted without its cluster"
        return pod

    return create


def wait_until_called(cluster: Cluster, create: Callable[[int], Json]) -> None:
    def tried() -> str:
        try:
            create(0)
        except Exception as error:  # noqa: BLE001 - shown when the time is over
            return str(error)
        return ""

    cluster.wait(tried, until=lambda error: not error, what="the webhook is called", timeout=60)


def wait_until_made(cluster: Cluster, report: load.Report, least: int) -> None:
    """Go on until so many pods are made, or one failed: a slow machine takes longer for them."""
    cluster.wait(
        lambda: len(report.outcomes),
        until=lambda made: made >= least or report.failures,
        timeout=300,
        what=f"{least} pods are made",
    )


def show(capsys: Any, what: str, report: load.Report) -> None:
    with capsys.disabled():
        print(f"\n{what}: {report.line()}")


def assert_none_failed(report: load.Report, *, least: int) -> None:
    assert not report.failures, report.failures.most_common(5)
    assert len(report.outcomes) >= least
