"""Job in, pods out, as the API server and the Job controller make them."""

import pytest

from builders import make_container, make_job
from tfadmit_client.expand import job


def expand(content):
    return list(job.pods(job.defaulted(content, namespace="team")))


def texts(content):
    return [item.text for item in job.remarks(job.defaulted(content, namespace="team"))]


def test_an_indexed_job_s_pod_has_its_index_host_name_and_owner():
    first, second, _ = expand(make_job())
    assert first == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "plain-0-",
            "namespace": "team",
            "labels": {
                "trainer.kubeflow.org/framework": "tensorflow",
                "job-name": "plain",
                "batch.kubernetes.io/job-name": "plain",
                "controller-uid": "job-uid-1",
                "batch.kubernetes.io/controller-uid": "job-uid-1",
                "batch.kubernetes.io/job-completion-index": "0",
            },
            "annotations": {"batch.kubernetes.io/job-completion-index": "0"},
            "finalizers": ["batch.kubernetes.io/job-tracking"],
            "ownerReferences": [
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "name": "plain",
                    "uid": "job-uid-1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "subdomain": "plain-svc",
            "hostname": "plain-0",
            "containers": [
                {
                    "name": "tensorflow",
                    "image": "python:3.13-slim",
                    "env": [
                        {
                            "name": "JOB_COMPLETION_INDEX",
                            "valueFrom": {
                                "fieldRef": {
                                    "apiVersion": "v1",
                                    "fieldPath": "metadata.labels"
                                    "['batch.kubernetes.io/job-completion-index']",
                                }
                            },
                        }
                    ],
                }
            ],
        },
    }
    assert second["spec"]["hostname"] == "plain-1"


def test_a_job_that_is_not_indexed_gives_its_pods_no_index_and_no_host_name():
    content = make_job(completions=2)
    del content["spec"]["completionMode"]
    first, second = expand(content)
    assert first["metadata"]["generateName"] == "plain-"
    assert "hostname" not in first["spec"]
    assert "annotations" not in first["metadata"]
    assert first["spec"]["containers"] == [make_container("tensorflow")]
    assert first == second


def test_the_user_s_own_completion_index_variable_stays_alone():
    env = [{"name": "JOB_COMPLETION_INDEX", "value": "7"}]
    content = make_job(containers=[make_container(env=env)], initContainers=[make_container("a")])
    first, *_ = expand(content)
    assert first["spec"]["containers"][0]["env"] == env
    assert first["spec"]["initContainers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"


def test_a_manual_selector_adds_no_labels():
    content = make_job()
    content["spec"]["manualSelector"] = True
    first, *_ = expand(content)
    assert "job-name" not in first["metadata"]["labels"]


def test_labels_of_the_template_become_the_job_s_where_it_has_none():
    found = job.defaulted(make_job(), namespace="team")
    assert found["metadata"]["labels"] == {"trainer.kubeflow.org/framework": "tensorflow"}


def test_a_backoff_limit_per_index_counts_from_zero():
    content = make_job()
    content["spec"]["backoffLimitPerIndex"] = 1
    first, *_ = expand(content)
    assert first["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "0"


def test_a_long_name_is_cut_before_the_index():
    first, *_ = expand(make_job(name="n" * 60))
    assert first["metadata"]["generateName"] == "n" * 55 + "-0-"
    assert first["spec"]["hostname"] == "n" * 60 + "-0"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, 1),
        ({"parallelism": 3}, 3),
        ({"completions": 4}, 4),
        ({"parallelism": 2, "completions": 5}, 5),
        ({"parallelism": 0, "completions": 0}, 0),
    ],
)
def test_the_number_of_pods_follows_the_job_s_rules(spec, expected):
    content = make_job()
    for key in ("parallelism", "completions"):
        del content["spec"][key]
    content["spec"] |= spec
    assert len(expand(content)) == expected


def test_an_indexed_job_without_completions_is_refused():
    content = make_job()
    del content["spec"]["completions"]
    assert texts(content) == [
        (
            "the API server refuses Job plain: completionMode Indexed needs completions; "
            "write `completions: 3` beside `parallelism: 3`"
        )
    ]


def test_less_parallelism_than_tasks_is_said():
    content = make_job()
    content["spec"]["parallelism"] = 1
    assert texts(content) == [
        (
            "Job plain runs 1 of its 3 tasks at a time, and TensorFlow tasks wait for each other: "
            "write `parallelism: 3`"
        )
    ]


def test_ten_thousand_pods_share_what_they_have_in_common():
    pods = expand(make_job(completions=10_000))
    assert len(pods) == 10_000
    assert pods[0]["spec"]["containers"] is pods[-1]["spec"]["containers"]


def test_quantities_become_text_as_the_api_server_keeps_them():
    resources = {"limits": {"nvidia.com/gpu": 8, "cpu": 0.5, "memory": "1Gi"}, "claims": []}
    first, *_ = expand(make_job(containers=[make_container(resources=resources)]))
    assert first["spec"]["containers"][0]["resources"] == {
        "limits": {"nvidia.com/gpu": "8", "cpu": "0.5", "memory": "1Gi"},
        "claims": [],
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, 'env EPOCHS of container node is a number; quote it: "3"'),
        (True, 'env EPOCHS of container node is a boolean; quote it: "true"'),
        ([], "env EPOCHS of container node is a map or a list; it must be text"),
    ],
)
def test_a_value_that_is_no_text_is_refused(value, text):
    env = [{"name": "EPOCHS", "value": value}, {"name": "OTHER", "value": "x"}, {"name": "NONE"}]
    content = make_job(containers=[make_container(env=env)])
    assert texts(content) == [f"the API server refuses it: {text}"]


def test_a_label_that_is_no_text_is_refused():
    content = make_job()
    content["spec"]["template"]["metadata"]["annotations"] = {"tfadmit.dev/port": 2222}
    assert texts(content) == [
        'the API server refuses it: annotation tfadmit.dev/port is a number; quote it: "2222"'
    ]
