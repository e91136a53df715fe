"""Other levels by the labels of the namespace, with the shipped rights on a real API server."""

import pytest

from cluster import support
from harness import install

OVERRIDES = """
overrides:
  - namespaceSelector:
      matchExpressions:
        - {key: tier, operator: In, values: [sandbox]}
    policies: {TFA001: warn}
"""


def labelled(cluster, namespace, **labels):
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
    )


def applied(cluster, namespace, *, name="hidden"):
    runtime = support.shipped_runtime(name=name, namespace=namespace)
    return support.applied(cluster, support.network(runtime, {}), dry_run=True)


@pytest.fixture(scope="module")
def with_overrides(cluster):
    with install.installed(cluster=cluster, settings=OVERRIDES) as running:
        yield running


def test_a_runtime_is_refused_or_warned_of_by_the_labels_of_its_namespace(
    cluster, namespace, with_overrides
):
    labelled(cluster, namespace, tier="sandbox")
    other = cluster.create_namespace()
    refused, warned = applied(cluster, other), applied(cluster, namespace)
    assert [text.split()[0] for text in support.denied(refused)] == ["TFA001"]
    assert [text.split()[0] for text in support.warnings(warned)] == ["TFA001"]
    assert (refused.returncode, warned.returncode) == (1, 0)
    cluster.delete("Namespace", other)


def test_without_the_right_the_strictest_level_is_taken_and_told(
    cluster, namespace, with_overrides
):
    labelled(cluster, namespace, tier="sandbox")
    role = cluster.get("ClusterRole", "tfadmit-webhook")
    shown = {
        "apiVersion": role["apiVersion"],
        "kind": "ClusterRole",
        "metadata": {key: role["metadata"][key] for key in ("name", "labels")},
    }
    kept = [rule for rule in role["rules"] if rule["resources"] != ["namespaces"]]
    cluster.apply({**shown, "rules": kept})
    try:
        said = cluster.wait(
            lambda: applied(cluster, namespace).stderr,
            until=lambda text: "strictest" in text,
            what="a look-up that is refused",
        )
    finally:
        cluster.apply({**shown, "rules": role["rules"]})
    assert "may not get namespaces (deploy/base/rbac.yaml grants it)" in said
    assert "TFA001" in said
