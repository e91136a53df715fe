"""The three commands of docs/runbooks.md, run as they stand there, with nobody left to answer."""

import re
import shlex

import pytest

from cluster import support
from harness.api import ApiError

ONE_WORKER = {"tfadmit.dev/cluster": '{"worker":["solo-0.ring:12345"]}'}
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
POLICY = "injected-pods.tfadmit.dev"
# What the API server writes; with it an object cannot be created again.
SERVERS_FIELDS = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")


def commands():
    """The first block of the section, one command a line."""
    text = (support.ROOT / "docs/runbooks.md").read_text()
    (section,) = re.findall(r"^## Break-glass\n(.*?)^## ", text, flags=re.DOTALL | re.MULTILINE)
    block = re.findall(r"^ *```sh\n(.*?)^ *```", section, flags=re.DOTALL | re.MULTILINE)[0]
    return [shlex.split(line) for line in block.splitlines()]


def bare(item):
    kept = {k: v for k, v in item["metadata"].items() if k not in SERVERS_FIELDS}
    return {**item, "metadata": kept}


@pytest.fixture
def put_back(cluster, tfadmit):
    """The configurations as they were, however the test ends."""
    before = [bare(cluster.get(kind, "tfadmit")) for kind in KINDS]
    yield
    cluster.apply(before)
    tfadmit.wait_until_called()


@pytest.fixture
def policy(cluster):
    """The policy against pods past the webhook, in force."""
    cluster.kubectl("apply", "-k", str(support.ROOT / "deploy/policies"))
    yield
    cluster.kubectl("delete", "-k", str(support.ROOT / "deploy/policies"), "--ignore-not-found")


def tried(cluster, manifest):
    try:
        return cluster.create(manifest, dry_run=True)
    except ApiError as error:
        return error.message


def test_there_are_three_commands():
    found = commands()
    assert len(found) == 3
    assert all(command[:2] == ["kubectl", "delete"] for command in found)


@pytest.mark.usefixtures("put_back", "policy")
def test_with_all_replicas_down_the_three_commands_let_pods_in(cluster, namespace, tfadmit):
    labelled = support.pod(namespace, name="labelled", annotations=ONE_WORKER)
    with tfadmit.stopped():
        message = support.refusal(cluster, labelled)
        assert 'failed calling webhook "pods.tfadmit.dev"' in message
        assert "connection refused" in message
        for program, *arguments in commands():
            assert program == "kubectl"
            cluster.kubectl(*arguments)
        # The API server takes a deletion up a moment later.
        let_in = cluster.wait(
            lambda: tried(cluster, labelled),
            until=lambda answer: isinstance(answer, dict),
            what="a labelled pod is let in",
        )
        assert "TF_CONFIG" not in support.env(let_in)
        runtime = support.shipped_runtime(name="let-in", namespace=namespace)
        assert support.applied(cluster, runtime, dry_run=True).returncode == 0


@pytest.mark.usefixtures("put_back")
def test_the_commands_do_no_harm_where_the_policy_is_not_installed(cluster, tfadmit):
    for _, *arguments in commands():
        cluster.kubectl(*arguments)
    for kind in KINDS:
        with pytest.raises(ApiError, match="not found"):
            cluster.get(kind, "tfadmit")


def test_once_put_back_labelled_pods_get_their_cluster_again(cluster, namespace, tfadmit):
    """`put_back` of the tests above waits for it; here it is seen at a pod."""
    pod = cluster.create(support.pod(namespace, name="solo", annotations=ONE_WORKER))
    assert "TF_CONFIG" in support.env(pod)
