"""JobSet in, Jobs out: names, marks, subdomain, volumes."""

import pytest

from builders import make_container, make_jobset, make_replicated_job
from tfadmit_client.expand import jobset

MARK = "jobset.sigs.k8s.io/"


def expand(content):
    return list(jobset.jobs(jobset.defaulted(content, namespace="team")))


def marks(job, name):
    return job["metadata"]["labels"][MARK + name]


def test_one_job_for_each_replica_named_by_its_index():
    found = expand(make_jobset(make_replicated_job(replicas=3), make_replicated_job("ps")))
    assert [job["metadata"]["name"] for job in found] == [
        "mnist-node-0",
        "mnist-node-1",
        "mnist-node-2",
        "mnist-ps-0",
    ]


def test_indexes_and_totals_count_over_the_whole_jobset_and_over_groups():
    ps = {**make_replicated_job("ps", replicas=2), "groupName": "servers"}
    found = expand(make_jobset(make_replicated_job(replicas=3), ps))
    last = found[-1]
    assert {
        name: marks(last, name)
        for name in (
            "job-index",
            "job-global-index",
            "global-replicas",
            "replicatedjob-replicas",
            "group-name",
            "group-replicas",
            "job-group-index",
        )
    } == {
        "job-index": "1",
        "job-global-index": "4",
        "global-replicas": "5",
        "replicatedjob-replicas": "2",
        "group-name": "servers",
        "group-replicas": "2",
        "job-group-index": "1",
    }
    assert marks(found[0], "group-replicas") == "3"


def test_marks_stand_on_the_job_and_its_template_as_labels_and_annotations():
    (job,) = expand(make_jobset())
    template = job["spec"]["template"]["metadata"]
    for place in (job["metadata"], template):
        for kind in ("labels", "annotations"):
            assert place[kind][MARK + "jobset-uid"] == "jobset-uid-1"
    assert template["labels"]["trainer.kubeflow.org/framework"] == "tensorflow"
    assert "trainer.kubeflow.org/framework" not in job["metadata"]["labels"]


def test_the_job_key_is_the_hash_of_namespace_and_name():
    """printf team/mnist-node-0 | sha1sum"""
    (job,) = expand(make_jobset())
    assert marks(job, "job-key") == "9afe0f99e086cc1c41da85947d0a58f2dcd67242"


def test_the_jobset_s_own_labels_do_not_reach_its_jobs():
    content = make_jobset()
    content["metadata"] |= {"labels": {"a": "1"}, "annotations": {"b": "2"}}
    (job,) = expand(content)
    assert "a" not in job["metadata"]["labels"]
    assert "b" not in job["metadata"]["annotations"]


@pytest.mark.parametrize(("subdomain", "expected"), [(None, "mnist"), ("peers", "peers")])
def test_the_subdomain_is_the_jobset_s_name_or_the_stated_one(subdomain, expected):
    (job,) = expand(make_jobset(subdomain=subdomain))
    assert job["spec"]["template"]["spec"]["subdomain"] == expected


def test_without_dns_host_names_there_is_no_subdomain_and_it_is_said():
    content = make_jobset()
    content["spec"]["network"] = {"enableDNSHostnames": False}
    (job,) = expand(content)
    assert "subdomain" not in job["spec"]["template"]["spec"]
    (remark,) = jobset.remarks(content)
    assert "enableDNSHostnames: true" in remark.text


def test_jobset_s_defaults_are_filled_in():
    bare = {"name": "node", "template": {"spec": {"template": {"spec": {}}}}}
    content = {"metadata": {"name": "x"}, "spec": {"replicatedJobs": [bare], "network": None}}
    spec = jobset.defaulted(content, namespace="team")["spec"]
    (job,) = spec["replicatedJobs"]
    assert spec["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    assert spec["successPolicy"] == {"operator": "All"}
    assert (job["replicas"], job["groupName"]) == (1, "default")
    assert job["template"]["spec"]["completionMode"] == "Indexed"
    assert job["template"]["spec"]["template"]["spec"] == {"restartPolicy": "OnFailure"}


def test_the_coordinator_is_marked_by_its_address():
    content = make_jobset()
    content["spec"]["coordinator"] = {"replicatedJob": "node", "podIndex": 2}
    (job,) = expand(content)
    assert marks(job, "coordinator") == "mnist-node-0-2.mnist"


def test_exclusive_placement_is_an_annotation_of_jobs_and_said_to_be_incomplete():
    content = make_jobset()
    content["metadata"]["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
    (job,) = expand(content)
    annotations = job["spec"]["template"]["metadata"]["annotations"]
    assert annotations["alpha.jobset.sigs.k8s.io/exclusive-topology"] == "rack"
    assert "alpha.jobset.sigs.k8s.io/exclusive-topology" not in job["metadata"]["labels"]
    (remark,) = jobset.remarks(content)
    assert remark.text.startswith("exclusive placement")


def test_claims_become_volumes_of_the_pods_that_mount_them():
    mount = make_container(volumeMounts=[{"name": "data", "mountPath": "/data"}])
    jobs = make_replicated_job(containers=[mount]), make_replicated_job("ps")
    content = make_jobset(*jobs)
    content["spec"]["volumeClaimPolicies"] = [{"templates": [{"metadata": {"name": "data"}}]}]
    node, ps = expand(content)
    assert node["spec"]["template"]["spec"]["volumes"] == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-mnist"}}
    ]
    assert "volumes" not in ps["spec"]["template"]["spec"]


def test_a_name_that_is_too_long_for_its_pods_is_refused_with_the_excess():
    content = make_jobset(make_replicated_job(completions=11), name="m" * 50)
    (remark,) = jobset.remarks(content)
    assert remark.refused
    # 50 + "-node-0-10" + "-abcde" is 66
    assert remark.text.endswith(f"shorten the name '{'m' * 50}' by 3")
    content["metadata"]["name"] = "m" * 47
    assert list(jobset.remarks(content)) == []


def test_no_replicas_no_jobs():
    assert expand(make_jobset(make_replicated_job(replicas=0))) == []
