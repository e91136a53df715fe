"""Where a task's cluster comes from: each source, each fault, and what reaches TensorFlow."""

import json
import types

import pytest

import tfadmit_trainer
from tfadmit_trainer import configure, contract, encoding, late
from tfadmit_trainer.fault import DiscoveryError, SetupError
from unit.trainer.outside import Outside

CLUSTER = contract.Cluster(worker=("mnist-node-0-{0..2}.mnist.team.svc.cluster.local:12345",))
LABELS = (
    'jobset.sigs.k8s.io/jobset-name="mnist"\n'
    'jobset.sigs.k8s.io/replicatedjob-name="node"\n'
    'jobset.sigs.k8s.io/replicatedjob-replicas="1"\n'
    'jobset.sigs.k8s.io/job-index="0"\n'
    'batch.kubernetes.io/job-completion-index="2"\n'
)
NAMESPACE = {"/var/run/secrets/kubernetes.io/serviceaccount/namespace": "team"}


def injected(cluster=CLUSTER, role="worker", index=1, *, max_inline_bytes=32_768):
    task = contract.Task(cluster=cluster, role=role, index=index)
    return encoding.environment(task, max_inline_bytes=max_inline_bytes)


@pytest.fixture
def outside():
    return Outside()


def setup(outside, *args, **options):
    host = outside.host(*args, **options)
    return configure.setup(host=host), host.environ


# --- what the webhook wrote ----------------------------------------------------------------------


def test_what_the_webhook_wrote_is_taken_and_left_as_it_is(outside):
    before = injected()
    context, environ = setup(outside, before, name="mnist-node-0-1")
    assert (context.source, context.role, context.index) == ("tfadmit", "worker", 1)
    assert environ == before
    assert outside.log == "this is worker 1 of 3 workers (set by tfadmit)"


def test_tf_config_is_made_where_the_webhook_left_it_out(outside):
    context, environ = setup(outside, injected(max_inline_bytes=0))
    assert environ["TF_CONFIG"] == encoding.tf_config(context.task)


def test_the_attempt_is_told(outside):
    context, _ = setup(outside, {**injected(), "TFADMIT_ATTEMPT": "2"})
    assert context.attempt == 2
    assert "attempt 2" in outside.log


def test_tf_config_that_is_too_big_for_a_child_process_stays_unset(outside):
    cluster = contract.Cluster(worker=("mnist-node-0-{0..9999}.mnist.team.svc.cluster.local:1",))
    context, environ = setup(outside, injected(cluster))
    assert "TF_CONFIG" not in environ
    assert context.members == 10_000
    assert "TF_CONFIG of 10,000 tasks would be over 128 KiB" in outside.log
    assert "helper" in outside.log


@pytest.mark.parametrize(("bytes_", "fits"), [(131_072, True), (131_073, False)])
def test_the_limit_is_one_string_with_its_name_and_its_end(bytes_, fits):
    assert configure.fits("x" * (bytes_ - len("TF_CONFIG=") - 1)) is fits


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"TFADMIT_CLUSTER": ""}, "TFADMIT_CLUSTER is set, but the environment is broken"),
        ({"TFADMIT_CLUSTER": '{"v":9,"worker":["a:1"]}'}, "version 9"),
        ({"TF_TASK_INDEX": "3"}, "has no worker 3"),
        ({"TF_TASK_INDEX": "x"}, "name no task"),
        ({"TF_TASK_TYPE": "boss"}, "name no task"),
        ({"TF_TASK_TYPE": None}, "TF_TASK_TYPE not set"),
        ({"TFADMIT_CLUSTER": None, "TF_CONFIG": None}, "TFADMIT_CLUSTER is not"),
        ({"TF_CONFIG": "{"}, "TF_CONFIG is not JSON"),
    ],
)
def test_an_environment_of_the_webhook_that_is_broken_is_never_passed_over(outside, change, says):
    environ = {**injected(), **change}
    environ = {name: value for name, value in environ.items() if value is not None}
    with pytest.raises(SetupError) as caught:
        setup(outside, environ, name="mnist-node-0-1", names=["mnist-node-0-0.mnist"])
    assert says in str(caught.value)
    assert outside.asked == []


@pytest.mark.parametrize("name", ["TF_TASK_TYPE", "TF_TASK_INDEX", "TFADMIT_ATTEMPT"])
def test_one_variable_of_the_webhook_alone_is_a_fault(outside, name):
    with pytest.raises(SetupError, match="the webhook sets them together"):
        setup(outside, {name: "0"})


def test_settings_that_a_runtime_makes_for_everybody_are_no_claim(outside):
    context, environ = setup(outside, {"TF_WORKER_PORT": "2222", "TF_NUM_WORKERS": "1"})
    assert context.source == "single"
    assert context.address == "localhost:2222"
    assert "TF_CONFIG" not in environ


# --- a TF_CONFIG of the user's own ---------------------------------------------------------------


def own_config(index=0, cluster=None, role="worker"):
    hosts = cluster or {"worker": ["a.ring:1", "b.ring:1"]}
    return json.dumps({"cluster": hosts, "task": {"type": role, "index": index}})


def test_a_users_own_tf_config_is_taken_as_it_stands(outside):
    context, environ = setup(outside, {"TF_CONFIG": own_config(1)})
    assert (context.source, context.index, context.address) == ("tf_config", 1, "b.ring:1")
    assert environ == {"TF_CONFIG": own_config(1)}
    assert "TF_CONFIG is set, and not by tfadmit's webhook" in outside.log


def test_it_goes_before_what_the_webhook_computed_and_the_log_says_so(outside):
    context, _ = setup(outside, {**injected(), "TF_CONFIG": own_config(1)})
    assert context.source == "tf_config"
    assert "your own TF_CONFIG goes before what tfadmit's webhook computed" in outside.log


def test_an_empty_object_is_a_task_alone(outside):
    context, _ = setup(outside, {"TF_CONFIG": "{}"})
    assert context.source == "tf_config"
    assert not context.is_distributed


def test_an_evaluator_for_everybody_is_taken_out_and_told(outside):
    cluster = {"chief": ["c.r:1"], "ps": ["p.r:1"], "evaluator": ["e.r:1"]}
    _, environ = setup(outside, {"TF_CONFIG": own_config(0, cluster, "chief")})
    assert json.loads(environ["TF_CONFIG"])["cluster"] == {"chief": ["c.r:1"], "ps": ["p.r:1"]}
    assert "waits for it without end" in outside.warned[0]


def test_one_index_for_all_pods_is_found_out_by_the_host_name(outside):
    environ = {**injected(index=0), "TF_TASK_INDEX": "0"}
    with pytest.raises(SetupError) as caught:
        setup(outside, environ, name="mnist-node-0-2")
    assert "said to be worker 0" in str(caught.value)
    assert "host name is mnist-node-0-2, which is worker 2" in str(caught.value)
    assert "Take it out" in str(caught.value)


def test_a_host_name_that_the_cluster_does_not_know_proves_nothing(outside):
    context, _ = setup(outside, injected(), name="node-of-hostnetwork")
    assert context.index == 1


# --- JobSet's labels -----------------------------------------------------------------------------


def test_the_labels_of_jobset_in_a_mounted_file_give_the_cluster(outside):
    files = {"/etc/podinfo/labels": LABELS, **NAMESPACE}
    context, environ = setup(outside, {"TF_NUM_WORKERS": "3"}, files=files, name="mnist-node-0-2")
    assert (context.source, context.index) == ("jobset", 2)
    assert context.cluster == CLUSTER
    assert json.loads(environ["TF_CONFIG"])["task"] == {"type": "worker", "index": 2}
    assert "JobSet's labels are there" in outside.log


def test_they_can_be_variables_and_name_a_subdomain_and_a_port(outside):
    environ = {
        "TFADMIT_JOBSET": "mnist",
        "TFADMIT_REPLICATED_JOB": "node",
        "TFADMIT_REPLICAS": "2",
        "TFADMIT_JOB_INDEX": "1",
        "JOB_COMPLETION_INDEX": "1",
        "TF_NUM_WORKERS": "4",
        "TF_WORKER_PORT": "2222",
        "TFADMIT_SUBDOMAIN": "ring",
        "POD_NAMESPACE": "ml",
    }
    context, _ = setup(outside, environ)
    assert context.index == 3
    assert context.address == "mnist-node-1-1.ring.ml.svc.cluster.local:2222"
    assert context.cluster.worker == ("mnist-node-{0..1}-{0..1}.ring.ml.svc.cluster.local:2222",)


def test_another_directory_can_be_named(outside):
    environ = {"TFADMIT_PODINFO": "/podinfo", "TF_NUM_WORKERS": "3"}
    context, _ = setup(outside, environ, files={"/podinfo/labels": LABELS})
    assert context.address == "mnist-node-0-2.mnist:12345"


@pytest.mark.parametrize(
    ("labels", "environ", "says"),
    [
        (LABELS, {}, "TF_NUM_WORKERS is not known, and a wrong number hangs a training"),
        (LABELS, {"TF_NUM_WORKERS": "two"}, "TF_NUM_WORKERS is 'two'"),
        (LABELS, {"TF_NUM_WORKERS": "0"}, "must be a number from 1"),
        (LABELS, {"TF_NUM_WORKERS": "200000"}, "more than 100,000"),
        (LABELS, {"TF_NUM_WORKERS": "2"}, "this pod is task 2 of job 0"),
        (LABELS.replace('s="1"', 's="2"'), {"TF_NUM_WORKERS": "3"}, "does not fit the 2 jobs"),
        (LABELS.replace('"node"', '"ps"'), {"TF_NUM_WORKERS": "3"}, "only clusters of workers"),
        (LABELS, {"TF_NUM_WORKERS": "3", "TF_WORKER_PORT": "x"}, "TF_WORKER_PORT is 'x'"),
        (LABELS.replace("replicatedjob-replicas", "x"), {}, "metadata.labels['jobset.sigs.k8s.io/"),
    ],
)
def test_a_jobset_of_which_not_enough_is_known_is_a_fault_and_no_guess(
    outside, labels, environ, says
):
    with pytest.raises(SetupError) as caught:
        setup(outside, environ, name="mnist-node-0-2", files={"/etc/podinfo/labels": labels})
    assert says in str(caught.value)
    assert outside.asked == []


# --- DNS, and a task alone -----------------------------------------------------------------------


def test_a_host_called_as_a_task_counts_workers_by_dns(outside):
    names = ["mnist-node-0-0.mnist", "mnist-node-0-1.mnist"]
    context, environ = setup(outside, name="mnist-node-0-1", names=names)
    assert (context.source, context.index, context.members) == ("discovery", 1, 2)
    assert json.loads(environ["TF_CONFIG"])["cluster"]["worker"] == [
        f"{name}:12345" for name in names
    ]
    assert "[Discovery] Discovered 2 workers via DNS" in outside.said
    assert "state TF_NUM_WORKERS to be sure" in outside.said[-1]


def test_discovery_that_finds_nobody_can_be_tried_again(outside):
    with pytest.raises(DiscoveryError) as caught:
        setup(outside, name="mnist-node-0-1")
    assert caught.value.exit_code == 75


def test_any_other_host_is_a_task_alone_and_tf_config_is_not_set(outside):
    context, environ = setup(outside, name="laptop")
    assert (context.source, context.role, context.index) == ("single", "worker", 0)
    assert environ == {}
    assert outside.log == (
        "one task alone: no TF_CONFIG and nothing of tfadmit's webhook, no JobSet labels, and host "
        "laptop is not called like train-node-0-1"
    )


def test_a_number_of_workers_without_their_addresses_is_a_fault(outside):
    with pytest.raises(SetupError, match="TF_NUM_WORKERS=4 states several workers"):
        setup(outside, {"TF_NUM_WORKERS": "4"}, name="laptop")


def test_an_index_of_kubernetes_without_peers_is_told_loudly(outside):
    context, _ = setup(outside, {"JOB_COMPLETION_INDEX": "3"}, name="sweep-3-x7k2p")
    assert context.source == "single"
    assert "It trains ALONE" in outside.warned[0]


# --- too late ------------------------------------------------------------------------------------


def tensorflow(**attributes):
    module = types.SimpleNamespace(_context=types.SimpleNamespace(**attributes))
    return {"tensorflow": object(), "tensorflow.python.eager.context": module}


@pytest.mark.parametrize(
    ("modules", "stage"),
    [
        ({}, "unused"),
        ({"tensorflow": object()}, "unknown"),
        ({"tensorflow": 1, "tensorflow.python.eager.context": object()}, "unknown"),
        (
            {
                "tensorflow": 1,
                "tensorflow.python.eager.context": types.SimpleNamespace(_context=None),
            },
            "imported",
        ),
        (tensorflow(_context_handle=None, _collective_leader=None), "imported"),
        (tensorflow(_context_handle=1, _collective_leader=None), "operation"),
        (tensorflow(_context_handle=1, _collective_leader=""), "strategy"),
        (tensorflow(), "unknown"),
    ],
)
def test_how_far_tensorflow_has_been_used_is_read_from_its_context(modules, stage):
    assert late.stage(modules) == stage


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"_context_handle": 1, "_collective_leader": None}, "has already run an operation"),
        ({"_context_handle": 1, "_collective_leader": ""}, "trains alone"),
        ({}, "does not show whether it has run anything"),
    ],
)
def test_setup_after_tensorflow_was_used_is_told_loudly(outside, attributes, says):
    setup(outside, injected(max_inline_bytes=0), modules=tensorflow(**attributes))
    assert says in outside.warned[0]
    assert "Move it to the top of the program" in outside.warned[0]


def test_setup_after_a_mere_import_is_fine(outside):
    modules = tensorflow(_context_handle=None, _collective_leader=None)
    setup(outside, injected(max_inline_bytes=0), modules=modules)
    assert outside.warned == []


def test_setup_is_not_late_where_tf_config_was_there_from_the_start(outside):
    modules = tensorflow(_context_handle=1, _collective_leader="/job:worker/task:0")
    setup(outside, injected(), modules=modules)
    assert outside.warned == []


# --- by the package's name -----------------------------------------------------------------------


def test_both_names_of_the_function_are_there(monkeypatch, capsys):
    for name in ("TF_CONFIG", "TFADMIT_CLUSTER", "TF_TASK_TYPE", "TF_TASK_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TF_CONFIG", own_config())
    assert tfadmit_trainer.setup is tfadmit_trainer.setup_tf_config
    context = tfadmit_trainer.setup()
    assert isinstance(context, tfadmit_trainer.TaskContext)
    assert capsys.readouterr().err.startswith("[tfadmit] this is worker 0 of 2 workers")
