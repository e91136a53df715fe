"""What needs no cluster about the cluster object: loading manifests and waiting."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.api import Api, ApiError, Resource
from harness.cluster import Cluster, load

NAMED = {"kind": "ConfigMap", "metadata": {"name": "a"}}


@pytest.fixture
def offline(tmp_path: Path):
    api = Api(url="https://127.0.0.1:1")
    yield Cluster(api=api, kubectl=tmp_path, kubeconfig=tmp_path, directory=tmp_path)
    api.close()


def test_a_manifest_is_an_object_a_list_a_file_or_a_folder(tmp_path: Path):
    (tmp_path / "b.yaml").write_text("---\nkind: ConfigMap\nmetadata: {name: a}\n---\n")
    (tmp_path / "kustomization.yaml").write_text("resources: [b.yaml]\n")
    for manifest in (NAMED, [NAMED], str(tmp_path / "b.yaml"), tmp_path):
        assert load(manifest) == [NAMED]


def test_waiting_returns_what_was_seen(offline: Cluster):
    numbers = iter(range(10))
    seen = offline.wait(lambda: next(numbers), until=lambda n: n == 3, what="three")
    assert seen == 3


def test_a_timeout_says_what_was_waited_for_and_seen_last(offline: Cluster):
    with pytest.raises(AssertionError, match=r'three pods: not within 0 s.*\[\s+"one"\s+\]'):
        offline.wait(lambda: ["one"], until=lambda p: len(p) == 3, timeout=0, what="three pods")


def test_an_absent_object_is_waited_for_and_another_error_is_not(offline: Cluster):
    answers = iter([ApiError(status=404, reason="NotFound", message="no pod"), {"kind": "Pod"}])

    def look():
        answer = next(answers)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    assert offline.wait(look, what="a pod") == {"kind": "Pod"}

    def forbidden():
        raise ApiError(status=403, reason="Forbidden", message="not yours")

    with pytest.raises(ApiError, match="403 Forbidden: not yours"):
        offline.wait(forbidden, what="a pod")


@pytest.mark.parametrize(
    ("group", "namespaced", "namespace", "name", "path"),
    [
        ("", True, "team", "a", "/api/v1/namespaces/team/things/a"),
        ("x.io", True, None, None, "/apis/x.io/v1/things"),
        ("x.io", False, "ignored", "a", "/apis/x.io/v1/things/a"),
    ],
    ids=["core", "all namespaces", "cluster-scoped"],
)
def test_the_path_of_an_object(group, namespaced, namespace, name, path):
    resource = Resource(
        kind="Thing",
        group=group,
        version="v1",
        plural="things",
        names=frozenset({"thing"}),
        namespaced=namespaced,
    )
    assert resource.path(namespace=namespace, name=name) == path
