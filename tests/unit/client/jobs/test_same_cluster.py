"""Commands that a message about a job tells to run next reach the cluster of the job."""

import pytest

import fake_jobs as make
from tfadmit_client import fault
from tfadmit_client.jobs import change, find
from tfadmit_client.watch import job

FLAGS = " --kubeconfig 'my clusters/prod' --context blue"
MNIST = change.Target(namespace="team", name="mnist")


def cluster(*jobs, **kinds):
    made = make.Cluster(TrainJob=list(jobs), **kinds)
    made.flags = FLAGS
    return made


def refused(call, *words, **options):
    with pytest.raises(fault.ClientError) as caught:
        call(*words, **options)
    return str(caught.value)


def stopped():
    return change.stop(cluster(make.trainjob("mnist")), MNIST)


def ended():
    return refused(change.start, cluster(make.trainjob("mnist", make.condition("Complete"))),
                   MNIST)  # fmt: skip


def absent():
    return refused(find.one, cluster(), namespace="team", name="mnist")


def no_namespace():
    return refused(find.one, cluster(Namespace=[]), namespace="team", name="mnist")


def suspended():
    found = find.one(cluster(make.trainjob("mnist", spec={"suspend": True})),
                          namespace="team", name="mnist")  # fmt: skip
    return job.safe(found.jobs[0]).reason.text


TOLD = {
    "stopped": (stopped, "tfadmit start -n team{} mnist`"),
    "ended": (ended, "tfadmit run -n team{} --from mnist`"),
    "absent": (absent, "tfadmit ps -n team{}`"),
    "no namespace": (no_namespace, "kubectl get namespaces{}`"),
    "suspended": (suspended, "tfadmit start -n team{} mnist`"),
}


@pytest.mark.parametrize("case", TOLD)
def test_what_to_run_next_names_the_same_cluster(case):
    tell, sentence = TOLD[case]
    assert sentence.format(FLAGS) in tell()
