"""When a remembered JobSet is good enough, and when the API server is asked."""

import dataclasses

import pytest

import admission
from builders import make_job, make_jobset, make_pod, make_replicated_job
from tfadmit_webhook import facts, workload
from tfadmit_webhook.decision import Reason


class Reader:
    """Counts live look-ups; `live` may be an exception."""

    def __init__(self, *, cached=None, live=None, job=None):
        self.cached, self.live, self.job, self.asked = cached, live, job, []

    def cached_jobset(self, *, namespace, name):
        return self.cached

    def live_jobset(self, *, namespace, name, timeout):
        self.asked.append((namespace, name, timeout))
        if isinstance(self.live, Exception):
            raise self.live
        return self.live

    def live_job(self, *, namespace, name, timeout):
        return self.job


def view(completions=3, **fields):
    return workload.jobset(make_jobset(make_replicated_job(completions=completions), **fields))


def decide(reader, pod):
    return admission.decide("/mutate/pods", pod, given=admission.context(reader=reader))


def test_a_remembered_jobset_spares_the_api_server():
    reader = Reader(cached=view())
    assert decide(reader, make_pod()).allowed
    assert reader.asked == []


def test_a_pod_in_its_second_round_spares_the_api_server_too():
    reader = Reader(cached=view())
    pod = make_pod()
    again = decide(reader, admission.apply(pod, decide(reader, pod)))
    assert (again.allowed, again.patch) == (True, [])
    assert reader.asked == []


@pytest.mark.parametrize(
    "cached",
    [
        None,
        view(uid="an-older-one"),
        view(completions=2),
        view(suspend=True),
        dataclasses.replace(view(), groups=()),
    ],
    ids=["never seen", "another uid", "index beyond its size", "still suspended", "no such group"],
)
def test_a_jobset_that_cannot_be_the_pods_is_asked_for(cached):
    reader = Reader(cached=cached, live=view())
    decision = decide(reader, make_pod(index=2))
    assert decision.allowed
    assert reader.asked == [("team", "mnist", 5.0)]


@pytest.mark.parametrize(
    "template",
    [
        {"annotations": {"tfadmit.dev/port": "23456"}},
        {"annotations": {"tfadmit.dev/address": "short"}},
        {"labels": {"trainer.kubeflow.org/framework": "tensorflow", "tfadmit.dev/role": "ps"}},
    ],
    ids=["port", "address", "role"],
)
def test_a_pod_whose_template_has_changed_is_asked_for(template):
    """Templates change while a JobSet is suspended; a watch that hangs does not tell of it."""
    newer = workload.jobset(make_jobset(make_replicated_job(**template)))
    reader = Reader(cached=view(), live=newer)
    assert decide(reader, make_pod(**template)).allowed
    assert len(reader.asked) == 1


def test_a_live_jobset_may_be_suspended_again_already():
    assert decide(Reader(live=view(suspend=True)), make_pod()).allowed


def test_an_index_beyond_the_live_size_is_refused():
    decision = decide(Reader(cached=view(completions=2), live=view()), make_pod(index=3))
    assert decision.reason is Reason.INDEX_BEYOND_CLUSTER
    assert decision.message == (
        "the pod has job index 0 and completion index 3, but replicated job 'node' of JobSet "
        "team/mnist has only 3 tasks; the pod is admitted once there is such a task"
    )


def test_a_failed_look_up_is_refused_as_temporary():
    error = facts.LookupFailedError(
        "the API server did not answer within 2 s: get JobSet team/mnist"
    )
    decision = decide(Reader(live=error), make_pod())
    assert (decision.allowed, decision.code) == (False, 503)
    assert decision.reason is Reason.LOOKUP_FAILED
    assert decision.message == str(error)


def test_a_jobset_is_looked_up_in_the_namespace_of_the_request():
    reader = Reader(live=view())
    pod = make_pod()
    pod["metadata"]["namespace"] = "elsewhere"
    decide(reader, pod)
    assert reader.asked == [("team", "mnist", 5.0)]


def test_a_job_is_never_remembered_because_its_size_may_change():
    pod = make_pod(jobset=None, index=3)
    pod["metadata"]["ownerReferences"] = [
        {"kind": "Job", "name": "plain", "uid": "job-uid-1", "controller": True}
    ]
    assert not decide(Reader(job=workload.job(make_job(completions=3))), pod).allowed
    assert decide(Reader(job=workload.job(make_job(completions=4))), pod).allowed
