"""Which pods meet the webhook, what happens to them without it, and what is refused."""

import pytest

import builders
from builders import make_replicated_job
from cluster import support

ONE_WORKER = {"tfadmit.dev/cluster": '{"worker":["solo-0.ring:12345"]}'}


@pytest.fixture(autouse=True)
def called(tfadmit):
    return tfadmit


def injected(pod):
    return "TF_CONFIG" in support.env(pod)


def test_a_pod_with_a_stated_cluster_is_mutated(cluster, namespace):
    pod = cluster.create(support.pod(namespace, name="solo", annotations=ONE_WORKER))
    assert injected(pod)
    assert support.status(pod)["source"] == "annotation"


def test_a_dry_run_of_a_pod_shows_the_mutation_and_writes_nothing(cluster, namespace):
    manifest = support.pod(namespace, name="solo", annotations=ONE_WORKER)
    assert injected(cluster.create(manifest, dry_run=True))
    assert cluster.list("Pod", namespace) == []


@pytest.mark.parametrize(
    "manifest",
    [
        {"labels": {}},
        {"labels": {"trainer.kubeflow.org/framework": "torch"}},
        {"annotations": {"tfadmit.dev/inject": "false"}},
    ],
    ids=["no label", "another framework", "opted out"],
)
def test_other_pods_are_untouched(cluster, namespace, manifest):
    pod = cluster.create(support.pod(namespace, name="other", **manifest))
    assert not injected(pod)
    assert "tfadmit.dev/status" not in pod["metadata"].get("annotations", {})


def test_pods_in_kube_system_are_untouched(cluster):
    pod = cluster.create(support.pod("kube-system", name="tfadmit-test"))
    cluster.delete("Pod", "tfadmit-test", "kube-system")
    assert not injected(pod)


def test_without_the_server_labelled_pods_are_refused_and_others_start(cluster, namespace, tfadmit):
    with tfadmit.stopped():
        labelled = support.pod(namespace, name="labelled", annotations=ONE_WORKER)
        message = support.refusal(cluster, labelled)
        assert 'failed calling webhook "pods.tfadmit.dev"' in message
        assert not injected(cluster.create(support.pod(namespace, name="other", labels={})))
        system = cluster.create(support.pod("kube-system", name="tfadmit-down"))
        cluster.delete("Pod", "tfadmit-down", "kube-system")
        assert not injected(system)
    assert injected(
        cluster.wait(
            lambda: cluster.create(labelled, dry_run=True), what="the server answers again"
        )
    )


def test_a_job_made_while_the_server_is_down_comes_up_afterwards(cluster, namespace, tfadmit):
    with tfadmit.stopped():
        cluster.apply(support.jobset(namespace, make_replicated_job(completions=2)))
        cluster.wait(
            lambda: support.failures(cluster, namespace, text="failed calling webhook"),
            what="the Job controller says that the webhook does not answer",
        )
        assert cluster.list("Pod", namespace) == []
    for pod in support.pods(cluster, namespace, count=2):
        assert injected(pod)


# --- refusals -----------------------------------------------------------------------------------


def test_a_pod_that_nothing_says_the_cluster_of_is_refused(cluster, namespace):
    message = support.refusal(cluster, support.pod(namespace, name="lost"))
    assert message.startswith('admission webhook "pods.tfadmit.dev" denied the request: ')
    assert "nothing says which tasks belong to its cluster" in message
    assert "tfadmit.dev/cluster" in message


def of_jobset(name, job="node"):
    return builders.LABEL | {
        "jobset.sigs.k8s.io/jobset-name": name,
        "jobset.sigs.k8s.io/replicatedjob-name": job,
        "jobset.sigs.k8s.io/job-index": "0",
    }


def test_a_pod_whose_jobset_is_missing_comes_up_once_it_exists(cluster, namespace):
    cluster.apply(support.job(namespace, name="early", completions=1, labels=of_jobset("late")))
    (message, *_) = cluster.wait(
        lambda: support.failures(cluster, namespace, text=f"JobSet {namespace}/late"),
        what="the Job controller says what is missing",
    )
    assert "does not exist" in message
    assert cluster.list("Pod", namespace) == []
    jobset = support.jobset(
        namespace, make_replicated_job(completions=2), name="late", suspend=True
    )
    cluster.apply(jobset)
    # suspended: the only pod that can come is that of the Job above, at the controller's next try
    (pod,) = support.pods(cluster, namespace, count=1)
    assert support.env(pod)["TF_NUM_WORKERS"] == "2"


def test_a_pod_whose_index_exceeds_the_cluster_comes_up_once_it_has_grown(cluster, namespace):
    jobset = support.jobset(
        namespace, make_replicated_job(completions=2), name="small", suspend=True
    )
    cluster.apply(jobset)
    cluster.apply(support.job(namespace, name="big", completions=3, labels=of_jobset("small")))
    cluster.wait(
        lambda: support.failures(cluster, namespace, text="completion index 2, but"),
        what="the Job controller says which index is too large",
    )
    cluster.delete("JobSet", "small", namespace)
    cluster.wait(
        lambda: cluster.list("JobSet", namespace), until=lambda seen: not seen, what="deletion"
    )
    grown = support.jobset(
        namespace, make_replicated_job(completions=3), name="small", suspend=True
    )
    cluster.apply(grown)
    pods = support.pods(cluster, namespace, count=3)
    assert support.env(pods[2])["TF_NUM_WORKERS"] == "3"


def test_a_jobset_that_is_made_again_under_its_name_gives_its_own_size(cluster, namespace):
    for completions in (2, 4):
        cluster.apply(support.jobset(namespace, make_replicated_job(completions=completions)))
        pods = support.pods(cluster, namespace, count=completions)
        assert {support.env(pod)["TF_NUM_WORKERS"] for pod in pods} == {str(completions)}
        cluster.delete("JobSet", "mnist", namespace)
        cluster.wait(
            lambda: cluster.list("Pod", namespace) + cluster.list("JobSet", namespace),
            until=lambda seen: not seen,
            what="the JobSet and its pods go",
        )


def test_a_jobset_that_waits_and_is_resumed_comes_up(cluster, namespace):
    """As with a queueing system: while suspended it is remembered, and must not be trusted."""
    job = make_replicated_job(replicas=2, completions=1)
    cluster.apply(support.jobset(namespace, job, suspend=True))
    cluster.apply(support.jobset(namespace, job, suspend=False))
    for pod in support.pods(cluster, namespace, count=2):
        assert support.env(pod)["TF_NUM_WORKERS"] == "2"
