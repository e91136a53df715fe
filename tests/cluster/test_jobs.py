"""`tfadmit ps | show | logs | stop | start | rm` over a real API server with real controllers.

There is no kubelet and no scheduler: phases of pods are reported as they would (`kubelet`).
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading

import pytest

from cluster import kubelet, phases, support
from tfadmit_client import api, cli, fault
from tfadmit_client.cluster import live_jobs
from tfadmit_client.logs import follow
from tfadmit_client.logs.line import Line

pytestmark = pytest.mark.usefixtures("tfadmit")
TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
ValueError: no data in /workspace/dataset
"""


@pytest.fixture
def run(cluster, namespace, capsys):
    """Run a command in the namespace."""

    def run(*argv, kubeconfig=cluster.kubeconfig):
        code = cli.main([*argv, "--kubeconfig", str(kubeconfig), "-n", namespace])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def node(cluster, namespace, tmp_path):
    made = kubelet.Kubelet(cluster, namespace=namespace, name=f"node-{namespace}",
                           directory=tmp_path)  # fmt: skip
    with made.running() as running:
        yield running


@pytest.fixture
def runtime(cluster, namespace):
    cluster.apply(support.shipped_runtime(name="tensorflow", namespace=namespace))
    return "tensorflow"


@pytest.fixture
def mnist(cluster, namespace, runtime):
    """A TrainJob of two workers, made as kubectl makes it."""
    job = support.trainjob(namespace, runtime=runtime, numNodes=2)
    cluster.apply(job)
    return job


def state(cluster, namespace, name="mnist"):
    (found,) = [
        item
        for item in api.jobs(namespace=namespace, kubeconfig=str(cluster.kubeconfig))
        if item.name == name
    ]
    return found


def reaches(cluster, namespace, word, *, code=None):
    """Wait until the job is in a state (and for a reason)."""
    return cluster.wait(
        lambda: state(cluster, namespace),
        until=lambda it: it.state.text == word and code in (None, it.reason.code),
        what=f"state {word} {code or ''}",
        timeout=60,
    )


# --- row 13: one true state ---------------------------------------------------------------------


def test_row_13_the_state_is_true_from_the_first_moment_to_the_last(
    cluster, namespace, mnist, node, run
):
    pods = support.pods(cluster, namespace, count=2)
    assert reaches(cluster, namespace, "Pending").reason.code == "scheduling"
    node.start(pods[0])
    waiting = reaches(cluster, namespace, "Pending")
    assert waiting.reason.text == "worker-1: default-scheduler has not looked at it yet"
    assert (waiting.running, waiting.tasks) == (1, 2)
    node.start(pods[1])
    reaches(cluster, namespace, "Running")
    assert run("stop", "mnist")[0] == 0
    reaches(cluster, namespace, "Suspended", code="stopped")
    assert run("start", "mnist")[0] == 0
    for pod in fresh_pods(cluster, namespace, count=2, old=pods):
        node.start(pod)
    reaches(cluster, namespace, "Running")
    # What kubectl's column and the Kubeflow SDK go by still says that it is suspended.
    job = cluster.get("TrainJob", "mnist", namespace)
    assert job["status"]["conditions"][-1]["type"] == "Suspended"
    assert job["status"]["conditions"][-1]["status"] == "False"
    for pod in phases.live(cluster, namespace):
        node.end(pod, code=0)
    assert reaches(cluster, namespace, "Succeeded").reason.text == ""


def test_row_13_an_eviction_restarts_all_and_that_is_told(cluster, namespace, mnist, node, run):
    pods = support.pods(cluster, namespace, count=2)
    for pod in pods:
        node.start(pod)
    reaches(cluster, namespace, "Running")
    phases.end(cluster, pods[1], code=143, disrupted=True)
    again = reaches(cluster, namespace, "Restarting(1)")
    assert (again.attempt, again.state.word) == (1, "Restarting")
    # The event that says why is written after the restart itself.
    shown = cluster.wait(
        lambda: [line for line in run("show", "mnist")[1].splitlines() if "Restarted:" in line],
        until=bool,
        what="show tells why",
    )
    assert f"{pods[1]['metadata']['name']} has condition DisruptionTarget" in shown[0]
    for pod in fresh_pods(cluster, namespace, count=2, old=pods):
        node.start(pod)
    assert reaches(cluster, namespace, "Running").attempt == 1


def test_row_13_a_job_that_is_being_deleted_says_so(cluster, namespace, mnist, node, run):
    pods = support.pods(cluster, namespace, count=2)
    finalizers(cluster, namespace, ["example.com/hold"])
    node.start(pods[0])
    cluster.delete("TrainJob", "mnist", namespace)
    gone = reaches(cluster, namespace, "Deleting")
    assert gone.reason.code == "deleting"
    assert run("start", "mnist")[::2] == (2, "mnist is being deleted: it cannot go on\n")
    assert run("stop", "mnist")[1] == "mnist is being deleted: there is nothing to stop\n"
    finalizers(cluster, namespace, None)


# --- row 14: why, in one line -------------------------------------------------------------------


def unscheduled(message, reason="Unschedulable"):
    return {
        "phase": "Pending",
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
        ],
    }


def waiting(reason, message=""):
    state = {"waiting": {"reason": reason, "message": message}}
    return {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [
            {"name": "node", "image": "x", "imageID": "", "ready": False, "restartCount": 0,
             "state": state}
        ],
    }  # fmt: skip


NO_GPU = (
    "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available: "
    "3 No preemption victims found for incoming pod."
)
PULL = 'rpc error: code = NotFound desc = failed to pull and unpack image "x": x: not found'
SECRET = 'secret "keys" not found'
IMAGE = "nvcr.io/nvidia/tensorflow:24.03-tf2-py3"
PENDING = [
    (unscheduled(NO_GPU), "unschedulable", "0/3 nodes: 3 Insufficient nvidia.com/gpu"),
    (unscheduled("", "SchedulingGated"), "gated", "held back by a scheduling gate"),
    (waiting("ErrImagePull", PULL), "image", f"image not found: {IMAGE}"),
    (waiting("CreateContainerConfigError", SECRET), "config", SECRET),
]


@pytest.mark.parametrize(("status", "code", "text"), PENDING, ids=[item[1] for item in PENDING])
def test_row_14_why_pods_are_pending(cluster, namespace, mnist, node, status, code, text):
    for pod in support.pods(cluster, namespace, count=2):
        if "containerStatuses" in status:
            node.bind(pod)
        kubelet.patch(cluster, pod, status)
    assert reaches(cluster, namespace, "Pending", code=code).reason.text == text


FAILED = [
    ({"code": 1, "message": TRACEBACK}, "exit",
     "worker-1 exit 1: ValueError: no data in /workspace/dataset"),
    ({"code": 2}, "exit", "worker-1 exit 2: the configuration is wrong or data is missing"),
    ({"code": 127, "reason": "StartError", "message": 'exec: "a": not found in $PATH'}, "exit",
     'worker-1 exit 127 StartError: exec: "a": not found in $PATH'),
]  # fmt: skip


@pytest.mark.parametrize(("ending", "code", "text"), FAILED, ids=[item[2][9:15] for item in FAILED])
def test_row_14_why_a_job_failed(cluster, namespace, mnist, node, ending, code, text):
    pods = support.pods(cluster, namespace, count=2)
    for pod in pods:
        node.start(pod)
    node.end(pods[1], **ending)
    assert reaches(cluster, namespace, "Failed", code=code).reason.text == text


def test_row_14_out_of_memory_is_named_when_no_restart_is_left(cluster, namespace, runtime, node):
    job = support.trainjob(
        namespace, runtime=runtime, numNodes=1,
        resourcesPerNode={"limits": {"cpu": "1", "memory": "2Gi"}},
    )  # fmt: skip
    cluster.apply(job)
    old: list[support.Json] = []
    for _ in range(3):  # the runtime restarts twice
        (pod,) = fresh_pods(cluster, namespace, count=1, old=old)
        old.append(pod)
        node.start(pod)
        node.end(pod, code=137, reason="OOMKilled")
    failed = reaches(cluster, namespace, "Failed", code="oom")
    assert failed.reason.text == "worker-0 exit 137 OOMKilled (limit 2Gi)"
    assert (failed.attempt, failed.state.restarts) == (2, 2)


def test_row_14_a_deadline_is_named(cluster, namespace, runtime, run):
    job = support.trainjob(namespace, runtime=runtime, numNodes=1)
    job["spec"]["activeDeadlineSeconds"] = 1
    cluster.apply(job)
    failed = reaches(cluster, namespace, "Failed", code="deadline")
    assert failed.reason.text == "its deadline of 1s was exceeded"


def test_row_14_a_quota_is_named(cluster, namespace, runtime):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"},
             "spec": {"hard": {"pods": "1"}}}  # fmt: skip
    cluster.apply(quota, namespace=namespace)
    cluster.wait(
        lambda: cluster.get("ResourceQuota", "team", namespace),
        until=lambda it: "hard" in it.get("status", {}),
        what="the quota",
    )
    cluster.apply(support.trainjob(namespace, runtime=runtime, numNodes=4))
    found = reaches(cluster, namespace, "Pending", code="quota")
    assert found.reason.text.startswith("quota team is used up: requested: pods=1")


def test_row_14_a_refusal_of_our_webhook_is_quoted(cluster, namespace, runtime, tfadmit):
    job = support.trainjob(namespace, runtime=runtime, numNodes=1)
    metadata = {"annotations": {"tfadmit.dev/replicas": "ps=4"}}
    template = {"template": {"metadata": metadata}}
    job["spec"]["runtimePatches"] = [{"manager": "example.com/me", "trainingRuntimeSpec": template}]
    with tfadmit.stopped():  # or the TrainJob itself is refused, where a failure is ignored
        cluster.apply(job)
    # A change wakes Trainer, which would try again after minutes only.
    cluster.kubectl("annotate", "trainjob", "mnist", "-n", namespace, "try=again")
    found = reaches(cluster, namespace, "Pending", code="refused")
    assert found.reason.text.startswith("refused by jobsets.tfadmit.dev: ")
    assert "tfadmit.dev/replicas" in found.reason.text


def test_row_14_a_refusal_of_pods_is_quoted(cluster, namespace, runtime):
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=baseline")
    content = support.shipped_runtime(name="host", namespace=namespace)
    (job,) = content["spec"]["template"]["spec"]["replicatedJobs"]
    spec = job["template"]["spec"]["template"]["spec"]
    spec["volumes"].append({"name": "data", "hostPath": {"path": "/data"}})
    cluster.apply(content)
    cluster.apply(support.trainjob(namespace, runtime="host", numNodes=1))
    found = reaches(cluster, namespace, "Pending", code="refused")
    assert found.reason.text.startswith('violates PodSecurity "baseline:latest": hostPath volumes')


def test_row_14_a_webhook_that_is_down_is_named(cluster, namespace, runtime, tfadmit):
    job = support.trainjob(namespace, runtime=runtime, numNodes=1)
    job["spec"]["suspend"] = True
    cluster.apply(job)
    cluster.wait(lambda: cluster.get("JobSet", "mnist", namespace), what="the JobSet")
    with tfadmit.stopped():
        cluster.kubectl("patch", "trainjob", "mnist", "-n", namespace, "--type=merge",
                        "-p", '{"spec":{"suspend":false}}')  # fmt: skip
        found = reaches(cluster, namespace, "Pending", code="webhook-down")
    assert ".tfadmit.dev fails: " in found.reason.text


# --- row 17: one broken job never breaks a list -------------------------------------------------


def test_row_17_a_job_whose_runtime_is_gone_stands_in_the_list(cluster, namespace, mnist, run):
    lost = support.trainjob(namespace, runtime="never-there", name="lost", numNodes=1)
    with without_the_webhook(cluster):  # as when the runtime goes in the same moment
        cluster.create(lost)
    code, out, err = run("ps")
    assert (code, err) == (0, "")
    rows = {line.split()[0]: line for line in out.splitlines()}
    assert rows["lost"].endswith(f"TrainingRuntime {namespace}/never-there does not exist")
    assert rows["mnist"].split()[1] == "Pending"
    assert run("show", "lost")[0] == 0
    assert run("rm", "lost")[:2] == (0, "lost is deleted\n")


# --- rows 15 and 16: logs -----------------------------------------------------------------------


class Followed:
    """`tfadmit logs -f` in a thread of its own."""

    def __init__(self, cluster, namespace, *, poll=0.2):
        self.lines: list[Line] = []
        self.told: list[str] = []
        connected = live_jobs.connect(kubeconfig=str(cluster.kubeconfig))
        self.follower = follow.Follower(
            connected, namespace=namespace, name="mnist",
            options=follow.Options(tell=self.told.append, poll=poll),
        )  # fmt: skip
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        for line in self.follower.lines():
            self.lines.append(line)

    def texts(self, replica):
        return [line.text for line in self.lines if line.replica == replica]


def test_row_15_all_tasks_are_followed_from_before_the_start_across_restarts_to_the_end(
    cluster, namespace, mnist, node
):
    followed = Followed(cluster, namespace)
    pods = support.pods(cluster, namespace, count=2)
    cluster.wait(lambda: followed.told, what="a word about the pending job")
    for index, pod in enumerate(pods):
        # Each of the first connections breaks in the middle of a line.
        node.log(pod).breaks = [200, 500, 50]
        node.start(pod)
        node.say(pod, *(f"{index} line {number}" for number in range(20)))
    before = [[f"{index} line {number}" for number in range(20)] for index in range(2)]
    cluster.wait(
        lambda: [followed.texts(f"worker-{index}") for index in range(2)],
        until=lambda seen: seen == before,
        what="all lines of the first attempt",
        timeout=60,
    )
    node.log(pods[0]).ended = True
    phases.end(cluster, pods[0], code=143, disrupted=True)
    cluster.wait(
        lambda: [text for text in followed.told if text.startswith("mnist: Restarting(1)")],
        what="a word about the restart",
    )
    for index, pod in enumerate(fresh_pods(cluster, namespace, count=2, old=pods)):
        node.start(pod)
        node.say(pod, f"{index} again")
        node.end(pod, code=0)
    followed.thread.join(timeout=60)
    assert not followed.thread.is_alive()
    for index in range(2):
        assert followed.texts(f"worker-{index}") == [*before[index], f"{index} again"]
    assert {line.attempt for line in followed.lines} == {0, 1}
    assert followed.follower.final
    assert followed.follower.final.state.word == "Succeeded"
    assert followed.told[-1] == "mnist: Succeeded"


def test_row_15_attempts_that_last_for_a_moment_are_followed_by_word_of_changes(
    cluster, namespace, mnist, node
):
    # It looks by itself every ten minutes only, so all that it sees it was told of.
    followed = Followed(cluster, namespace, poll=600)
    old: list[support.Json] = []
    for attempt in range(3):
        pods = fresh_pods(cluster, namespace, count=2, old=old)
        old += pods
        for pod in pods:
            node.say(pod, f"attempt {attempt}")
            node.start(pod)
        node.end(pods[0], code=75)
    followed.thread.join(timeout=60)
    assert not followed.thread.is_alive()
    for index in range(2):
        assert followed.texts(f"worker-{index}") == [f"attempt {number}" for number in range(3)]
    assert followed.follower.final
    assert followed.follower.final.state.word == "Failed"


def test_row_15_an_interrupted_following_says_that_the_job_goes_on(cluster, namespace, mnist, node):
    for pod in support.pods(cluster, namespace, count=2):
        node.start(pod)
        node.say(pod, "hello")
    following = subprocess.Popen(
        [sys.executable, "-m", "tfadmit_client", "logs", "-f", "mnist", "-n", namespace,
         "--kubeconfig", str(cluster.kubeconfig)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert following.stdout
    first = {following.stdout.readline() for _ in range(2)}
    following.send_signal(signal.SIGINT)
    _, err = following.communicate(timeout=30)
    assert first == {"worker-0 | hello\n", "worker-1 | hello\n"}
    assert following.returncode == 130
    again = f"tfadmit logs -n {namespace} --kubeconfig {cluster.kubeconfig} -f mnist"
    assert err.endswith(f"interrupted; mnist goes on, `{again}` follows it again\n")
    assert "Traceback" not in err


def test_row_15_the_exit_code_is_the_jobs(cluster, namespace, mnist, node, run):
    pods = support.pods(cluster, namespace, count=2)
    for pod in pods:
        node.start(pod)
        node.say(pod, "hello")
    node.end(pods[0], code=1, message=TRACEBACK)
    reaches(cluster, namespace, "Failed")
    code, out, err = run("logs", "-f", "mnist")
    assert (code, out) == (1, "worker-0 | hello\n")
    assert err == "mnist: Failed: worker-0 exit 1: ValueError: no data in /workspace/dataset\n"


def test_row_16_logs_of_a_failed_job_are_read(cluster, namespace, mnist, node, run):
    pods = support.pods(cluster, namespace, count=2)
    for pod in pods:
        node.start(pod)
        node.say(pod, "epoch 1", "epoch 2")
    assert run("logs", "mnist", "--tail", "1")[1] == "worker-0 | epoch 2\nworker-1 | epoch 2\n"
    node.end(pods[1], code=2)
    reaches(cluster, namespace, "Failed")
    assert run("logs", "mnist", "worker-1")[:2] == (0, "worker-1 | epoch 1\nworker-1 | epoch 2\n")
    _, out, _ = run("logs", "mnist", "worker-1", "-o", "json")
    first = json.loads(out.splitlines()[0])
    assert (first["replica"], first["attempt"], first["text"]) == ("worker-1", 0, "epoch 1")
    assert first["at"].endswith("Z")


def test_a_container_that_was_started_again_shows_both_runs(cluster, namespace, mnist, node, run):
    pods = support.pods(cluster, namespace, count=2)
    node.start(pods[0])
    node.say(pods[0], "first run")
    node.start(pods[0], restarts=1)
    node.say(pods[0], "second run")
    code, out, _ = run("logs", "mnist", "worker-0")
    assert (code, out) == (0, "worker-0 | first run\nworker-0 | second run\n")


def test_a_node_that_does_not_answer_is_told_and_the_others_are_read(
    cluster, namespace, mnist, node, run
):
    pods = support.pods(cluster, namespace, count=2)
    node.start(pods[1])
    node.say(pods[1], "here")
    pods[0]["spec"]["nodeName"] = ""
    node.bind(pods[0], to="lost-node")
    node.start(pods[0])
    code, out, err = run("logs", "mnist")
    assert (code, out) == (3, "worker-1 | here\n")
    assert err.startswith("the log of worker-0 cannot be read: the API server answered ")


# --- row 18: progress ---------------------------------------------------------------------------


def test_row_18_what_the_program_reports_is_a_column(cluster, namespace, mnist, run):
    support.pods(cluster, namespace, count=2)
    trainer = {
        "progressPercentage": 40,
        "estimatedRemainingSeconds": 90,
        "metrics": [{"name": "loss", "value": "0.31"}],
        "lastUpdatedTime": "2026-01-01T00:00:00Z",
    }
    path = cluster.api.resource("TrainJob").path(namespace=namespace, name="mnist")
    cluster.api.request("PATCH", f"{path}/status", body={"status": {"trainerStatus": trainer}},
                        content_type="application/merge-patch+json")  # fmt: skip
    head, row = run("ps")[1].splitlines()
    at = head.index("PROGRESS")
    assert row[at:].startswith("40% ")
    assert "40%, 90s left, loss 0.31" in run("show", "mnist")[1]


# --- row 25: stop and start ---------------------------------------------------------------------


def test_row_25_stopping_and_starting_twice_is_fine(cluster, namespace, mnist, node, run):
    for pod in support.pods(cluster, namespace, count=2):
        node.start(pod)
    reaches(cluster, namespace, "Running")
    assert run("start", "mnist") == (0, "mnist is started already (Running)\n", "")
    place = f"-n {namespace} --kubeconfig {cluster.kubeconfig}"
    again = f"tfadmit start {place} mnist"
    assert run("stop", "mnist")[1] == f"mnist is stopping; `{again}` lets it go on\n"
    assert run("stop", "mnist") == (0, "mnist is stopped already\n", "")
    cluster.wait(lambda: not phases.live(cluster, namespace), what="no pods")
    assert "Suspended" in run("ps")[1]
    assert run("start", "mnist") == (0, "mnist is starting\n", "")
    pods = cluster.wait(lambda: phases.live(cluster, namespace), until=lambda it: len(it) == 2,
                        what="pods", timeout=60)  # fmt: skip
    for pod in pods:
        node.start(pod)
        node.end(pod, code=0)
    reaches(cluster, namespace, "Succeeded")
    assert run("stop", "mnist")[:2] == (
        0,
        "mnist has ended (Succeeded): there is nothing to stop\n",
    )
    code, _, err = run("start", "mnist")
    assert code == 2
    assert f"a TrainJob runs once: `tfadmit run {place} --from mnist` repeats it" in err


# --- row 27: removal ----------------------------------------------------------------------------


def test_row_27_removal_is_complete_and_can_be_repeated(cluster, namespace, mnist, node, run):
    for pod in support.pods(cluster, namespace, count=2):
        node.start(pod)
    uid = cluster.get("TrainJob", "mnist", namespace)["metadata"]["uid"]
    owner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "mnist",
             "uid": uid}  # fmt: skip
    code = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "mnist-code", "ownerReferences": [owner]}}  # fmt: skip
    cluster.apply(code, namespace=namespace)
    assert run("rm", "mnist", "never-there")[:2] == (
        0, "mnist is deleted\nnever-there is not there\n",
    )  # fmt: skip
    for kind in ("TrainJob", "JobSet", "Pod"):
        assert cluster.list(kind, namespace) == [], kind
    left = cluster.wait(
        lambda: [
            f"{kind}/{item['metadata']['name']}"
            for kind in ("Job", "Service", "ConfigMap")
            for item in cluster.list(kind, namespace)
        ],
        until=lambda names: names == ["ConfigMap/kube-root-ca.crt"],
        what="nothing left",
    )
    assert left == ["ConfigMap/kube-root-ca.crt"]
    assert run("rm", "mnist") == (0, "mnist is not there\n", "")


def test_row_27_a_failed_job_that_is_removed_does_not_start_once_more(
    cluster, namespace, mnist, node, run
):
    pods = support.pods(cluster, namespace, count=2)
    for pod in pods:
        node.start(pod)
    node.end(pods[1], code=1)
    reaches(cluster, namespace, "Failed")
    assert run("rm", "mnist")[0] == 0
    events = cluster.list("Event", namespace)
    made = [item for item in events if item.get("reason") == "SuccessfulCreate"
            and item["involvedObject"]["kind"] == "Job"]  # fmt: skip
    assert len(made) == 2


def test_row_27_what_is_held_is_told_after_the_timeout(cluster, namespace, mnist, run):
    finalizers(cluster, namespace, ["example.com/hold"])
    code, out, err = run("rm", "mnist", "--timeout", "1")
    assert (code, out) == (1, "")
    assert "mnist is not gone after 1 s: the TrainJob waits for example.com/hold" in err
    finalizers(cluster, namespace, None)


# --- row 30: whoever made them ------------------------------------------------------------------


@pytest.fixture
def kueue(cluster):
    """Kueue's kind, without Kueue."""
    name = "workloads.kueue.x-k8s.io"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta2", "served": True, "storage": True,
               "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}  # fmt: skip
    cluster.apply({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": {
            "api-approved.kubernetes.io": "unapproved, for a test"}},
        "spec": {"group": "kueue.x-k8s.io", "scope": "Namespaced", "versions": [version],
                 "names": {"kind": "Workload", "plural": "workloads", "singular": "workload",
                           "listKind": "WorkloadList"}},
    })  # fmt: skip
    cluster.wait(lambda: cluster.api.knows("workload"), what="Kueue's kind")
    yield
    cluster.delete("CustomResourceDefinition", name)


def test_row_30_a_job_in_a_queue_of_kueue_is_told_and_stopped_there(
    cluster, namespace, runtime, kueue, run
):
    job = support.trainjob(namespace, runtime=runtime, numNodes=1)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    job["spec"]["suspend"] = True  # as Kueue's webhook does
    (made,) = cluster.apply(job)
    owner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "mnist",
             "uid": made["metadata"]["uid"]}  # fmt: skip
    said = "couldn't assign flavors to pod set node: insufficient quota for nvidia.com/gpu"
    condition = {"type": "QuotaReserved", "status": "False", "reason": "Pending", "message": said}
    cluster.apply({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {"name": "trainjob-mnist", "namespace": namespace, "ownerReferences": [owner]},
        "spec": {"queueName": "team", "active": True},
    })  # fmt: skip
    path = cluster.api.resource("Workload").path(namespace=namespace, name="trainjob-mnist")
    cluster.api.request("PATCH", f"{path}/status", body={"status": {"conditions": [condition]}},
                        content_type="application/merge-patch+json")  # fmt: skip
    found = reaches(cluster, namespace, "Suspended", code="queue")
    assert found.reason.text == f"waits in queue team: {said}"
    code, out, _ = run("start", "mnist")
    assert (code, out) == (0, f"mnist is started already, and waits in queue team: {said}\n")
    assert run("stop", "mnist")[0] == 0
    assert cluster.get("Workload", "trainjob-mnist", namespace)["spec"]["active"] is False
    assert reaches(cluster, namespace, "Suspended", code="stopped")
    assert run("stop", "mnist")[1] == "mnist is stopped already\n"
    assert run("start", "mnist") == (0, "mnist is back in its queue\n", "")
    assert cluster.get("Workload", "trainjob-mnist", namespace)["spec"]["active"] is True
    assert cluster.get("TrainJob", "mnist", namespace)["spec"]["suspend"] is True


def test_row_30_what_run_noted_is_shown(cluster, namespace, runtime, run):
    job = support.trainjob(namespace, runtime=runtime, numNodes=1, image="example.com/mine:1")
    job["metadata"]["annotations"] = {
        "tfadmit.dev/command": '["python", "train.py", "--name", "a b"]',
        "tfadmit.dev/source": '{"commit": "0123abc", "dirty": true}',
        "tfadmit.dev/code": "5e1f",
        "tfadmit.dev/output": "s3://bucket/runs",
        "tfadmit.dev/data": "train=s3://bucket/train\ntest=s3://bucket/test",
    }
    cluster.apply(job)
    text = run("show", "mnist")[1]
    for line in (
        "Command:   python train.py --name 'a b'",
        "Code:      sha256:5e1f",
        "Commit:    0123abc with changes",
        "Data:      train=s3://bucket/train, test=s3://bucket/test",
        "Results:   s3://bucket/runs/mnist/",
        "Image:     example.com/mine:1",
    ):
        assert line in text


# --- without rights, without a cluster ----------------------------------------------------------


@pytest.fixture
def guest(cluster, namespace):
    """A service account that may read TrainJobs, and nothing else."""
    group = "rbac.authorization.k8s.io"
    metadata = {"name": "guest", "namespace": namespace}
    rule = {"apiGroups": ["trainer.kubeflow.org"], "resources": ["trainjobs"],
            "verbs": ["get", "list"]}  # fmt: skip
    account = {"kind": "ServiceAccount", "name": "guest", "namespace": namespace}
    cluster.apply([
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
        {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": metadata,
         "roleRef": {"apiGroup": group, "kind": "Role", "name": "guest"}, "subjects": [account]},
    ])  # fmt: skip
    return cluster.kubeconfig_of("guest", namespace)


def test_without_rights_the_rest_is_told(cluster, namespace, mnist, run, guest):
    support.pods(cluster, namespace, count=2)
    code, out, err = run("ps", kubeconfig=guest)
    assert code == 0
    assert out.splitlines()[1].split()[:2] == ["mnist", "Pending"]
    assert f"not all is known: you may not list pods in namespace {namespace} (403)" in err
    code, _, err = run("stop", "mnist", kubeconfig=guest)
    assert code == 2
    assert f"you may not patch trainjobs.trainer.kubeflow.org in namespace {namespace} (403)" in err


def test_a_name_that_is_nearly_right_and_a_namespace_that_is_not_there(
    cluster, namespace, mnist, run, capsys
):
    said = f"there is no TrainJob mnits in namespace {namespace}; did you mean mnist?"
    assert run("show", "mnits")[::2] == (2, f"tfadmit show: error: {said}\n")
    code = cli.main(["ps", "-n", "nowhere", "--kubeconfig", str(cluster.kubeconfig)])
    assert (code, capsys.readouterr().err.partition(":")[0]) == (2, "tfadmit ps")


def test_the_namespace_is_that_of_the_context(cluster, namespace, mnist, tmp_path, capsys):
    shown = cluster.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json")
    content = json.loads(shown.stdout)
    content["contexts"][0]["context"]["namespace"] = namespace
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(content))
    assert cli.main(["ps", "--kubeconfig", str(path)]) == 0
    assert "mnist" in capsys.readouterr().out
    with pytest.raises(fault.ClientError, match="there is no TrainJob other in namespace"):
        api.job("other", kubeconfig=str(path))


# --- helpers ------------------------------------------------------------------------------------


def fresh_pods(cluster, namespace, *, count, old):
    """Pods that are not the old ones, once there are so many."""
    before = {pod["metadata"]["uid"] for pod in old}
    found = cluster.wait(
        lambda: [pod for pod in phases.live(cluster, namespace)
                 if pod["metadata"]["uid"] not in before],
        until=lambda pods: len(pods) == count,
        what=f"{count} new pods in {namespace}",
        timeout=60,
    )  # fmt: skip
    return sorted(found, key=lambda pod: pod["spec"]["hostname"])


def finalizers(cluster, namespace, names):
    path = cluster.api.resource("TrainJob").path(namespace=namespace, name="mnist")
    cluster.api.request("PATCH", path, body={"metadata": {"finalizers": names}},
                        content_type="application/merge-patch+json")  # fmt: skip


@contextlib.contextmanager
def without_the_webhook(cluster):
    """Let Trainer's webhook look at no TrainJob for a while."""
    with_selector(cluster, {"matchLabels": {"no": "object"}})
    try:
        probe = support.trainjob("default", runtime="never-there", name="probe")
        cluster.wait(
            lambda: cluster.tried(probe),
            until=lambda seen: not isinstance(seen, str),
            what="TrainJobs without a runtime",
        )
        yield
    finally:
        with_selector(cluster, {})


def with_selector(cluster, selector):
    """Say which TrainJobs Trainer's webhook looks at."""
    name = "validator.trainjob.trainer.kubeflow.org"
    for item in cluster.list("ValidatingWebhookConfiguration"):
        for hook in item["webhooks"]:
            if hook["name"] == name:
                hook["objectSelector"] = selector
                resource = cluster.api.resource("ValidatingWebhookConfiguration")
                path = resource.path(name=item["metadata"]["name"])
                cluster.api.request("PUT", path, body=item)
