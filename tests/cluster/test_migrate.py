"""Migrated TFJobs on the real controllers: what is applied, and which pods it makes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import operator_v1
from cluster import phases, support
from tfadmit_client import cli

pytestmark = pytest.mark.usefixtures("tfadmit")

GOLDEN = Path(__file__).parents[1] / "golden" / "migrate"
CASES = sorted(path.name for path in GOLDEN.iterdir())
TFJOBS = "tfjobs.kubeflow.org"
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"


def migrated(capsys, *arguments):
    code = cli.main(["migrate", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def objects(text, namespace):
    """The output, in the test's own namespace."""
    found = [item for item in yaml.safe_load_all(text) if item]
    for item in found:
        item["metadata"]["namespace"] = namespace
    return found


def apply(cluster, made, *, command="apply"):
    return cluster.kubectl_apply(yaml.safe_dump_all(made), command=command)


def sources(case):
    """The TFJobs of a case."""
    for document in yaml.safe_load_all((GOLDEN / case / "input.yaml").read_text()):
        items = document["items"] if document["kind"] == "List" else [document]
        yield from (item for item in items if item["kind"] == "TFJob")


def source(case):
    (tfjob,) = sources(case)
    return tfjob


def let_go(made):
    """What Kueue does with the TrainJobs of its queues, and what is only for another cluster."""
    for item in made:
        if item["kind"] == "TrainJob":
            item["spec"].pop("suspend", None)
            item["spec"].pop("managedBy", None)
    return made


@pytest.mark.parametrize("case", CASES)
def test_the_api_server_takes_the_output(cluster, namespace, case):
    made = objects((GOLDEN / case / "expected.yaml").read_text(), namespace)
    # A dry run of a TrainJob asks for its runtime, which a dry run does not create.
    runtimes = [item for item in made if item["kind"] == "TrainingRuntime"]
    result = cluster.kubectl(
        "apply", "--dry-run=server", "-f", "-", input=yaml.safe_dump_all(runtimes), check=False
    )
    assert result.returncode == 0, result.stderr
    assert "unknown field" not in result.stderr


@pytest.mark.parametrize("case", CASES)
def test_the_pods_are_those_that_the_training_operator_made(cluster, namespace, case):
    made = let_go(objects((GOLDEN / case / "expected.yaml").read_text(), namespace))
    # As the report says of them: kubectl apply takes no generateName.
    unnamed = [item for item in made if "name" not in item["metadata"]]
    apply(cluster, [item for item in made if item not in unnamed])
    for item in unnamed:
        apply(cluster, [item], command="create")
    tfjobs = list(sources(case))
    trainjobs = [item["metadata"] for item in made if item["kind"] == "TrainJob"]
    count = sum(len(list(operator_v1.pods(tfjob))) for tfjob in tfjobs)
    pods = support.pods(cluster, namespace, count=count)
    for tfjob, trainjob in zip(tfjobs, trainjobs, strict=True):
        name = trainjob.get("name") or trainjob["generateName"]
        ours = [pod for pod in pods if pod["metadata"]["labels"][JOBSET_NAME].startswith(name)]
        assert operator_v1.differences(tfjob, ours) == []


def started(cluster, namespace, case, *, count):
    """The pods of a migrated TFJob by their task."""
    apply(cluster, objects((GOLDEN / case / "expected.yaml").read_text(), namespace))
    return phases.tasks(cluster, namespace, count=count)


def test_the_end_of_the_chief_ends_the_training_and_no_server_is_left(cluster, namespace):
    pods = started(cluster, namespace, "parameter-servers", count=4)
    phases.end(cluster, pods["chief", 0], code=0)
    assert phases.ended(cluster, namespace, "digits-ps") == "Complete"
    left = support.pods(cluster, namespace, count=1)
    assert [phases.task(pod) for pod in left] == [("chief", 0)]


def test_without_a_chief_worker_0_ends_the_training(cluster, namespace):
    pods = started(cluster, namespace, "simple", count=2)
    phases.end(cluster, pods["worker", 0], code=0)
    assert phases.ended(cluster, namespace, "digits") == "Complete"


def test_all_workers_must_end_where_the_tfjob_said_so(cluster, namespace):
    pods = started(cluster, namespace, "all-workers", count=4)
    for index in (0, 2, 3):
        phases.end(cluster, pods["worker", index], code=0)
    cluster.wait(
        lambda: cluster.get("Job", "all-workers-node-0", namespace)["status"],
        until=lambda status: status.get("succeeded") == 3,
        what="three workers have succeeded",
    )
    assert not phases.conditions(cluster.get("TrainJob", "all-workers", namespace)) & {"Complete"}
    phases.end(cluster, pods["worker", 1], code=0)
    assert phases.ended(cluster, namespace, "all-workers") == "Complete"


@pytest.mark.parametrize("task", [("ps", 0), ("worker", 1), ("chief", 0)])
def test_with_never_the_first_failure_ends_the_training(cluster, namespace, task):
    pods = started(cluster, namespace, "parameter-servers", count=4)
    phases.end(cluster, pods[task], code=137)
    assert phases.ended(cluster, namespace, "digits-ps") == "Failed"


def test_a_retryable_exit_code_makes_one_new_pod_and_the_others_stay(cluster, namespace):
    before = started(cluster, namespace, "exit-codes", count=4)
    phases.end(cluster, before["worker", 1], code=137)
    after = cluster.wait(
        lambda: {phases.task(pod): pod for pod in phases.live(cluster, namespace)},
        until=lambda found: (
            found.get(("worker", 1)) and uid(found["worker", 1]) != uid(before["worker", 1])
        ),
        timeout=60,
        what="a new worker 1",
    )
    same = {task for task, pod in after.items() if uid(pod) == uid(before[task])}
    assert same == {("chief", 0), ("worker", 0), ("worker", 2)}


def test_a_permanent_exit_code_ends_the_training(cluster, namespace):
    pods = started(cluster, namespace, "exit-codes", count=4)
    phases.end(cluster, pods["worker", 1], code=3)
    assert phases.ended(cluster, namespace, "codes") == "Failed"


@pytest.mark.parametrize(
    ("case", "name", "code"),
    [("dynamic-workers", "dynamic", 137), ("dynamic-exit-codes", "dynamic-codes", 3)],
)
def test_a_dynamic_worker_may_fail_and_the_training_goes_on(cluster, namespace, case, name, code):
    count = {"dynamic-workers": 5, "dynamic-exit-codes": 3}[case]
    pods = started(cluster, namespace, case, count=count)
    phases.end(cluster, pods["worker", 0], code=code)
    cluster.wait(
        lambda: cluster.get("Job", f"{name}-node-0", namespace)["status"],
        until=lambda status: status.get("failedIndexes") == "0",
        what="worker 0 has failed",
    )
    assert not phases.conditions(cluster.get("TrainJob", name, namespace)) & {"Failed"}
    phases.end(cluster, pods["chief", 0], code=0)
    assert phases.ended(cluster, namespace, name) == "Complete"


def test_with_gang_restart_all_tasks_start_again_together(cluster, namespace):
    pods = started(cluster, namespace, "gang-restart", count=3)
    phases.end(cluster, pods["worker", 0], code=75)
    again = phases.again(cluster, namespace, pods)
    assert set(again) == set(pods)
    phases.end(cluster, again["chief", 0], code=1)
    assert phases.ended(cluster, namespace, "digits-2") == "Failed"


def uid(pod):
    return pod["metadata"]["uid"]


@pytest.mark.parametrize(
    ("case", "resource", "name", "members", "more"),
    [
        ("volcano", "podgroups.scheduling.volcano.sh", "ganged", 4, {"queue": "research"}),
        (
            "coscheduling", "podgroups.scheduling.x-k8s.io", "together", 3,
            {"scheduleTimeoutSeconds": 120},
        ),
    ],
    ids=["volcano", "coscheduling"],
)  # fmt: skip
def test_the_pod_group_is_that_of_all_pods(cluster, namespace, case, resource, name, members, more):
    support.needs_pod_groups(cluster)
    pods = started(cluster, namespace, case, count=members)
    schedulers = {"volcano": "volcano", "coscheduling": "scheduler-plugins-scheduler"}
    assert {pod["spec"]["schedulerName"] for pod in pods.values()} == {schedulers[case]}
    found = cluster.kubectl("get", resource, name, "-n", namespace, "-o", "yaml")
    spec = yaml.safe_load(found.stdout)["spec"]
    assert {"minMember": members, **more}.items() <= spec.items()


def test_kubectl_applies_the_json_with_the_report_in_it(cluster, namespace, capsys):
    code, text, _ = migrated(capsys, "-f", GOLDEN / "simple" / "input.yaml", "-o", "json")
    content = json.loads(text)
    for item in content["items"]:
        item["metadata"]["namespace"] = namespace
    result = cluster.kubectl_apply(json.dumps(content))
    assert (code, result.returncode) == (0, 0), result.stderr
    assert len(support.pods(cluster, namespace, count=2)) == 2


def test_the_suspended_one_waits_and_has_its_deadline(cluster, namespace):
    made = objects((GOLDEN / "run-policy" / "expected.yaml").read_text(), namespace)
    # Without the manager of another cluster, whose jobs Trainer leaves alone.
    del made[1]["spec"]["managedBy"]
    apply(cluster, made)
    jobset = cluster.wait(
        lambda: cluster.get("JobSet", "limits", namespace), what="the suspended JobSet"
    )
    assert jobset["spec"]["suspend"] is True
    assert cluster.list("Pod", namespace) == []
    job = cluster.get("TrainJob", "limits", namespace)
    assert job["spec"]["activeDeadlineSeconds"] == 7200
    change = '{"spec": {"suspend": false}}'
    cluster.kubectl("patch", "trainjob", "limits", "-n", namespace, "--type=merge", "-p", change)
    phases.tasks(cluster, namespace, count=2)


def test_a_time_to_live_starts_a_failed_training_again(cluster, namespace):
    """Why none is written into the runtime. Once Trainer mends it, the report can change."""
    made = objects((GOLDEN / "simple" / "expected.yaml").read_text(), namespace)
    jobset = made[0]["spec"]["template"]["spec"]
    jobset["ttlSecondsAfterFinished"] = 0
    jobset["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 0
    apply(cluster, made)
    pods = phases.tasks(cluster, namespace, count=2)
    first = uid(cluster.get("JobSet", "digits", namespace))
    phases.end(cluster, pods["worker", 0], code=1)
    assert phases.ended(cluster, namespace, "digits") == "Failed"
    cluster.wait(
        lambda: uid(cluster.get("JobSet", "digits", namespace)),
        until=lambda found: found != first,
        what="another JobSet of the failed training",
        timeout=60,
    )


CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": TFJOBS},
    "spec": {
        "group": "kubeflow.org",
        "scope": "Namespaced",
        "names": {
            "kind": "TFJob",
            "plural": "tfjobs",
            "singular": "tfjob",
            "listKind": "TFJobList",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def tfjobs(cluster):
    """The kind TFJob, as a cluster has it that the training operator was installed on."""
    cluster.apply(CRD)
    cluster.wait(lambda: cluster.api.knows("TFJob"), what="the kind TFJob is served")
    yield
    cluster.delete("CustomResourceDefinition", TFJOBS)


@pytest.mark.usefixtures("tfjobs")
def test_tfjobs_of_a_cluster_give_what_their_files_give(cluster, namespace, capsys):
    for case in ("simple", "parameter-servers"):
        tfjob = source(case)
        tfjob["metadata"]["namespace"] = namespace
        cluster.kubectl("create", "-f", "-", input=yaml.safe_dump(tfjob))
    where = ("--from-cluster", "--kubeconfig", cluster.kubeconfig, "-n", namespace)
    code, text, report = migrated(capsys, *where)
    expected = [
        item
        for case in ("simple", "parameter-servers")
        for item in objects((GOLDEN / case / "expected.yaml").read_text(), namespace)
    ]
    assert code == 0
    assert list(yaml.safe_load_all(text)) == expected
    assert f"TFJob {namespace}/digits (the cluster): " in report
    assert "2 TFJobs translated" in report

    code, text, report = migrated(capsys, *where, "digits-ps")
    assert (code, list(yaml.safe_load_all(text))) == (0, expected[2:])
    code, text, report = migrated(capsys, *where, "absent")
    assert (code, text) == (2, "")
    assert "there is no TFJob absent; there are: digits, digits-ps" in report


@pytest.mark.usefixtures("tfjobs")
def test_a_namespace_without_tfjobs_gives_nothing(cluster, namespace, capsys):
    where = ("--from-cluster", "--kubeconfig", cluster.kubeconfig, "-n", namespace)
    assert migrated(capsys, *where) == (0, "", "0 TFJobs translated\n")


DOC = support.ROOT / "docs" / "from-tfjob.md"
# No kubelet is here to have logs, and runtimes of the cluster have tests of their own.
NOT_HERE = ("kubectl logs ", "kubectl apply -k ")


def commands():
    """The commands of the page, in their order."""
    blocks = re.findall(r"^```sh\n(.*?)^```", DOC.read_text(), flags=re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines()]
    return [line for line in lines if not line.startswith(NOT_HERE)]


@pytest.mark.usefixtures("tfjobs")
def test_the_commands_of_the_page_lead_over_and_back(cluster, namespace, tmp_path):
    tfjob = source("simple")
    tfjob["metadata"]["namespace"] = namespace
    cluster.kubectl("create", "-f", "-", input=yaml.safe_dump(tfjob))
    cluster.create(pod_of_the_operator(tfjob))
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "kubectl").symlink_to(cluster.program)
    (tools / "tfadmit").symlink_to(Path(sys.executable).with_name("tfadmit"))
    environ = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
    }
    printed = {}
    for line in commands():
        if "digits-2-node-0" in line:
            support.pods(cluster, namespace, count=3)
        ended = subprocess.run(
            ["sh", "-c", line.replace("team-a", namespace)],
            cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert ended.returncode == 0, f"{line}\n{ended.stdout}{ended.stderr}"
        printed[line] = ended.stdout
    old, new = (json.loads(text) for line, text in printed.items() if "TF_CONFIG" in line)
    assert old["task"] == new["task"] == {"type": "worker", "index": 0}
    assert len(old["cluster"]["worker"]) == len(new["cluster"]["worker"]) == 2
    (shown,) = [text for line, text in printed.items() if "get tfjob,trainjob" in line]
    assert "tfjob.kubeflow.org/digits" in shown
    assert "trainjob.trainer.kubeflow.org/digits-2" in shown
    assert cluster.get("TFJob", "digits", namespace)["spec"] == tfjob["spec"]


def pod_of_the_operator(tfjob):
    """The pod of worker 0 that the training operator, which does not run here, would have made."""
    _, _, template = next(operator_v1.pods(tfjob))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{tfjob['metadata']['name']}-worker-0",
            "namespace": tfjob["metadata"]["namespace"],
        },
        "spec": template["spec"],
    }
