"""JobSets at admission: sizes, programs and policies of roles, by literal objects."""

import copy
import json

import pytest

import admission
import builders
from builders import make_container, make_replicated_job
from tfadmit_webhook.decision import Reason

PATH = "/mutate/jobsets"
REPLICAS = "tfadmit.dev/replicas"
STATUS = "tfadmit.dev/status"
STEP = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
GPU = {"limits": {"nvidia.com/gpu": "1"}}


def job(name, count=1, *, step=False, container=None, **fields):
    """A replicated job of Trainer's; without a container of its own it is a placeholder."""
    made = make_replicated_job(
        name, completions=count, containers=[container or {"name": "node"}], **fields
    )
    if step:
        made["template"]["metadata"] = {"labels": STEP}
    return made


def node(count=2, **container):
    return job("node", count, step=True, container=make_container(**container))


def jobset(*jobs, replicas=None, **spec):
    content = builders.make_jobset(*jobs)
    content["metadata"]["labels"] = builders.LABEL
    if replicas is not None:
        content["metadata"]["annotations"] = {REPLICAS: replicas}
    content["spec"] |= spec
    return content


def roles(**fields):
    return jobset(job("chief"), node(), job("ps"), job("evaluator"), **fields)


def admitted(content, **request):
    return admission.admit(content, path=PATH, **request)


def refused(content, **request):
    decision = admission.decide(PATH, content, **request)
    assert not decision.allowed
    assert decision.code == 403
    assert "Traceback" not in decision.message
    return decision


def counts(content):
    return {
        item["name"]: (item["replicas"], item["template"]["spec"]["completions"])
        for item in content["spec"]["replicatedJobs"]
    }


def container(content, name):
    (found,) = [item for item in content["spec"]["replicatedJobs"] if item["name"] == name]
    return found["template"]["spec"]["template"]["spec"]["containers"][0]


def status(content):
    return json.loads(content["metadata"]["annotations"][STATUS])


# --- the sizes of roles ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "expected"),
    [
        ("ps=2", {"chief": (1, 1), "node": (1, 2), "ps": (1, 2), "evaluator": (1, 1)}),
        (" ps = 4 , evaluator=0 ", {"chief": (1, 1), "node": (1, 2), "ps": (1, 4)}),
        ("ps=1,chief=1,worker=2,evaluator=1", None),
        ("master=0", {"node": (1, 2), "ps": (1, 1), "evaluator": (1, 1)}),
        ("chief=0,ps=0,evaluator=0", {"node": (1, 2)}),
        ("", None),
        ("  ", None),
    ],
)
def test_the_annotation_sizes_roles(replicas, expected):
    before = roles(replicas=replicas)
    after = admitted(before)
    assert counts(after) == (expected or counts(before))
    for item in after["spec"]["replicatedJobs"]:
        spec = item["template"]["spec"]
        assert spec["parallelism"] == spec["completions"]


def test_a_role_in_many_jobs_keeps_its_form():
    content = jobset(node(), make_replicated_job("ps", replicas=2, completions=1), replicas="ps=5")
    assert counts(admitted(content))["ps"] == (5, 1)
    content = jobset(node(), make_replicated_job("ps", replicas=2, completions=3), replicas="ps=9")
    assert counts(admitted(content))["ps"] == (3, 3)


def test_absent_and_null_numbers_are_stated():
    content = jobset(node(), job("ps"), replicas="ps=2")
    spec = content["spec"]["replicatedJobs"][1]["template"]["spec"]
    spec["completions"] = None
    del spec["parallelism"]
    assert counts(admitted(content))["ps"] == (1, 2)


def test_tasks_that_are_asked_for_run_all_at_once():
    content = jobset(node(), job("ps", 3), replicas="ps=3")
    content["spec"]["replicatedJobs"][1]["template"]["spec"]["parallelism"] = 1
    after = admitted(content)
    assert after["spec"]["replicatedJobs"][1]["template"]["spec"]["parallelism"] == 3


def test_helpers_that_are_no_tasks_stay_as_they_are():
    helper = make_replicated_job("ps", labels={}, completions=1)
    content = jobset(helper, node(), replicas="ps=0")
    assert counts(admitted(content)) == counts(content)


@pytest.mark.parametrize(
    ("replicas", "why"),
    [
        ("ps", "'ps' is not role=number"),
        ("ps=", "'ps=' is not role=number"),
        ("=2", "'=2' is not role=number"),
        ("ps=2,,", "'' is not role=number"),
        ("ps=-1", "'-1' is no number of tasks from 0 to 100,000"),
        ("ps=two", "'two' is no number of tasks"),
        ("ps=1.5", "'1.5' is no number of tasks"),
        ("ps=²", "'²' is no number of tasks"),
        ("ps=100001", "'100001' is no number of tasks"),
        ("ps=2,ps=3", "it states ps twice"),
        ("chief=1,master=1", "it states chief twice"),
        ("PS=2", "there is no role 'PS'; fix: one of chief, worker, ps, evaluator"),
        ("boss=1", "there is no role 'boss'"),
        ("chief=2", "TensorFlow allows one chief; fix: chief=1"),
        ("evaluator=2", "TensorFlow allows one evaluator"),
        ("worker=3", "the role worker has 2 tasks by numNodes, not 3; fix: set spec.trainer.num"),
        ("worker=0", "the role worker has 2 tasks by numNodes, not 0"),
        ("ps=100000", "100,004 tasks are more than 100,000"),
    ],
)  # fmt: skip
def test_what_is_no_number_of_tasks_is_refused_with_the_way_out(replicas, why):
    decision = refused(roles(replicas=replicas))
    assert decision.reason is Reason.ANNOTATION_INVALID
    assert decision.message.startswith(f"annotation tfadmit.dev/replicas is {replicas!r}: {why}")
    assert "; fix: " in decision.message


def test_a_long_text_is_not_repeated_in_full():
    assert len(refused(roles(replicas="ps=2," * 50_000)).message) < 400


def test_a_role_that_no_job_has_is_refused_unless_there_shall_be_none():
    content = jobset(node(), replicas="ps=1")
    assert "no replicated job has the role ps (there are: worker)" in refused(content).message
    assert counts(admitted(jobset(node(), replicas="ps=0"))) == {"node": (1, 2)}


def test_a_role_in_several_jobs_is_not_guessed():
    servers = [
        make_replicated_job(name, completions=1, labels=builders.LABEL | {"tfadmit.dev/role": "ps"})
        for name in ("ps-a", "ps-b")
    ]
    message = refused(jobset(node(), *servers, replicas="ps=3")).message
    assert "several replicated jobs (ps-a, ps-b)" in message
    assert counts(admitted(jobset(node(), *servers, replicas="ps=0"))) == {"node": (1, 2)}
    assert len(counts(admitted(jobset(node(), *servers, replicas="ps=2")))) == 3


def test_a_number_that_does_not_fill_the_jobs_is_refused_with_the_next_one():
    content = jobset(node(), make_replicated_job("ps", replicas=2, completions=3), replicas="ps=4")
    assert "fix: ps=6, for example" in refused(content).message


def test_nobody_left_who_trains_is_refused():
    content = jobset(make_replicated_job("chief"), make_replicated_job("ps"), replicas="chief=0")
    content["spec"]["replicatedJobs"][0]["template"]["spec"]["completions"] = 1
    assert "nobody would be left who trains" in refused(content).message


@pytest.mark.parametrize(
    "replicas",
    [
        *(
            "PS=2",
            "ps=2,",
            ",",
            "ps=1, ,chief=1",
            "=2",
            "ps",
            "ps:2",
            "null",
            '{"ps": 2}',
            "ps\uff1d2",
        ),
        *("ps==2", "ps=2=3", "ps=+2", "ps=-0", "ps=2.0", "ps=1e3", "ps=0x2", "ps=٢", "ps=²"),
        *(
            "ps=2\u200b",
            "ps=2;chief=1",
            "ps=2\nchief=1",
            "ps=100001",
            "ps=" + "9" * 5000,
            "x" * 5000,
            "x" * 5000 + "=1",
            "ps=\0",
        ),
        *("workers=2", "node=2", "\u0440s=2", "master=1,chief=1", "ps=1,ps=1", "evaluator=2"),
    ],
    ids=lambda text: repr(text[:20]),
)
def test_nonsense_is_refused_in_one_short_line(replicas):
    decision = refused(roles(replicas=replicas))
    assert decision.reason is Reason.ANNOTATION_INVALID
    assert "\n" not in decision.message
    assert len(decision.message) < 400


@pytest.mark.parametrize("value", [None, 3, {}, [], True])
def test_an_annotation_that_is_no_text_is_the_api_servers_to_refuse(value):
    content = roles()
    content["metadata"]["annotations"] = {REPLICAS: value}
    assert counts(admitted(content)) == counts(content)


def test_the_trainer_step_stays_without_workers():
    """The others run its program."""
    content = jobset(job("chief"), node(0, image="mine:1"), job("ps"), replicas="worker=0,ps=2")
    after = admitted(content)
    assert counts(after) == {"chief": (1, 1), "node": (1, 0), "ps": (1, 2)}
    assert container(after, "chief")["image"] == container(after, "ps")["image"] == "mine:1"


def test_null_entries_keep_their_places():
    content = roles(replicas="evaluator=0,chief=0")
    jobs = content["spec"]["replicatedJobs"]
    jobs[1]["dependsOn"] = [None, {"name": "chief"}, {"name": None}]
    content["spec"]["replicatedJobs"] = [None, *jobs]
    content["spec"]["failurePolicy"] = {"rules": [None, {"targetReplicatedJobs": ["chief", None]}]}
    content["spec"]["successPolicy"] = {
        "operator": "All",
        "targetReplicatedJobs": [None, "chief", "node"],
    }
    spec = admitted(content)["spec"]
    assert spec["replicatedJobs"][0] is None
    assert [item["name"] for item in spec["replicatedJobs"][1:]] == ["node", "ps"]
    assert spec["replicatedJobs"][1]["dependsOn"] == [None, {"name": None}]
    assert spec["failurePolicy"]["rules"] == [None, {"targetReplicatedJobs": [None]}]
    assert spec["successPolicy"]["targetReplicatedJobs"] == ["node"]


# --- what other roles take over -------------------------------------------------------------------


def test_a_container_without_an_image_runs_the_trainer_steps_program():
    env = [{"name": "EPOCHS", "value": "3"}]
    content = jobset(
        job("chief"), node(image="mine:1", command=["c"], args=["a"], env=env, resources=GPU)
    )
    after = admitted(content)
    assert container(after, "chief") == {
        "name": "node",
        "image": "mine:1",
        "command": ["c"],
        "args": ["a"],
        "resources": GPU,
        "env": env,
    }
    assert status(after) == {
        "v": 1,
        "inherited": {"chief": ["image", "command", "args", "resources", "env"]},
    }
    assert container(after, "node") == container(content, "node")


def test_a_container_with_an_image_is_the_runtimes_own():
    own = make_container(image="server:1")
    content = jobset(
        job("ps", container=own), node(command=["c"], env=[{"name": "A"}]), job("chief")
    )
    assert container(admitted(content), "ps") == own


@pytest.mark.parametrize("named", ["helper,node", "helper"])
def test_the_program_is_that_of_the_container_that_trainer_writes_into(named):
    step = node(image="mine:1")
    pod = step["template"]["spec"]["template"]
    pod["spec"]["containers"].insert(0, {"name": "helper", "image": "helper:1"})
    pod["metadata"]["annotations"] = {"tfadmit.dev/containers": named}
    assert container(admitted(jobset(step, job("ps"))), "ps")["image"] == "mine:1"


def test_what_a_placeholder_states_wins():
    own = {
        "name": "tensorflow",
        "args": ["--serve"],
        "env": [{"name": "A", "value": "own"}],
        "resources": {"requests": {"cpu": "1"}},
    }
    env = [{"name": "B", "value": "$(A)"}, {"name": "A", "value": "theirs"}]
    given = node(image="mine:1", command=["c"], args=["a"], env=env, resources=GPU)
    after = container(admitted(jobset(given, job("ps", container=own))), "ps")
    assert after == {**own, "image": "mine:1", "env": [env[0], *own["env"]]}


@pytest.mark.parametrize("nothing", [None, {}, {"limits": None}, {"limits": {}}])
def test_resources_of_nothing_are_none(nothing):
    placeholder = {"name": "node", "image": "", "env": None, "resources": nothing}
    after = admitted(jobset(node(resources=GPU), job("ps", container=placeholder)))
    assert container(after, "ps")["resources"]["limits"] == GPU["limits"]


def test_variables_of_one_task_are_not_taken_over():
    names = [
        *("TF_CONFIG", "TF_TASK_TYPE", "TF_TASK_INDEX", "TFADMIT_CLUSTER", "TF_WORKER_HOSTS"),
        *("JOB_COMPLETION_INDEX", "KUBEFLOW_TRAINER_SERVER_URL", "KUBEFLOW_TRAINER_SERVER_TOKEN"),
    ]
    env = [{"name": name, "value": "x"} for name in (*names, "EPOCHS")]
    after = admitted(jobset(node(env=env), job("ps")))
    assert container(after, "ps")["env"] == [{"name": "EPOCHS", "value": "x"}]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [{"name": "TF_WORKER_PORT", "value": "1111"}]),
        ({"annotations": {"tfadmit.dev/port": "2222"}}, None),
        (
            {"container": {"name": "node", "ports": [{"name": "tfjob-port", "containerPort": 1}]}},
            None,
        ),
    ],
)
def test_a_port_that_a_role_states_is_not_overruled(fields, expected):
    env = [{"name": "TF_WORKER_PORT", "value": "1111"}]
    after = admitted(jobset(node(env=env), job("ps", **fields)))
    assert container(after, "ps").get("env") == expected


def test_without_a_trainer_step_nobody_takes_over_anything():
    content = jobset(make_replicated_job("worker"), job("chief"))
    assert admitted(content) == content


def test_a_step_without_an_image_has_nothing_to_give():
    content = jobset(job("node", step=True), job("chief"))
    assert admitted(content) == content


# --- what names the roles -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "policy", "expected"),
    [
        (("chief", "worker", "ps"), None, ["chief"]),
        (("worker", "ps"), None, ["worker"]),
        (("worker", "evaluator"), {"operator": "All"}, ["worker"]),
        (("worker", "ps"), {"operator": "All", "targetReplicatedJobs": []}, ["worker"]),
        (("worker", "ps"), {"operator": "All", "targetReplicatedJobs": None}, ["worker"]),
        (("worker", "ps"), {"operator": "Any"}, None),
        (("worker", "ps"), {"operator": "All", "targetReplicatedJobs": ["ps"]}, None),
        (("worker",), None, None),
        (("chief", "worker"), None, None),
    ],
)
def test_roles_that_never_end_need_a_success_policy(names, policy, expected):
    content = jobset(*(make_replicated_job(name, completions=1) for name in names))
    if policy is not None:
        content["spec"]["successPolicy"] = policy
    after = admitted(content)
    if expected is None:
        assert after == content
        return
    assert after["spec"]["successPolicy"] == {"operator": "All", "targetReplicatedJobs": expected}
    assert status(after) == {"v": 1, "success": expected}


@pytest.mark.parametrize(
    ("targets", "replicas", "expected"),
    [
        (["chief", "evaluator"], "evaluator=0", ["chief"]),
        (["evaluator"], "evaluator=0", ["chief"]),
        (["chief"], "chief=0", ["node"]),
        (["chief", "node"], "evaluator=0,ps=0", ["chief", "node"]),
    ],
)
def test_the_success_policy_follows(targets, replicas, expected):
    policy = {"operator": "All", "targetReplicatedJobs": targets}
    after = admitted(roles(replicas=replicas, successPolicy=policy))
    assert after["spec"]["successPolicy"] == {"operator": "All", "targetReplicatedJobs": expected}


def test_what_waits_for_a_removed_role_waits_no_more():
    content = roles(replicas="chief=0,evaluator=0")
    *_, ps, evaluator = content["spec"]["replicatedJobs"]
    ps["dependsOn"] = [{"name": name} for name in ("chief", "node", "evaluator")]
    evaluator["dependsOn"] = [{"name": "chief"}]
    content["spec"]["replicatedJobs"][1]["dependsOn"] = [{"name": "chief"}]
    first, second = admitted(content)["spec"]["replicatedJobs"]
    assert "dependsOn" not in first
    assert second["dependsOn"] == [{"name": "node"}]


def test_failure_rules_about_a_removed_role_go_and_others_stay():
    rules = [
        {"name": "a", "targetReplicatedJobs": ["ps"]},
        {"name": "b", "targetReplicatedJobs": ["ps", "node", "evaluator"]},
        {"name": "c"},
        {"name": "d", "targetReplicatedJobs": ["evaluator"]},
    ]
    content = roles(replicas="ps=0,evaluator=0", failurePolicy={"maxRestarts": 1, "rules": rules})
    policy = admitted(content)["spec"]["failurePolicy"]
    assert policy == {
        "maxRestarts": 1,
        "rules": [{"name": "b", "targetReplicatedJobs": ["node"]}, {"name": "c"}],
    }


def test_a_failure_policy_without_a_rule_left_has_no_list():
    rules = [{"name": "a", "targetReplicatedJobs": ["ps"]}]
    content = roles(replicas="ps=0", failurePolicy={"maxRestarts": 1, "rules": rules})
    assert admitted(content)["spec"]["failurePolicy"] == {"maxRestarts": 1}


def test_a_coordinator_is_not_taken_away():
    content = roles(replicas="chief=0", coordinator={"replicatedJob": "chief"})
    decision = refused(content)
    assert decision.reason is Reason.CANNOT_FOLLOW
    assert "spec.coordinator names the replicated job 'chief'" in decision.message


# --- gangs ----------------------------------------------------------------------------------------


@pytest.fixture(params=["coscheduling", "volcano"])
def gang(request):
    def marked(content):
        for item in content["spec"]["replicatedJobs"]:
            metadata = item["template"]["spec"]["template"]["metadata"]
            if request.param == "volcano":
                metadata["annotations"] = {"scheduling.k8s.io/group-name": "mnist"}
            else:
                metadata["labels"] = {
                    **metadata["labels"],
                    "scheduling.x-k8s.io/pod-group": "mnist",
                }
        return content

    return marked


def test_a_gang_keeps_the_number_of_its_pod_group(gang):
    decision = refused(gang(roles(replicas="ps=4")))
    assert decision.reason is Reason.CANNOT_FOLLOW
    assert "it makes 8 pods, but Trainer makes a PodGroup of 5 from the runtime" in decision.message
    assert "fix: state the numbers as `parallelism`" in decision.message


@pytest.mark.parametrize("replicas", [None, "ps=1,worker=2", "ps=2,evaluator=0"])
def test_a_gang_may_have_numbers_of_the_same_sum(gang, replicas):
    after = admitted(gang(roles(replicas=replicas)))
    assert sum(count for _, count in counts(after).values()) == 5


def test_a_jobset_of_a_trainjob_in_a_queue_keeps_the_numbers_that_kueue_counted():
    content = roles(replicas="ps=4")
    content["metadata"]["labels"] = {**builders.LABEL, "kueue.x-k8s.io/queue-name": "team"}
    assert counts(admitted(content))["ps"] == (1, 4)
    content["metadata"]["ownerReferences"] = [{"kind": "TrainJob", "name": "mnist"}]
    decision = refused(content)
    assert decision.reason is Reason.CANNOT_FOLLOW
    assert "Kueue admits a TrainJob by the numbers of its runtime" in decision.message
    content["metadata"]["annotations"] = {REPLICAS: "ps=1"}
    assert counts(admitted(content))["ps"] == (1, 1)


# --- updates --------------------------------------------------------------------------------------


def shaped(**fields):
    """A JobSet as it was created, and what Trainer applies again: the runtime's numbers, merged."""
    sent = roles(**fields)
    live = admitted(sent)
    again = copy.deepcopy(live)
    for item in sent["spec"]["replicatedJobs"]:
        kept = [one for one in again["spec"]["replicatedJobs"] if one["name"] == item["name"]]
        if kept:
            number = item["template"]["spec"]["completions"]
            kept[0]["template"]["spec"] |= {"completions": number, "parallelism": number}
        else:
            again["spec"]["replicatedJobs"].append(copy.deepcopy(item))
    again["spec"] |= {key: sent["spec"][key] for key in sent["spec"] if key.endswith("Policy")}
    return live, again


@pytest.mark.parametrize("suspend", [True, False])
@pytest.mark.parametrize("replicas", ["ps=4", "ps=4,evaluator=0", "evaluator=0,chief=0"])
def test_an_apply_of_the_same_comes_out_as_it_was(replicas, suspend):
    policy = {"operator": "All", "targetReplicatedJobs": ["chief", "evaluator"]}
    live, again = shaped(replicas=replicas, successPolicy=policy)
    again["spec"]["suspend"] = suspend
    after = admitted(again, operation="UPDATE", old=live)
    assert after == {**live, "spec": {**live["spec"], "suspend": suspend}}


def test_an_update_brings_back_a_status_that_a_client_dropped():
    live, again = shaped(replicas="ps=4")
    del again["metadata"]["annotations"][STATUS]
    assert admitted(again, operation="UPDATE", old=live) == live


@pytest.mark.parametrize("mark", [None, "forged"])
def test_the_status_comes_back_when_nothing_else_changes(mark):
    """Without it Trainer's next apply would look like one of a JobSet from before tfadmit."""
    live, _ = shaped(replicas="ps=4")
    changed = copy.deepcopy(live)
    changed["metadata"]["annotations"] |= {STATUS: mark} if mark else {}
    if not mark:
        del changed["metadata"]["annotations"][STATUS]
    assert admitted(changed, operation="UPDATE", old=live) == live


def test_other_numbers_than_at_creation_are_refused():
    live, again = shaped(replicas="ps=4,evaluator=0")
    again["metadata"]["annotations"][REPLICAS] = "ps=2"
    decision = refused(again, operation="UPDATE", old=live)
    assert decision.reason is Reason.CANNOT_FOLLOW
    assert decision.message == (
        "tfadmit.dev/replicas: 'ps=2' would change JobSet 'mnist' (ps 4 to 2, evaluator 0 to 1), "
        "and JobSet keeps the numbers that it was created with: delete the TrainJob and create it "
        "again, or put back what it had"
    )
    del again["metadata"]["annotations"][REPLICAS]
    assert "its jobs would change" in refused(again, operation="UPDATE", old=live).message


def test_an_update_takes_over_nothing_that_creation_did_not():
    live, again = shaped(replicas="ps=4")
    step = again["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]
    step["containers"][0]["env"] = [{"name": "LATE", "value": "1"}]
    after = admitted(again, operation="UPDATE", old=live)
    assert "env" not in container(after, "ps")


def test_a_jobset_that_we_did_not_shape_is_left_alone():
    old = jobset(job("chief"), node())
    new = copy.deepcopy(old)
    new["spec"]["suspend"] = True
    decision = admission.decide(PATH, new, operation="UPDATE", old=old)
    assert (decision.reason, list(decision.patch)) == (Reason.NOT_SHAPED, [])
    assert decision.warnings == []
    new["metadata"]["annotations"] = {REPLICAS: "chief=0"}
    decision = admission.decide(PATH, new, operation="UPDATE", old=old)
    assert "has no effect: this JobSet was created without it" in decision.warnings[0]


def test_an_update_that_changes_no_spec_is_not_looked_at():
    live, _ = shaped(replicas="ps=4")
    changed = copy.deepcopy(live)
    changed["metadata"]["labels"] = {**builders.LABEL, "team": "a"}
    decision = admission.decide(PATH, changed, operation="UPDATE", old=live)
    assert decision.reason is Reason.SPEC_UNCHANGED


def test_what_is_being_deleted_may_go():
    live, again = shaped(replicas="ps=4")
    again["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    decision = admission.decide(PATH, again, operation="UPDATE", old=live)
    assert decision.reason is Reason.BEING_DELETED


def test_a_jobset_of_another_framework_is_not_ours():
    content = roles(replicas="ps=4")
    content["metadata"]["labels"] = {}
    assert admission.decide(PATH, content).reason is Reason.NOT_OURS


# --- the patch ------------------------------------------------------------------------------------


def test_twice_is_once_and_a_dry_run_is_the_same():
    content = roles(replicas="ps=4,evaluator=0")
    once = admitted(content)
    second = admission.decide(PATH, once)
    assert (second.reason, list(second.patch)) == (Reason.COMPLETE, [])
    assert list(admission.decide(PATH, content, dry_run=True).patch) == list(
        admission.decide(PATH, content).patch
    )
    assert status(once) == {
        "v": 1,
        "roles": {"chief": 1, "worker": 2, "ps": 4},
        "inherited": {"chief": ["image"], "ps": ["image"]},
        "success": ["chief"],
    }


def test_the_patch_is_minimal():
    content = jobset(node(), job("ps", container=make_container()), replicas="ps=2")
    content["spec"]["successPolicy"] = {"operator": "All", "targetReplicatedJobs": ["node"]}
    patch = admission.decide(PATH, content).patch
    spec = "/spec/replicatedJobs/1/template/spec"
    assert [(item["op"], item["path"]) for item in patch] == [
        ("replace", f"{spec}/parallelism"),
        ("replace", f"{spec}/completions"),
        ("add", "/metadata/annotations/tfadmit.dev~1status"),
    ]


def test_nothing_to_decide_leaves_no_trace():
    content = jobset(node())
    assert admitted(content) == content
