"""Gang scheduling out of a TFJob: whose it is, and what becomes of each of its fields."""

import pytest

from tfadmit_client.migrate import reading, tfjob, translate

POD = {"spec": {"containers": [{"name": "tensorflow", "image": "registry.example.com/a:1"}]}}


def migrated(policy, *, scheduler=None, workers=None, chief=None):
    def pod(more):
        return {"spec": {**POD["spec"], **(more or {})}}

    job = reading.read(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "TFJob",
            "metadata": {"name": "mnist"},
            "spec": {
                "runPolicy": {"schedulingPolicy": policy},
                "tfReplicaSpecs": {
                    "Chief": {"template": pod(chief)},
                    "Worker": {"replicas": 2, "template": pod(workers)},
                },
            },
        }
    )
    assert isinstance(job, tfjob.TFJob)
    return translate.translate(job, translate.Options(scheduler=scheduler))


def pods(made):
    jobs = made.runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return [job["template"]["spec"]["template"]["spec"] for job in jobs]


def verdict(made, field):
    path = ("spec", "runPolicy", "schedulingPolicy", field)
    (found,) = [entry for entry in made.entries if entry.path == path]
    return found.verdict


@pytest.mark.parametrize(
    ("policy", "pod", "expected"),
    [
        ({"queue": "a"}, {}, {"volcano": {}}),
        ({"priorityClass": "high"}, {}, {"volcano": {}}),
        ({"minAvailable": 3}, {"schedulerName": "volcano"}, {"volcano": {}}),
        ({}, {"schedulerName": "volcano"}, {"volcano": {}}),
        (
            {"scheduleTimeoutSeconds": 9},
            {},
            {"coscheduling": {"scheduleTimeoutSeconds": 9}},
        ),
        ({}, {"schedulerName": "scheduler-plugins"}, {"coscheduling": {}}),
        ({}, {"schedulerName": "default-scheduler"}, None),
        ({"minAvailable": 3}, {}, None),
        ({}, {}, None),
    ],
)
def test_the_scheduler_is_what_the_tfjob_tells(policy, pod, expected):
    made = migrated(policy, workers=pod, chief=pod)
    assert made.runtime["spec"].get("podGroupPolicy") == expected


def test_where_it_does_not_tell_the_user_is_asked():
    made = migrated({"minAvailable": 3})
    (entry,) = [entry for entry in made.entries if entry.path[-1:] == ("minAvailable",)]
    assert entry.verdict == "not"
    assert "--gang volcano, coscheduling or none" in entry.sentence
    assert verdict(migrated({"minAvailable": 3}, scheduler="volcano"), "minAvailable") == "exactly"


def test_every_pod_gets_the_scheduler_and_its_own_wins():
    made = migrated({}, scheduler="volcano", chief={"schedulerName": "mine"})
    assert [pod["schedulerName"] for pod in pods(made)] == ["mine", "volcano"]
    assert all("schedulerName" not in pod for pod in pods(migrated({})))


def test_the_priority_is_that_of_all_pods():
    made = migrated({"priorityClass": "high"})
    assert [pod["priorityClassName"] for pod in pods(made)] == ["high", "high"]
    assert verdict(made, "priorityClass") == "exactly"


def test_a_pod_with_a_priority_of_its_own_keeps_it():
    made = migrated({"priorityClass": "high"}, chief={"priorityClassName": "low"})
    assert [pod["priorityClassName"] for pod in pods(made)] == ["low", "high"]
    assert verdict(made, "priorityClass") == "nearly"


def test_what_belongs_to_the_other_scheduler_had_no_effect():
    policy = {"queue": "a", "priorityClass": "high", "scheduleTimeoutSeconds": 9}
    volcano = migrated(policy)
    assert verdict(volcano, "scheduleTimeoutSeconds") == "exactly"
    assert volcano.runtime["spec"]["podGroupPolicy"] == {"volcano": {}}
    annotations = volcano.runtime["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {"scheduling.volcano.sh/queue-name": "a"}
    plugins = migrated(policy, scheduler="coscheduling")
    assert [verdict(plugins, name) for name in policy] == ["exactly"] * 3
    assert "metadata" not in plugins.runtime["spec"]["template"]
    assert all("priorityClassName" not in pod for pod in pods(plugins))


def test_without_a_gang_its_fields_are_told():
    made = migrated({"minAvailable": 3, "queue": "a"}, scheduler="none")
    assert "podGroupPolicy" not in made.runtime["spec"]
    assert [verdict(made, name) for name in ("minAvailable", "queue")] == ["not", "not"]
