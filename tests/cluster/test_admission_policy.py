"""The optional policy of deploy/policies: pods that got past the webhook are refused."""

import contextlib

import pytest

import builders
from cluster import support
from harness.api import MERGE, ApiError

SENTENCE = "the webhook tfadmit did not see it, so it would train alone"
ONE_WORKER = {"tfadmit.dev/cluster": '{"worker":["solo-0.ring:12345"]}'}
OPTED_OUT = {"tfadmit.dev/inject": "false"}
HOOKS = "MutatingWebhookConfiguration"


@pytest.fixture(scope="module")
def policy(cluster, tfadmit):
    """The policy in force, and at the end gone for the API server too."""
    name = cluster.create_namespace()
    with contextlib.ExitStack() as undo:
        undo.callback(cluster.delete, "Namespace", name)
        undo.callback(_wait_until_all_is_as_before, cluster, tfadmit, name)
        for item in support.load("deploy/policies"):
            cluster.apply(item)
            undo.callback(cluster.delete, item["kind"], item["metadata"]["name"])
        with _unguarded(cluster, tfadmit):
            _wait(cluster, name, answer=SENTENCE, what="the API server enforces the policy")
        _wait(cluster, name, answer=None, what="the API server calls the webhook again")
        yield


@pytest.fixture
def bypassed(cluster, tfadmit, policy, namespace):
    """A while in which the webhook does not answer and nobody minds but the policy."""
    with _unguarded(cluster, tfadmit):
        _wait(cluster, namespace, answer=SENTENCE, what="the API server goes on without webhook")
        yield
    _wait(cluster, namespace, answer=None, what="the API server calls the webhook again")


@pytest.mark.usefixtures("policy")
def test_with_the_webhook_a_labelled_pod_passes(cluster, namespace):
    made = cluster.create(support.pod(namespace, name="solo", annotations=ONE_WORKER))
    assert support.env(made)["TF_TASK_INDEX"] == "0"


@pytest.mark.usefixtures("bypassed")
def test_a_labelled_pod_past_the_webhook_is_refused_with_what_to_do(cluster, namespace):
    labelled = support.pod(namespace, name="solo", annotations=ONE_WORKER)
    result = support.applied(cluster, labelled)
    assert result.returncode == 1
    assert "ValidatingAdmissionPolicy 'injected-pods.tfadmit.dev'" in result.stderr
    assert (
        "denied request: pod solo is labelled trainer.kubeflow.org/framework=tensorflow and has no "
        f"TF_TASK_INDEX: {SENTENCE}. See `kubectl get mutatingwebhookconfiguration tfadmit` and "
        "`kubectl -n tfadmit-system get pods`; once the webhook answers, Jobs create the pod again."
        ' For a pod that is no task: annotation tfadmit.dev/inject: "false"'
    ) in result.stderr
    assert cluster.list("Pod", namespace) == []


@pytest.mark.usefixtures("bypassed")
@pytest.mark.parametrize(
    "manifest", [{"labels": {}}, {"annotations": OPTED_OUT}], ids=["no label", "opted out"]
)
def test_other_pods_pass_without_the_webhook(cluster, namespace, manifest):
    assert cluster.create(support.pod(namespace, name="other", **manifest))


@pytest.mark.usefixtures("bypassed")
@pytest.mark.parametrize("container", ["containers", "initContainers"])
def test_a_pod_that_carries_its_index_passes(cluster, namespace, container):
    manifest = support.pod(namespace, name="own")
    (content,) = manifest["spec"]["containers"]
    task = content | {"name": "task", "env": [{"name": "TF_TASK_INDEX", "value": "0"}]}
    manifest["spec"].setdefault(container, []).append(task)
    assert cluster.create(manifest, dry_run=True)


@pytest.mark.usefixtures("bypassed")
def test_pods_in_excluded_namespaces_pass(cluster):
    manifest = support.pod("kube-system", name="tfadmit-policy")
    assert cluster.create(manifest, dry_run=True)


@pytest.mark.usefixtures("bypassed")
def test_a_job_says_in_its_events_why_it_has_no_pods(cluster, namespace):
    job = support.job(namespace, name="lost", completions=1, labels=builders.LABEL)
    cluster.apply(job)
    (message, *_) = cluster.wait(
        lambda: support.failures(cluster, namespace, text=SENTENCE),
        what="the Job controller says what the policy said",
    )
    assert "pod lost-0-" in message


def _answer(cluster, namespace):
    """The refusal of a labelled pod; None when it is accepted."""
    try:
        cluster.create(support.pod(namespace, name="probe", annotations=ONE_WORKER), dry_run=True)
    except ApiError as error:
        return error.message
    return None


def _wait(cluster, namespace, *, answer, what):
    """Wait until a labelled pod gets this refusal, or none."""
    cluster.wait(
        lambda: _answer(cluster, namespace),
        until=lambda seen: seen is None if answer is None else seen and answer in seen,
        what=what,
    )


def _wait_until_all_is_as_before(cluster, tfadmit, namespace):
    with _unguarded(cluster, tfadmit):
        _wait(cluster, namespace, answer=None, what="the API server forgets the policy")
    with tfadmit.stopped():
        refusal = 'failed calling webhook "pods.tfadmit.dev"'
        _wait(cluster, namespace, answer=refusal, what="the API server minds a silent webhook")
    _wait(cluster, namespace, answer=None, what="the API server calls the webhook again")


@contextlib.contextmanager
def _unguarded(cluster, tfadmit):
    """A while with failurePolicy Ignore and without a server; then both as they were."""
    hooks = cluster.get(HOOKS, "tfadmit")["webhooks"]
    path = cluster.api.resource(HOOKS).path(name="tfadmit")

    def write(webhooks):
        cluster.api.request("PATCH", path, body={"webhooks": webhooks}, content_type=MERGE)

    write([{**hook, "failurePolicy": "Ignore"} for hook in hooks])
    try:
        with tfadmit.stopped():
            yield
    finally:
        write(hooks)
