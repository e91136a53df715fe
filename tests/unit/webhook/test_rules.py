"""The corners of each rule; its plain case is the example that ships with it."""

import copy
import pathlib

import pytest
import yaml

import admission
from builders import LABEL, make_container, make_runtime, make_trainer_job
from tfadmit_webhook import policy
from tfadmit_webhook.settings import Settings

ROOT = pathlib.Path(__file__).parents[3]
POD = ("template", "spec", "template")


def change(content, path, value):
    """The object with a value at a path; None removes it."""
    copied = copy.deepcopy(content)
    target = copied
    for step in path[:-1]:
        target = target[step] if isinstance(step, int) else target.setdefault(step, {})
    if value is None:
        target.pop(path[-1], None)
    else:
        target[path[-1]] = value
    return copied


def role(name, **spec):
    job = make_trainer_job(name, step=None)
    job["template"]["spec"] |= spec
    return job


def runtime(*jobs, **spec):
    content = make_runtime(*(jobs or (make_trainer_job(),)))
    content["spec"]["template"]["spec"] |= spec
    return content


def found(content, rule, settings=None):
    labelled = admission.admit(content, path="/mutate/runtimes")
    judged = policy.judge_runtime(labelled, settings=settings or Settings())
    return [(item.level, item.sentence) for item in judged if item.rule.id == rule]


def pod_of(name, **fields):
    return {"metadata": {"labels": LABEL}, "spec": {"containers": [make_container(name, **fields)]}}


def with_exit_codes(container, name="node"):
    job = make_trainer_job(name)
    codes = {"containerName": container, "operator": "In", "values": [1]}
    rules = [{"action": "Ignore", "onPodConditions": []}, {"onExitCodes": codes}]
    job["template"]["spec"]["podFailurePolicy"] = {"rules": rules}
    job["template"]["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    return job


def restarts(policy, *, rules=False, name="node"):
    job = make_trainer_job(name, step="trainer" if name == "node" else None)
    job["template"]["spec"]["template"]["spec"]["restartPolicy"] = policy
    if rules:
        job["template"]["spec"]["podFailurePolicy"] = {"rules": []}
    return job


def depends(name, other, status="Complete"):
    return change(role(name), ("dependsOn",), [{"name": other, "status": status}])


def success(operator, *names):
    return {"operator": operator, "targetReplicatedJobs": list(names)}


ENDS = {"successPolicy": success("All", "node")}
PS = (make_trainer_job(), role("ps"))


@pytest.mark.parametrize(
    ("rule", "content"),
    [
        # Trainer writes both counts of its own step
        ("TFA003", runtime(change(make_trainer_job(), ("template", "spec", "parallelism"), 7))),
        ("TFA003", runtime(make_trainer_job(), role("ps", parallelism=3))),
        ("TFA003", runtime(role("dataset-initializer", completionMode="NonIndexed"))),
        ("TFA004", change(runtime(), ("spec", "mlPolicy"), {"numNodes": 4, "torch": None})),
        ("TFA006", runtime(make_trainer_job(), role("master"))),
        ("TFA007", runtime(make_trainer_job(), role("chief"))),
        ("TFA007", runtime(*PS, **ENDS)),
        ("TFA007", runtime(*PS, successPolicy=success("Any", "node", "ps"))),
        # the webhook names who ends, when the JobSet is created
        ("TFA007", runtime(*PS)),
        ("TFA007", runtime(*PS, successPolicy=success("All"))),
        ("TFA007", runtime(*PS, successPolicy={"operator": "Any"})),
        # a helper is no task; its retries are nobody's business
        ("TFA008", runtime(make_trainer_job(), role("dataset-initializer", backoffLimit=3))),
        ("TFA009", runtime(change(make_trainer_job(), ("dependsOn",), [{"name": "x"}]))),
        ("TFA009", change(runtime(), ("spec", "podGroupPolicy"), {"volcano": None})),
        ("TFA018", runtime(with_exit_codes("node"))),
        ("TFA018", runtime(with_exit_codes(None))),
        ("TFA018", runtime(coordinator={"replicatedJob": "node"}, **ENDS)),
        ("TFA018", runtime(role("ps"), depends("node", "ps", "Ready"))),
        ("TFA019", runtime(restarts(None))),
        ("TFA019", runtime(restarts("OnFailure"))),
        ("TFA019", runtime(restarts("Never", rules=True))),
        ("TFA021", runtime()),
        ("TFA022", runtime(role("chief"), depends("node", "chief", "Ready"))),
        ("TFA022", runtime(role("dataset-initializer"), depends("node", "dataset-initializer"))),
        # it evaluates what the training has left
        ("TFA022", runtime(make_trainer_job(), depends("evaluator", "node"))),
        ("TFA024", runtime(make_trainer_job(), role("ps", template=pod_of("tensorflow")))),
    ],
)
def test_what_is_right_is_no_finding(rule, content):
    assert found(content, rule) == []


@pytest.mark.parametrize(
    ("rule", "level", "content", "words"),
    [
        ("TFA003", "deny", runtime(make_trainer_job(), role("ps", completions=2)), "parallelism"),
        ("TFA004", "warn", change(runtime(), ("spec", "mlPolicy"), None), "cannot list any"),
        ("TFA004", "deny", change(runtime(), ("spec", "mlPolicy", "mpi"), {"x": 1}), "mpi is set"),
        # an empty section counts: its presence is what Trainer looks at
        ("TFA004", "deny", change(runtime(), ("spec", "mlPolicy", "jax"), {}), "jax is set"),
        ("TFA005", "deny", runtime(role("worker")), "no trainer step"),
        ("TFA005", "warn", runtime(make_trainer_job("worker")), "'node' only"),
        ("TFA006", "deny", runtime(make_trainer_job(), role("chief"), role("master")), "2 chief"),
        ("TFA006", "deny", runtime(role("ps")), "nobody who trains"),
        (
            "TFA007",
            "deny",
            runtime(*PS, successPolicy=success("All", "node", "ps")),
            "does not end",
        ),
        ("TFA007", "deny", runtime(*PS, successPolicy=success("Any", "ps")), "does not end"),
        # the fix names who ends: with a chief, workers serve it
        (
            "TFA007",
            "deny",
            runtime(role("chief"), *PS, successPolicy=success("All", "ps")),
            "targetReplicatedJobs: [chief]}`",
        ),
        # it may be wanted for a last evaluation
        (
            "TFA007",
            "warn",
            runtime(
                make_trainer_job(),
                role("evaluator"),
                successPolicy=success("All", "node", "evaluator"),
            ),
            "targetReplicatedJobs[1] is 'evaluator', which ends if its program does",
        ),
        (
            "TFA007",
            "warn",
            runtime(*PS, role("evaluator"), successPolicy=success("Any", "evaluator")),
            "ends if its program does",
        ),
        (
            "TFA018",
            "deny",
            runtime(successPolicy={"operator": "All", "targetReplicatedJobs": ["node", "ps"]}),
            "successPolicy.targetReplicatedJobs[1] is 'ps', which is no job here",
        ),
        (
            "TFA018",
            "deny",
            runtime(
                failurePolicy={"maxRestarts": 1, "rules": [{}, {"targetReplicatedJobs": ["x"]}]}
            ),
            "failurePolicy.rules[1].targetReplicatedJobs[0] is 'x'",
        ),
        (
            "TFA018",
            "deny",
            runtime(coordinator={"replicatedJob": "x"}),
            "coordinator.replicatedJob",
        ),
        (
            "TFA018",
            "deny",
            runtime(change(make_trainer_job(), ("dependsOn",), [{"name": "ps"}]), role("ps")),
            "no job before this one",
        ),
        (
            "TFA018",
            "deny",
            runtime(
                role("ps"),
                make_trainer_job(),
                change(role("chief"), ("dependsOn",), [{"name": "ps"}, {"name": "chief"}]),
            ),
            "fix: one of ps, node",
        ),
        ("TFA018", "deny", runtime(with_exit_codes("tensorflow")), "no container of its pods"),
        ("TFA019", "deny", runtime(restarts("Always")), "is Always"),
        ("TFA019", "deny", runtime(restarts(None, rules=True)), "missing, which means OnFailure"),
        ("TFA019", "deny", runtime(make_trainer_job(), restarts("Always", name="x")), "Jobs[1]"),
        (
            "TFA022",
            "deny",
            runtime(role("ps"), make_trainer_job(), depends("evaluator", "ps"), **ENDS),
            "'ps' does not end without 'evaluator'",
        ),
        (
            "TFA024",
            "warn",
            runtime(make_trainer_job(), role("launcher", template=pod_of("mpi"))),
            "have none called node",
        ),
        (
            "TFA024",
            "warn",
            runtime(role("model-initializer", template=pod_of("node")), make_trainer_job()),
            "have none called dataset-initializer or model-initializer",
        ),
        (
            "TFA009",
            "warn",
            change(runtime(), ("spec", "podGroupPolicy"), {"volcano": {}}),
            "`schedulerName: volcano`",
        ),
    ],
)
def test_what_is_wrong_is_found_with_its_level(rule, level, content, words):
    ((actual, sentence),) = found(content, rule)
    assert actual == level
    assert words in sentence


def with_pod(*, annotations=None, **spec):
    job = make_trainer_job(labels=LABEL, annotations=annotations or {})
    job["template"]["spec"]["template"]["spec"] |= spec
    return runtime(job)


def with_container(**fields):
    return with_pod(containers=[make_container(**fields)])


NETWORKS = "k8s.v1.cni.cncf.io/networks"


@pytest.mark.parametrize(
    ("rule", "content", "words"),
    [
        ("TFA006", runtime(make_trainer_job(labels={"tfadmit.dev/role": "boss"})), "is 'boss'"),
        ("TFA010", with_container(env=[{"name": "TF_TASK_INDEX", "value": "0"}]), "TF_TASK_INDEX"),
        ("TFA010", with_pod(initContainers=[make_container(env=[{"name": "TF_CONFIG"}])]), "initC"),
        (
            "TFA011",
            with_pod(annotations={NETWORKS: '[{"name":"hostdevice-net"}]'}),
            "attaches 'hostdevice-net'",
        ),
        ("TFA011", with_container(resources={"requests": {"rdma/hca": 1}}), "is missing"),
        (
            "TFA011",
            with_container(resources={"requests": {"a.b/c": 1}, "limits": {"a.b/c": 2}}),
            "is 2 for a request of 1",
        ),
        ("TFA012", with_pod(hostNetwork=True), "dnsPolicy"),
        (
            "TFA020",
            with_pod(annotations={"tfadmit.dev/port": "http"}),
            "tfadmit.dev/port is 'http'",
        ),
        (
            "TFA020",
            with_container(env=[{"name": "TF_WORKER_PORT", "value": "0"}]),
            "template states: env TF_WORKER_PORT is '0'",
        ),
        ("TFA020", with_pod(annotations={"tfadmit.dev/address": "ip"}), "fix: use fqdn or short"),
        ("TFA020", with_pod(annotations={"tfadmit.dev/containers": "node, x"}), "names 'x'"),
        ("TFA020", with_pod(annotations={"tfadmit.dev/cluster": "{"}), "cannot be read"),
        (
            "TFA020",
            with_pod(annotations={NETWORKS: "[broken", "tfadmit.dev/network": "mine"}),
            "begins like a JSON list and is none",
        ),
    ],
)
def test_what_is_wrong_in_a_pod_template_is_refused(rule, content, words):
    ((level, sentence),) = found(content, rule)
    assert level == "deny"
    assert words in sentence


@pytest.mark.parametrize(
    ("rule", "content"),
    [
        (
            "TFA010",
            with_container(
                env=[{"name": "TF_CONFIG", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]
            ),
        ),
        ("TFA010", with_container(env=[{"name": "TF_WORKER_PORT", "value": "1"}, None])),
        ("TFA011", with_pod(annotations={NETWORKS: "storage"})),
        ("TFA011", with_pod(annotations={NETWORKS: "[broken"})),
        ("TFA011", with_container(resources={"limits": {"rdma/hca": 1}})),
        ("TFA011", with_container(resources={"requests": {"cpu": 1}, "limits": {"cpu": 2}})),
        ("TFA012", with_pod(hostNetwork=False)),
        ("TFA013", with_container(resources={"limits": {"memory": "1Gi", "nvidia.com/gpu": 1}})),
        ("TFA013", with_container(name="sidecar", resources={"limits": {"memory": "1Gi"}})),
        ("TFA013", with_container(resources={"limits": {"huawei.com/Ascend910": 1}})),
        ("TFA013", with_container(resources={"limits": {"nvidia.com/mig-1g.5gb": 1}})),
        ("TFA013", with_container(resources={"limits": None, "requests": {"memory": "1Gi"}})),
        ("TFA017", with_container(image="nvcr.io/nvidia/tensorflow:24.03-tf2-py3")),
        ("TFA020", with_pod(annotations={NETWORKS: "[broken"})),
        ("TFA020", with_pod(annotations={"tfadmit.dev/containers": "node"})),
        ("TFA020", with_pod(annotations={"tfadmit.dev/inject": "false", "tfadmit.dev/port": "x"})),
    ],
)
def test_what_is_right_in_a_pod_template_is_no_finding(rule, content):
    assert found(content, rule) == []


REPLICAS = "tfadmit.dev/replicas"
DEFAULT = ("spec", "template", "metadata", "annotations")
OF_THE_PS = ("spec", "template", "spec", "replicatedJobs", 1, "template")


def with_replicas(text, *, at=DEFAULT, **spec):
    """A runtime of one worker and one parameter server."""
    content = change(runtime(*PS), at, {REPLICAS: text})
    content["spec"] |= spec
    return content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (with_replicas("boss=1"), "is 'boss=1': there is no role 'boss'"),
        (with_replicas("ps=many"), "'many' is no number of tasks"),
        (with_replicas("chief=1"), "no replicated job has the role chief"),
        (with_replicas("worker=5"), "the role worker has 1 tasks by numNodes, not 5"),
        (with_replicas("ps=4", podGroupPolicy={"volcano": {}}), "a PodGroup of 2 from the runtime"),
    ],
)
def test_numbers_of_roles_that_no_jobset_can_have_are_refused(content, words):
    ((level, sentence),) = found(content, "TFA020")
    assert level == "deny"
    assert sentence.startswith(f"TFA020 spec.template.metadata.annotations[{REPLICAS}] is ")
    assert words in sentence


@pytest.mark.parametrize(
    "content",
    [
        with_replicas("ps=4, worker=1"),
        with_replicas("chief=0"),
        with_replicas(""),
        with_replicas(None),
        with_replicas("ps=1", podGroupPolicy={"volcano": {}}),
        with_replicas("ps=4", podGroupPolicy={"volcano": None}),
    ],
)
def test_numbers_of_roles_that_can_be_had_are_no_finding(content):
    assert found(content, "TFA020") == []


@pytest.mark.parametrize(
    "place",
    [
        ("metadata", "annotations"),
        (*OF_THE_PS, "metadata", "annotations"),
        (*OF_THE_PS, "spec", "template", "metadata", "annotations"),
    ],
)
def test_numbers_of_roles_where_nobody_reads_them_are_warned_of(place):
    ((level, sentence),) = found(with_replicas("ps=4", at=place), "TFA020")
    assert level == "warn"
    assert "has no effect" in sentence
    assert "fix: write it in spec.template.metadata.annotations" in sentence


MEMORY = {"limits": {"memory": "1Gi"}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (with_container(resources={"limits": {}}), "limits is empty"),
        (
            with_container(
                resources={"limits": {"nvidia.com/mig-1g.5gb": 1, "nvidia.com/mig-2g.10gb": 1}}
            ),
            "has nvidia.com/mig-1g.5gb and nvidia.com/mig-2g.10gb",
        ),
        (with_container(resources={"limits": {"amd.com/gpu": 1}}), "has only amd.com/gpu"),
        (
            runtime(
                role(
                    "dataset-initializer",
                    template=pod_of("dataset-initializer", resources=MEMORY),
                ),
                make_trainer_job(),
            ),
            "replicatedJobs[0]",
        ),
    ],
)
def test_limits_that_the_sdk_cannot_read_are_warned_of(content, words):
    ((level, sentence),) = found(content, "TFA013")
    assert level == "warn"
    assert words in sentence


def test_two_roles_on_one_port_of_the_host_are_warned_of():
    hosted = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
    jobs = [make_trainer_job(), role("ps")]
    for job in jobs:
        job["template"]["spec"]["template"]["spec"] |= hosted
    ((level, sentence),) = found(runtime(*jobs, **ENDS), "TFA012")
    assert level == "warn"
    assert "shares port 12345 of the host with 'node'" in sentence


def test_a_finding_that_only_warns_never_refuses():
    settings = Settings(policies={"TFA005": "deny"})
    assert [level for level, _ in found(runtime(make_trainer_job("w")), "TFA005", settings)] == [
        "warn"
    ]


def test_a_rule_that_is_off_finds_nothing():
    settings = Settings(policies={"TFA008": "off"})
    assert found(change(runtime(), ("spec", "template", "spec", "failurePolicy"), None), "TFA008")
    bad = change(runtime(), ("spec", "template", "spec", "failurePolicy"), None)
    assert found(bad, "TFA008", settings) == []


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("deploy/runtimes/tensorflow-*.yaml")), ids=lambda p: p.stem
)
def test_the_shipped_runtimes_have_no_finding_at_all(path):
    for content in yaml.safe_load_all(path.read_text()):
        labelled = admission.admit(content, path="/mutate/runtimes")
        assert policy.judge_runtime(labelled, settings=Settings()) == ()


def test_a_runtime_with_many_violations_is_told_all_of_them():
    node = make_trainer_job("node", labels={"tfadmit.dev/role": "boss"})
    pod = node["template"]["spec"]["template"]["spec"]
    pod |= {"hostNetwork": True}
    pod["containers"] = [
        make_container(
            image="nvcr.io/nvidia/tensorflow:25.02-tf2-py3",
            env=[{"name": "TF_CONFIG", "value": "{}"}],
            resources={"limits": {"memory": "1Gi"}, "requests": {"rdma/hca": 1}},
        )
    ]
    node["template"]["spec"] |= {"completionMode": "NonIndexed", "backoffLimit": 6}
    node["dependsOn"] = [{"name": "ps"}]
    content = runtime(
        role("ps"),
        node,
        role("chief", completions=2, parallelism=1),
        failurePolicy=None,
        successPolicy=success("All", "ps"),
    )
    content["spec"]["template"]["spec"]["network"] = {"enableDNSHostnames": False}
    content["spec"]["mlPolicy"]["torch"] = {}
    content["spec"]["podGroupPolicy"] = {"coscheduling": {}}
    decision = admission.decide("/validate/runtimes", content)
    told = {line.split()[0] for line in (*decision.message.splitlines(), *decision.warnings)}
    assert told == {f"TFA{n:03}" for n in (1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 17)}
    assert {rule for rule, _ in decision.violations} == told
    assert ("TFA001", "deny") in decision.violations
    assert ("TFA017", "warn") in decision.violations


def test_a_warning_that_is_too_long_keeps_its_rule_its_path_and_its_fix():
    content = with_container(image="nvcr.io/nvidia/tensorflow:25.02-tf2-py3")
    labelled = admission.admit(content, path="/mutate/runtimes")
    (violation,) = policy.judge_runtime(labelled, settings=Settings())
    (warning,) = admission.decide("/validate/runtimes", content).warnings
    assert len(violation.sentence) > 256 >= len(warning)
    assert warning.startswith("TFA017 spec.template.spec.replicatedJobs[0]")
    assert warning.endswith("; fix: use an image with Keras 2, or with 3.8 and newer")
    assert "has Keras 3.0 to 3.4" in warning
    assert violation.rule.why not in warning
    assert violation.within(1000) == violation.sentence
    shortest = violation.within(200)
    assert shortest.startswith("TFA017 spec.template")
    assert shortest.endswith("containers[0].image; fix: " + violation.finding.fix)
