"""The expansion beside objects of a real cluster (Kubernetes 1.36.3, JobSet 0.12, Trainer 2.3).

`reality/` holds a TrainJob and what the controllers made of it, as the API server gave it back.
Everything that an expansion states must stand there; what stands there beyond it is listed here.
"""

import json
from pathlib import Path

import pytest

import builders
from tfadmit_client.expand import job, jobset, trainer

REALITY = Path(__file__).with_name("reality")
NAMESPACE = "team-bz5v6"  # made up by the harness

# Written by the API server after the object was made, or by the controllers as it runs.
LATER = {"name", "creationTimestamp", "generation", "resourceVersion", "uid", "status"}
# Defaults of the API server, and what its admission plugins add.
DEFAULTS = {
    *("dnsPolicy", "schedulerName", "securityContext", "terminationGracePeriodSeconds"),
    *("resources", "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy"),
    *("volumes", "volumeMounts", "serviceAccountName", "serviceAccount", "tolerations"),
    *("priority", "enableServiceLinks", "preemptionPolicy"),
    *("backoffLimit", "selector", "manualSelector", "podReplacementPolicy"),
    # JobSet's pod webhook copies spec.priority, which comes from the cluster's PriorityClasses.
    "jobset.sigs.k8s.io/priority",
}


def real(name):
    return json.loads((REALITY / f"{name}.json").read_text())


def runtime():
    node = builders.make_trainer_job(labels=builders.LABEL)
    env = [{"name": "EPOCHS", "value": "10"}]
    container = {"name": "node", "image": "example.com/none", "env": env}
    node["template"]["spec"]["template"]["spec"] = {"containers": [container]}
    # the real one states no failure policy
    del node["template"]["spec"]["backoffLimit"]
    content = builders.make_runtime(node)
    del content["spec"]["template"]["spec"]["failurePolicy"]
    content["spec"]["template"]["metadata"] = {"labels": {"foo": "jobset-template"}}
    return content


def differences(ours, theirs, path=""):
    """Every place where ours is not theirs, or theirs has more than a default."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found = [f"{path}.{key}: only ours" for key in ours if key not in theirs]
        more = set(theirs) - set(ours) - DEFAULTS - LATER
        found += [f"{path}.{key}: only theirs" for key in sorted(more)]
        for key in ours.keys() & theirs.keys():
            found += differences(ours[key], theirs[key], f"{path}.{key}")
        return found
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [text for at, (a, b) in pairs for text in differences(a, b, f"{path}[{at}]")]
    return [] if ours == theirs else [f"{path}: ours {ours!r}, theirs {theirs!r}"]


def test_the_trainjob_gives_the_real_jobset():
    ours = trainer.jobset(real("trainjob"), runtime(), namespace=NAMESPACE).jobset
    theirs = real("jobset")
    ours = jobset.defaulted(ours, namespace=NAMESPACE)
    del ours["metadata"]["uid"]
    assert differences(ours, theirs) == []


def test_the_jobset_gives_the_real_job():
    (made,) = jobset.jobs(jobset.defaulted(real("jobset"), namespace=NAMESPACE))
    theirs = real("job")
    made["metadata"]["uid"] = theirs["metadata"]["uid"]
    assert differences(job.defaulted(made, namespace=NAMESPACE), theirs) == []


def test_the_job_gives_the_real_pods():
    first, second, third = job.pods(job.defaulted(real("job"), namespace=NAMESPACE))
    theirs = {"apiVersion": "v1", "kind": "Pod", **real("pod")}
    assert differences(first, theirs) == []
    assert [pod["spec"]["hostname"] for pod in (second, third)] == [
        "mnist-node-0-1",
        "mnist-node-0-2",
    ]


@pytest.mark.parametrize("place", ["labels", "annotations"])
def test_the_comparison_sees_a_missing_mark(place):
    (first, *_) = job.pods(job.defaulted(real("job"), namespace=NAMESPACE))
    del first["metadata"][place]["jobset.sigs.k8s.io/job-key"]
    assert differences(first, {"apiVersion": "v1", "kind": "Pod", **real("pod")}) == [
        f".metadata.{place}.jobset.sigs.k8s.io/job-key: only theirs"
    ]
