"""Roles by TrainJob on the real controllers: sizes, programs, policies; no fight with Trainer."""

import json
import time

import pytest
import yaml

import builders
from cluster import phases, support

pytestmark = pytest.mark.usefixtures("tfadmit")
REPLICAS = "tfadmit.dev/replicas"
PROGRAM = {"image": "example.com/mine:1", "command": ["python", "train.py"], "args": ["--fast"]}
LIMITS = {"cpu": "2", "memory": "1Gi"}


def role_job(name, *, image=None, step=None, spec=None, count=None, **pod):
    container = {"name": "node", **({"image": image} if image else {}), **pod}
    template = {
        "spec": {
            "backoffLimit": 0,
            **({"parallelism": count, "completions": count} if count else {}),
            **(spec or {}),
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        }
    }
    if step:
        template["metadata"] = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": step}}
    return {"name": name, "template": template}


def roles_runtime(namespace, *, jobs=None, annotations=None, **spec):
    """Chief, workers, parameter servers and an evaluator; only the workers have a program."""
    runtime = support.shipped_runtime(name="roles", namespace=namespace)
    template = runtime["spec"]["template"]
    template["spec"]["replicatedJobs"] = jobs or [
        role_job("chief"),
        role_job("node", image="example.com/default", step="trainer"),
        role_job("ps"),
        role_job("evaluator"),
    ]
    template["spec"]["successPolicy"] = {
        "operator": "All",
        "targetReplicatedJobs": ["chief"],
    }
    template["spec"]["failurePolicy"] = {"maxRestarts": 2}
    template["spec"] |= spec
    if annotations:
        template["metadata"] = {"annotations": annotations}
    return runtime


def trainjob(namespace, replicas=None, *, nodes=3, suspend=None, **trainer):
    job = support.trainjob(namespace, runtime="roles", numNodes=nodes, **{**PROGRAM, **trainer})
    if replicas is not None:
        job["spec"]["runtimePatches"] = [patch(replicas)]
    if suspend is not None:
        job["spec"]["suspend"] = suspend
    return job


def patch(replicas):
    metadata = {"annotations": {REPLICAS: replicas}}
    return {
        "manager": "example.com/roles",
        "trainingRuntimeSpec": {"template": {"metadata": metadata}},
    }


def jobset(cluster, namespace, name="mnist"):
    return cluster.wait(lambda: cluster.get("JobSet", name, namespace), what="the JobSet")


def counts(jobset):
    return {
        job["name"]: job["template"]["spec"]["completions"]
        for job in jobset["spec"]["replicatedJobs"]
    }


def by_role(pods):
    found: dict[str, list[support.Json]] = {}
    for pod in pods:
        found.setdefault(support.env(pod)["TF_TASK_TYPE"], []).append(pod)
    return found


def decided(jobset):
    return json.loads(jobset["metadata"]["annotations"]["tfadmit.dev/status"])


# --- one runtime, many clusters -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        (None, {"chief": 1, "worker": 3, "ps": 1, "evaluator": 1}),
        ("ps=2", {"chief": 1, "worker": 3, "ps": 2, "evaluator": 1}),
        ("ps=4, chief=1, evaluator=0", {"chief": 1, "worker": 3, "ps": 4}),
        ("chief=0,ps=0,evaluator=0", {"worker": 3}),
    ],
)
def test_a_trainjob_says_how_many_tasks_its_roles_have(cluster, namespace, replicas, expected):
    cluster.apply(roles_runtime(namespace))
    cluster.apply(trainjob(namespace, replicas))
    pods = support.pods(cluster, namespace, count=sum(expected.values()))
    roles = by_role(pods)
    assert {role: len(found) for role, found in roles.items()} == expected
    # every task has the same idea of the others, and its own address at its own index
    for pod in pods:
        config = support.tf_config(pod)
        role, index = config["task"]["type"], config["task"]["index"]
        members = {name: len(hosts) for name, hosts in config["cluster"].items()}
        seen = {name: count for name, count in expected.items() if name != "evaluator"}
        assert members == (expected if role == "evaluator" else seen)
        assert config["cluster"][role][index].startswith(f"{pod['spec']['hostname']}.mnist.")


def test_all_roles_run_the_trainjobs_program(cluster, namespace):
    cluster.apply(roles_runtime(namespace))
    env = [{"name": "EPOCHS", "value": "3"}, {"name": "TF_WORKER_PORT", "value": "2222"}]
    limits = {"limits": LIMITS, "requests": LIMITS}
    cluster.apply(trainjob(namespace, "ps=2", nodes=1, env=env, resourcesPerNode=limits))
    pods = support.pods(cluster, namespace, count=5)
    for pod in pods:
        (container,) = pod["spec"]["containers"]
        assert {name: container[name] for name in PROGRAM} == PROGRAM
        assert container["resources"]["limits"] == LIMITS
        assert support.env(pod)["EPOCHS"] == "3"
        addresses = [a for hosts in support.tf_config(pod)["cluster"].values() for a in hosts]
        assert {address.rpartition(":")[2] for address in addresses} == {"2222"}
    status = decided(jobset(cluster, namespace))
    assert status["roles"] == {"chief": 1, "worker": 1, "ps": 2, "evaluator": 1}
    fields = ["image", "command", "args", "resources", "env"]
    assert status["inherited"] == {"chief": fields, "ps": fields, "evaluator": fields}


def test_a_role_with_an_image_of_its_own_is_left_alone(cluster, namespace):
    jobs = [
        role_job("node", image="example.com/default", step="trainer"),
        role_job("ps", image="example.com/server", args=["--serve"]),
    ]
    success = {"operator": "All", "targetReplicatedJobs": ["node"]}
    cluster.apply(roles_runtime(namespace, jobs=jobs, successPolicy=success))
    cluster.apply(trainjob(namespace, nodes=1, env=[{"name": "EPOCHS", "value": "3"}]))
    servers = by_role(support.pods(cluster, namespace, count=2))["ps"]
    (container,) = servers[0]["spec"]["containers"]
    assert (container["image"], container["args"]) == ("example.com/server", ["--serve"])
    assert "command" not in container
    assert "EPOCHS" not in support.env(servers[0])
    assert "tfadmit.dev/status" not in jobset(cluster, namespace)["metadata"].get("annotations", {})


def test_the_runtime_may_state_the_number_and_the_trainjob_another(cluster, namespace):
    cluster.apply(roles_runtime(namespace, annotations={REPLICAS: "ps=3,evaluator=0"}))
    cluster.apply(trainjob(namespace, nodes=1))
    assert counts(jobset(cluster, namespace)) == {"chief": 1, "node": 1, "ps": 3}
    other = trainjob(namespace, "ps=2", nodes=1)
    other["metadata"]["name"] = "other"
    cluster.apply(other)
    found = jobset(cluster, namespace, "other")
    assert counts(found) == {"chief": 1, "node": 1, "ps": 2, "evaluator": 1}


def test_what_names_a_removed_role_follows(cluster, namespace):
    jobs = [
        role_job("ps"),
        {**role_job("chief"), "dependsOn": [{"name": "ps", "status": "Ready"}]},
        {
            **role_job("node", image="example.com/default", step="trainer"),
            "dependsOn": [{"name": name, "status": "Ready"} for name in ("ps", "chief")],
        },
        role_job("evaluator"),
    ]
    success = {"operator": "Any", "targetReplicatedJobs": ["chief", "evaluator"]}
    rules = [
        {"name": name, "action": "FailJobSet", "targetReplicatedJobs": targets}
        for name, targets in (("a", ["ps"]), ("b", ["evaluator", "chief"]), ("c", []))
    ]
    for rule in rules:
        rule["targetReplicatedJobs"] or rule.pop("targetReplicatedJobs")
    failure = {"maxRestarts": 1, "rules": rules}
    runtime = roles_runtime(namespace, jobs=jobs, successPolicy=success, failurePolicy=failure)
    cluster.apply(runtime)
    cluster.apply(trainjob(namespace, "ps=0,evaluator=0", nodes=2))
    spec = jobset(cluster, namespace)["spec"]
    chief, node = spec["replicatedJobs"]
    assert (chief["name"], node["name"]) == ("chief", "node")
    assert "dependsOn" not in chief
    assert [item["name"] for item in node["dependsOn"]] == ["chief"]
    assert spec["successPolicy"]["targetReplicatedJobs"] == ["chief"]
    assert [(r["name"], r.get("targetReplicatedJobs")) for r in spec["failurePolicy"]["rules"]] == [
        ("b", ["chief"]),
        ("c", None),
    ]


def test_the_end_of_the_chief_is_the_end_of_the_training_and_no_server_is_left(cluster, namespace):
    cluster.apply(roles_runtime(namespace))
    cluster.apply(trainjob(namespace, "ps=2,evaluator=0", nodes=2))
    support.pods(cluster, namespace, count=5)
    (chief,) = by_role(cluster.list("Pod", namespace))["chief"]
    ended = json.dumps({"status": {"phase": "Succeeded"}})
    arguments = ("patch", "pod", chief["metadata"]["name"], "-n", namespace, "-p", ended)
    cluster.kubectl(*arguments, "--subresource=status")
    job = cluster.wait(
        lambda: cluster.get("TrainJob", "mnist", namespace),
        until=lambda job: "Complete" in conditions(job),
        what="the TrainJob is complete",
    )
    assert "Failed" not in conditions(job)
    # its pod stays, with the logs
    (left,) = support.pods(cluster, namespace, count=1)
    assert left["metadata"]["uid"] == chief["metadata"]["uid"]


def test_without_a_success_policy_the_webhook_states_it(cluster, namespace):
    runtime = roles_runtime(namespace)
    del runtime["spec"]["template"]["spec"]["successPolicy"]
    cluster.apply(runtime)
    cluster.apply(trainjob(namespace, "evaluator=0", nodes=1))
    pods = phases.tasks(cluster, namespace, count=3)
    found = jobset(cluster, namespace)
    assert found["spec"]["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["chief"]}
    assert decided(found)["success"] == ["chief"]
    phases.end(cluster, pods["chief", 0], code=0)
    assert phases.ended(cluster, namespace, "mnist") == "Complete"


def conditions(job):
    found = job.get("status", {}).get("conditions") or []
    return {item["type"] for item in found if item["status"] == "True"}


# --- Trainer applies again and again ------------------------------------------------------------


def many_names():
    """A runtime in which everything names everything, in an order that removal changes."""
    jobs = [
        role_job("evaluator"),
        {**role_job("ps", count=2), "dependsOn": [{"name": "evaluator", "status": "Ready"}]},
        {**role_job("chief"), "dependsOn": [{"name": "ps", "status": "Ready"}]},
        role_job("node", image="example.com/default", step="trainer"),
    ]
    success = {"operator": "Any", "targetReplicatedJobs": ["evaluator", "chief"]}
    rule = {"name": "a", "action": "FailJobSet", "targetReplicatedJobs": ["evaluator"]}
    return {
        "jobs": jobs,
        "successPolicy": success,
        "failurePolicy": {"maxRestarts": 1, "rules": [rule]},
    }


@pytest.mark.parametrize("fields", [{}, many_names()], ids=["plain", "many names"])
def test_a_suspended_trainjob_settles_and_resumes_with_its_roles(
    cluster, namespace, tfadmit, fields
):
    cluster.apply(roles_runtime(namespace, **fields))
    cluster.apply(trainjob(namespace, "ps=4,evaluator=0", nodes=2, suspend=True))
    first = jobset(cluster, namespace)
    assert counts(first) == {"chief": 1, "node": 2, "ps": 4}
    asked = reviews(tfadmit, namespace)
    # each change of the TrainJob makes Trainer apply its JobSet again
    for number in range(5):
        labelled = f"n=n{number}"
        cluster.kubectl("label", "trainjob", "mnist", "-n", namespace, "--overwrite", labelled)
    settled = cluster.wait(
        lambda: unchanging(cluster, namespace), until=bool, what="Trainer has settled"
    )
    assert reviews(tfadmit, namespace) > asked
    assert settled["metadata"]["generation"] == first["metadata"]["generation"]
    assert settled["spec"] == first["spec"]
    # running, suspended while it runs, and running again
    for suspend, count in ((False, 7), (True, 0), (False, 7)):
        change_trainjob(cluster, namespace, suspend=suspend)
        wanted = 0 if suspend else starting(fields, count)
        pods = support.pods(cluster, namespace, count=wanted)
    if not fields:
        assert {role: len(found) for role, found in by_role(pods).items()} == {
            "chief": 1,
            "worker": 2,
            "ps": 4,
        }
    now = jobset(cluster, namespace)
    assert {**now["spec"], "suspend": True} == {**first["spec"], "suspend": True}
    assert troubles(cluster, namespace) == []


def starting(fields, count):
    """Without a kubelet nobody gets Ready, so who depends on others does not start."""
    return count - 1 if fields else count


def unchanging(cluster, namespace):
    """The JobSet, when nothing about it changes for a while."""
    before = cluster.get("JobSet", "mnist", namespace)
    time.sleep(2)
    after = cluster.get("JobSet", "mnist", namespace)
    same = before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    return after if same else None


def reviews(tfadmit, namespace):
    """How often the webhook was asked about the JobSet."""
    lines = [line for line in tfadmit.log.read_text().splitlines() if namespace in line]
    return sum("mutate-jobsets" in line for line in lines)


def change_trainjob(cluster, namespace, *, check=True, **spec):
    change = json.dumps({"spec": spec})
    arguments = ("patch", "trainjob", "mnist", "-n", namespace, "--type=merge", "-p", change)
    return cluster.kubectl(*arguments, check=check)


def troubles(cluster, namespace):
    return support.failures(cluster, namespace, text="reconciliation failed")


def trouble(cluster, namespace):
    """The first thing that Trainer says it could not do."""
    return cluster.wait(lambda: troubles(cluster, namespace), what="an event of Trainer's")[0]


def test_another_number_for_a_jobset_that_exists_is_refused_with_the_way_out(cluster, namespace):
    cluster.apply(roles_runtime(namespace))
    cluster.apply(trainjob(namespace, "ps=2", suspend=True))
    jobset(cluster, namespace)
    change_trainjob(cluster, namespace, runtimePatches=[patch("ps=4")])
    message = trouble(cluster, namespace)
    assert "(ps 2 to 4), and JobSet keeps the numbers that it was created with" in message
    assert "delete the TrainJob and create it again, or put back what it had" in message
    # taking the advice
    change_trainjob(cluster, namespace, runtimePatches=[patch("ps=2")], suspend=False)
    pods = support.pods(cluster, namespace, count=7)
    assert len(by_role(pods)["ps"]) == 2


def test_a_running_jobset_takes_labels_but_no_other_numbers(cluster, namespace):
    cluster.apply(roles_runtime(namespace))
    cluster.apply(trainjob(namespace, "ps=2", nodes=1))
    support.pods(cluster, namespace, count=5)
    before = jobset(cluster, namespace)["spec"]
    cluster.kubectl("label", "jobset", "mnist", "-n", namespace, "team=a")
    arguments = ("annotate", "jobset", "mnist", "-n", namespace, "--overwrite", f"{REPLICAS}=ps=3")
    refused = cluster.kubectl(*arguments, check=False)
    assert "(ps 2 to 3)" in refused.stderr
    assert jobset(cluster, namespace)["spec"] == before


def test_a_jobset_from_before_tfadmit_keeps_its_numbers(cluster, namespace):
    job = support.jobset(namespace, builders.make_replicated_job(), suspend=True)
    job["metadata"]["annotations"] = {REPLICAS: "worker=5"}
    cluster.apply(job)
    labelled = "trainer.kubeflow.org/framework=tensorflow"
    cluster.kubectl("label", "jobset", "mnist", "-n", namespace, labelled)
    wish = f"{REPLICAS}=worker=6"
    result = cluster.kubectl("annotate", "jobset", "mnist", "-n", namespace, "--overwrite", wish)
    assert "has no effect: this JobSet was created without it" in result.stderr
    assert counts(jobset(cluster, namespace)) == {"node": 3}


@pytest.mark.parametrize("remove", ["tfadmit.dev/status", "tfadmit.dev/replicas"])
def test_what_a_client_takes_from_a_suspended_jobset_changes_nothing(cluster, namespace, remove):
    cluster.apply(roles_runtime(namespace))
    cluster.apply(trainjob(namespace, "ps=4,evaluator=0", nodes=2, suspend=True))
    before = jobset(cluster, namespace)
    cluster.kubectl("annotate", "jobset", "mnist", "-n", namespace, f"{remove}-")
    assert decided(jobset(cluster, namespace)) == decided(before)
    change_trainjob(cluster, namespace, suspend=False)
    assert len(support.pods(cluster, namespace, count=7)) == 7
    assert jobset(cluster, namespace)["metadata"]["annotations"][REPLICAS] == "ps=4,evaluator=0"
    assert troubles(cluster, namespace) == []


def test_without_workers_the_others_still_run_the_program(cluster, namespace):
    cluster.apply(roles_runtime(namespace))
    cluster.apply(trainjob(namespace, "worker=0,ps=2,evaluator=0", nodes=0))
    pods = phases.tasks(cluster, namespace, count=3)
    assert sorted(pods) == [("chief", 0), ("ps", 0), ("ps", 1)]
    images = {pod["spec"]["containers"][0]["image"] for pod in pods.values()}
    assert images == {PROGRAM["image"]}
    phases.end(cluster, pods["chief", 0], code=0)
    assert phases.ended(cluster, namespace, "mnist") == "Complete"


def test_the_last_patch_states_the_numbers(cluster, namespace):
    cluster.apply(roles_runtime(namespace, annotations={REPLICAS: "ps=5"}))
    job = trainjob(namespace, "ps=4", nodes=1)
    job["spec"]["runtimePatches"].append({**patch("ps=2,chief=0"), "manager": "example.com/other"})
    cluster.apply(job)
    assert counts(jobset(cluster, namespace)) == {"node": 1, "ps": 2, "evaluator": 1}


def test_a_runtime_is_refused_for_numbers_that_no_jobset_can_have(cluster, namespace):
    runtime = roles_runtime(namespace, annotations={REPLICAS: "ps=2,boss=1"})
    result = support.applied(cluster, runtime)
    assert result.returncode == 1
    assert f"TFA020 spec.template.metadata.annotations[{REPLICAS}]" in result.stderr
    assert "there is no role 'boss'" in result.stderr


# --- without Trainer ----------------------------------------------------------------------------


def plain(namespace, *jobs, **annotations):
    content = support.jobset(namespace, *jobs)
    content["metadata"]["labels"] = builders.LABEL
    content["metadata"]["annotations"] = annotations
    return content


def test_a_jobset_of_ones_own_gets_the_success_policy_that_its_roles_need(cluster, namespace):
    jobs = [builders.make_replicated_job(name, completions=2) for name in ("ps", "worker")]
    cluster.apply(plain(namespace, *jobs, **{REPLICAS: "ps=1"}))
    found = jobset(cluster, namespace)
    assert found["spec"]["successPolicy"] == {
        "operator": "All",
        "targetReplicatedJobs": ["worker"],
    }
    assert decided(found) == {"v": 1, "roles": {"ps": 1, "worker": 2}, "success": ["worker"]}
    pods = support.pods(cluster, namespace, count=3)
    assert {role: len(found) for role, found in by_role(pods).items()} == {"ps": 1, "worker": 2}
    # kubectl diff and a second apply of the same file change nothing
    text = yaml.safe_dump(plain(namespace, *jobs, **{REPLICAS: "ps=1"}))
    again = cluster.kubectl(
        "apply", "--server-side", "--force-conflicts", "-f", "-", input=text, check=False
    )
    assert again.returncode == 0, again.stderr
    assert jobset(cluster, namespace)["spec"] == found["spec"]


def test_a_dry_run_shows_the_same_and_writes_nothing(cluster, namespace):
    content = plain(namespace, builders.make_replicated_job("worker"), **{REPLICAS: "worker=5"})
    (shown,) = cluster.apply(content, dry_run=True)
    assert cluster.list("JobSet", namespace) == []
    (made,) = cluster.apply(content)
    assert shown["spec"] == made["spec"]
    assert counts(made) == {"worker": 5}


@pytest.mark.parametrize(
    ("replicas", "sentence"),
    [
        ("ps=2", "no replicated job has the role ps (there are: worker)"),
        ("worker=-1", "'-1' is no number of tasks"),
        ("worker=0", "nobody would be left who trains"),
        ("chief=2", "TensorFlow allows one chief"),
        ("boss=1", "there is no role 'boss'"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_sentence(cluster, namespace, replicas, sentence):
    job = builders.make_replicated_job("worker")
    content = plain(namespace, job, **{REPLICAS: replicas})
    assert sentence in support.refusal(cluster, content)


# --- gangs --------------------------------------------------------------------------------------

GANGS = {
    "coscheduling": ("podgroups.scheduling.x-k8s.io", {"scheduleTimeoutSeconds": 60}),
    "volcano": ("podgroups.scheduling.volcano.sh", {}),
}


@pytest.fixture(params=GANGS)
def gang(request, cluster):
    """A gang scheduler's section of a runtime, and how to read the size of a PodGroup of its."""
    resource, fields = GANGS[request.param]
    if cluster.kubectl("get", resource, "-A", check=False).returncode:
        pytest.skip(f"the cluster serves no {resource}")

    def size(namespace):
        arguments = ("get", resource, "mnist", "-n", namespace, "-o", "json")
        found = cluster.wait(
            lambda: cluster.kubectl(*arguments, check=False),
            until=lambda result: result.returncode == 0,
            what="the PodGroup",
        )
        return json.loads(found.stdout)["spec"]["minMember"]

    return {request.param: fields}, size


def gang_runtime(namespace, policy, *, servers):
    jobs = [
        role_job("chief"),
        role_job("node", image="example.com/default", step="trainer"),
        role_job("ps", count=servers),
    ]
    runtime = roles_runtime(namespace, jobs=jobs)
    runtime["spec"]["podGroupPolicy"] = policy
    return runtime


@pytest.mark.parametrize("replicas", [None, "ps=2,chief=1"])
def test_a_pod_group_has_as_many_members_as_pods_come(cluster, namespace, gang, replicas):
    policy, size = gang
    cluster.apply(gang_runtime(namespace, policy, servers=2))
    cluster.apply(trainjob(namespace, replicas))
    support.pods(cluster, namespace, count=6)
    assert size(namespace) == 6
    assert troubles(cluster, namespace) == []


def test_another_number_than_the_pod_groups_is_refused_with_the_way_out(cluster, namespace, gang):
    policy, size = gang
    cluster.apply(gang_runtime(namespace, policy, servers=2))
    result = support.applied(cluster, trainjob(namespace, "ps=4"))
    assert "TFA025 spec.runtimePatches[0]" in result.stderr
    assert "it makes 8 pods, but Trainer makes a PodGroup of 6 from the runtime" in result.stderr
    assert "or use a runtime without podGroupPolicy" in result.stderr
    # the way out: the number in a runtime
    other = gang_runtime(namespace, policy, servers=4)
    other["metadata"]["name"] = "four"
    job = trainjob(namespace)
    job["spec"]["runtimeRef"]["name"] = "four"
    cluster.apply([other, job])
    support.pods(cluster, namespace, count=8)
    assert size(namespace) == 8


@pytest.mark.parametrize("mark", ["scheduling.x-k8s.io/pod-group", "scheduling.k8s.io/group-name"])
def test_a_trainjob_that_nobody_judged_is_stopped_at_its_jobset(cluster, namespace, mark):
    """TrainJobs pass while the webhook is down; their JobSets do not."""
    job = builders.make_replicated_job("worker", labels=builders.LABEL | {mark: "mnist"})
    job["template"]["spec"]["template"]["metadata"]["annotations"] = {mark: "mnist"}
    content = plain(namespace, job, **{REPLICAS: "worker=5"})
    assert "it makes 5 pods, but Trainer makes a PodGroup of 3" in support.refusal(cluster, content)


# --- at kubectl apply ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "sentence"),
    [
        ("worker=5", "the role worker has 3 tasks by numNodes, not 5"),
        ("chief=2", "TensorFlow allows one chief"),
        ("boss=1", "there is no role 'boss'"),
    ],
)
def test_a_trainjob_is_refused_before_it_is_stored(cluster, namespace, replicas, sentence):
    cluster.apply(roles_runtime(namespace))
    result = support.applied(cluster, trainjob(namespace, replicas))
    assert result.returncode == 1
    assert "TFA025 spec.runtimePatches[0]" in result.stderr
    assert sentence in result.stderr
    assert cluster.list("TrainJob", namespace) == []


def test_names_are_measured_with_the_numbers_that_come(cluster, namespace):
    cluster.apply(roles_runtime(namespace))
    # Of 63 characters -evaluator-0-0-abcde takes 20, -chief-0-0-abcde 16, -ps-0-99989-abcde 17.
    job = trainjob(namespace)
    job["metadata"]["name"] = "m" * 47
    assert "TFA014" in support.applied(cluster, job, dry_run=True).stderr
    job["spec"]["runtimePatches"] = [patch("evaluator=0")]
    assert support.applied(cluster, job, dry_run=True).returncode == 0
    job["spec"]["runtimePatches"] = [patch("evaluator=0,ps=99990")]
    assert "TFA014" in support.applied(cluster, job, dry_run=True).stderr


def test_a_trainjob_in_a_queue_keeps_the_numbers_that_kueue_counts(cluster, namespace):
    cluster.apply(roles_runtime(namespace))
    job = trainjob(namespace, "ps=4", suspend=True)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    refused = support.applied(cluster, job)
    assert "Kueue admits a TrainJob by the numbers of its runtime" in refused.stderr
    job["spec"]["runtimePatches"] = [patch("ps=1")]
    assert support.applied(cluster, job).returncode == 0


def test_an_annotation_of_the_trainjob_itself_is_warned_of(cluster, namespace):
    cluster.apply(roles_runtime(namespace))
    job = trainjob(namespace)
    job["metadata"]["annotations"] = {REPLICAS: "ps=4"}
    result = support.applied(cluster, job)
    assert result.returncode == 0
    assert (
        "Warning: TFA025 metadata.annotations[tfadmit.dev/replicas] has no effect" in result.stderr
    )
    assert counts(jobset(cluster, namespace))["ps"] == 1
