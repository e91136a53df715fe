"""The Kubeflow SDK on a cluster with tfadmit: it works, and what the rules warn of breaks it."""

import json
import os
import subprocess

import pytest
import yaml

from cluster import support
from harness import tools, virtualenv
from tfadmit_client import api, cli

SCRIPT = support.ROOT / "tests/cluster/scripts/sdk.py"
EXAMPLES = support.ROOT / "webhook/tfadmit_webhook/policy/examples"


@pytest.fixture(scope="module")
def python():
    try:
        return virtualenv.locked("kubeflow.lock", note="a few seconds and 100 MB")
    except tools.UnavailableError as error:
        support.give_up(str(error))


@pytest.fixture
def sdk(cluster, namespace, tfadmit, python):
    """Runs a step of the script in the test's namespace."""

    def run(step, *words, check=True):
        environ = {"PATH": os.environ["PATH"], "KUBECONFIG": str(cluster.kubeconfig)}
        done = subprocess.run(
            [str(python), str(SCRIPT), namespace, step, *words],
            env=environ, capture_output=True, text=True, check=False, timeout=100,
        )  # fmt: skip
        if not check:
            return done
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def shipped(cluster, tfadmit):
    """The runtime of deploy/ under its own name, for the whole cluster."""
    with support.applied_runtime(cluster, yaml.safe_load(support.RUNTIME.read_text())) as name:
        yield name


def finish(cluster, namespace, phase, **status):
    """Set the status of all pods, as a kubelet would."""
    for pod in cluster.list("Pod", namespace):
        name = pod["metadata"]["name"]
        patch = json.dumps({"status": {"phase": phase, **status}})
        arguments = ("--subresource=status", "--type=merge", "-p", patch)
        cluster.kubectl("patch", "pod", name, "-n", namespace, *arguments)


def test_the_runtime_is_listed_and_described(sdk, shipped):
    assert shipped in sdk("runtimes")
    runtime = sdk("runtime", shipped)
    assert (runtime["name"], runtime["trainer"]["framework"]) == (shipped, "tensorflow")
    image = yaml.safe_load(support.RUNTIME.read_text())["spec"]["template"]["spec"][
        "replicatedJobs"
    ][0]["template"]["spec"]["template"]["spec"]["containers"][0]["image"]
    assert runtime["trainer"]["image"] == image


def test_row_30_a_job_of_the_sdk_is_told_as_any_other(cluster, namespace, sdk, shipped, capsys):
    assert sdk("train-function", "mnist") == "mnist"
    support.pods(cluster, namespace, count=2)
    options = ["-n", namespace, "--kubeconfig", str(cluster.kubeconfig), "-o", "json"]
    assert cli.main(["ps", *options]) == 0
    (job,) = json.loads(capsys.readouterr().out)
    assert (job["name"], job["state"], job["roles"]["worker"]["tasks"]) == ("mnist", "Pending", 2)
    assert cli.main(["show", "mnist", *options[:-2]]) == 0
    (command,) = [line for line in capsys.readouterr().out.splitlines() if "Command:" in line]
    assert "bash -c" in command
    finish(cluster, namespace, "Succeeded")
    where = {"namespace": namespace, "kubeconfig": str(cluster.kubeconfig)}
    cluster.wait(
        lambda: api.job("mnist", **where),
        until=lambda it: it.state.word == "Succeeded",
        what="the end of the job",
    )
    assert list(api.logs("mnist", follow=True, **where)) == []


def test_row_30_a_job_of_tfadmit_run_is_read_by_the_sdk(
    cluster, namespace, sdk, shipped, capsys, tmp_path
):
    (tmp_path / "train.py").write_text("pass\n")
    where = ["-n", namespace, "--kubeconfig", str(cluster.kubeconfig), "--code", str(tmp_path)]
    words = ["--name", "ours", "--workers", "2", "--memory", "1Gi", "-d"]
    assert cli.main(["run", *where, *words, "--", "python", "train.py"]) == 0, capsys.readouterr()
    support.pods(cluster, namespace, count=2)
    assert sdk("jobs") == ["ours"]
    found = sdk("wait", "ours", "Created")
    assert (found["name"], found["num_nodes"], found["runtime"]["name"]) == ("ours", 2, shipped)
    assert sorted(step["name"] for step in found["steps"]) == ["node-0", "node-1"]


def test_a_function_becomes_tasks_that_know_each_other_and_ends(cluster, namespace, sdk, shipped):
    assert sdk("train-function", "mnist") == "mnist"
    pods = support.pods(cluster, namespace, count=2)
    for index, pod in enumerate(pods):
        config = support.tf_config(pod)
        assert config["task"] == {"type": "worker", "index": index}
        assert config["cluster"]["worker"] == [
            f"mnist-node-0-{i}.mnist.{namespace}.svc.cluster.local:12345" for i in range(2)
        ]
        assert support.env(pod)["EPOCHS"] == "1"
        (container,) = pod["spec"]["containers"]
        assert "def train():" in container["command"][-1]
    assert sdk("wait", "mnist", "Created")["status"] == "Created"
    finish(cluster, namespace, "Running")
    running = sdk("wait", "mnist", "Running")
    assert running["num_nodes"] == 2
    assert [step["name"] for step in sorted(running["steps"], key=lambda step: step["name"])] == [
        "node-0", "node-1",
    ]  # fmt: skip
    finish(cluster, namespace, "Succeeded")
    assert sdk("wait", "mnist", "Complete")["status"] == "Complete"
    sdk("delete", "mnist")
    assert sdk("jobs") == []


def test_a_container_becomes_tasks_that_know_each_other(cluster, namespace, sdk, shipped):
    assert sdk("train-container", "mine", "cpu=1", "memory=1Gi") == "mine"
    for index, pod in enumerate(support.pods(cluster, namespace, count=2)):
        assert support.tf_config(pod)["task"] == {"type": "worker", "index": index}
        (container,) = pod["spec"]["containers"]
        assert container["image"] == "example.com/mine"
        assert container["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}
    assert sdk("jobs") == ["mine"]
    sdk("delete", "mine")
    cluster.wait(
        lambda: cluster.list("Pod", namespace), until=lambda found: not found, what="no pods"
    )


def example(name, namespace, *, change=lambda container: None):
    runtime = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    runtime["kind"] = "TrainingRuntime"
    runtime["metadata"]["namespace"] = namespace
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    change(job["template"]["spec"]["template"]["spec"]["containers"][0])
    return runtime


def limits(**names):
    return lambda container: container.update(
        resources={"limits": {name.replace("__", "/").replace("_", "."): 1 for name in names}}
    )


@pytest.mark.parametrize(
    ("name", "change", "rule"),
    [
        ("TFA001-passing", None, None),
        ("TFA013-failing", None, "TFA013"),
        ("TFA013-passing", limits(), "TFA013"),
        ("TFA013-passing", limits(amd_com__gpu=1), "TFA013"),
        ("TFA013-passing", limits(cpu=1, memory=1), None),
        ("TFA024-failing", None, "TFA024"),
    ],
)
def test_the_sdk_lists_no_runtime_exactly_where_a_rule_says_so(
    cluster, namespace, sdk, name, change, rule
):
    runtime = example(name, namespace, change=change or (lambda container: None))
    result = support.applied(cluster, runtime)
    assert [text.split()[0] for text in support.warnings(result)] == ([rule] if rule else [])
    listed = sdk("runtimes", check=False)
    assert (listed.returncode == 0) is (rule is None), listed.stderr


def test_a_runtime_without_an_ml_policy_breaks_the_list(cluster, namespace, sdk):
    runtime = example("TFA004-passing", namespace)
    del runtime["spec"]["mlPolicy"]
    result = support.applied(cluster, runtime)
    assert [text.split()[0] for text in support.warnings(result)] == ["TFA004"]
    assert sdk("runtimes", check=False).returncode != 0


def test_limits_of_a_trainjob_that_break_the_list_of_trainjobs_are_warned_of(
    cluster, namespace, sdk, shipped
):
    resources = {"resourcesPerNode": {"limits": {"memory": "1Gi"}}}
    job = support.trainjob(namespace, runtime=shipped, name="odd", **resources)
    job["spec"]["runtimeRef"] = {"name": shipped}
    result = support.applied(cluster, job)
    assert [text.split()[0] for text in support.warnings(result)] == ["TFA013"]
    support.pods(cluster, namespace, count=1)
    listed = sdk("jobs", check=False)
    assert listed.returncode != 0
    assert "Unknown device type" in listed.stderr
