import json

import pytest

from tfadmit_trainer import contract, encoding
from tfadmit_trainer.contract import Cluster, Task

WORKERS = Cluster(worker=("mnist-node-0-{0..2}.mnist.team.svc.cluster.local:12345",))
ROLES = Cluster(
    chief=("j-chief-0-0.j:1",),
    worker=("j-worker-0-{0..1}.j:1",),
    ps=("j-ps-0-0.j:1",),
    evaluator=("j-evaluator-0-0.j:1",),
)


def test_the_environment_of_a_worker_is_what_source_and_tensorflow_expect():
    env = encoding.environment(Task(cluster=WORKERS, role="worker", index=1), max_inline_bytes=9999)
    hosts = [f"mnist-node-0-{i}.mnist.team.svc.cluster.local:12345" for i in range(3)]
    assert list(env) == [
        "TF_TASK_TYPE",
        "TF_TASK_INDEX",
        "TF_NUM_WORKERS",
        "TF_WORKER_PORT",
        "TFADMIT_CLUSTER",
        "TF_WORKER_HOSTS",
        "TF_CONFIG",
    ]
    assert env["TF_TASK_TYPE"] == "worker"
    assert env["TF_TASK_INDEX"] == "1"
    assert env["TF_NUM_WORKERS"] == "3"
    assert env["TF_WORKER_PORT"] == "12345"
    assert env["TF_WORKER_HOSTS"] == ",".join(hosts)
    assert json.loads(env["TF_CONFIG"]) == {
        "cluster": {"worker": hosts},
        "task": {"type": "worker", "index": 1},
    }
    assert env["TFADMIT_CLUSTER"] == (
        '{"v":1,"worker":["mnist-node-0-{0..2}.mnist.team.svc.cluster.local:12345"]}'
    )


@pytest.mark.parametrize("role", ["chief", "worker", "ps"])
def test_the_evaluator_is_unknown_to_the_others(role):
    config = json.loads(encoding.tf_config(Task(cluster=ROLES, role=role, index=0)))
    assert list(config["cluster"]) == ["chief", "worker", "ps"]
    env = encoding.environment(Task(cluster=ROLES, role=role, index=0), max_inline_bytes=9999)
    assert "evaluator" not in env["TFADMIT_CLUSTER"]


def test_the_evaluator_stands_in_its_own_tf_config():
    config = json.loads(encoding.tf_config(Task(cluster=ROLES, role="evaluator", index=0)))
    assert config["cluster"]["evaluator"] == ["j-evaluator-0-0.j:1"]
    assert config["task"] == {"type": "evaluator", "index": 0}


def test_the_host_lists_name_each_role_that_has_tasks():
    env = encoding.environment(Task(cluster=ROLES, role="ps", index=0), max_inline_bytes=9999)
    assert env["TF_CHIEF_HOSTS"] == "j-chief-0-0.j:1"
    assert env["TF_WORKER_HOSTS"] == "j-worker-0-0.j:1,j-worker-0-1.j:1"
    assert env["TF_PS_HOSTS"] == "j-ps-0-0.j:1"


def test_a_cluster_that_does_not_fit_travels_in_compact_form_only():
    many = Cluster(worker=("j-node-0-{0..9999}.j:1",))
    env = encoding.environment(Task(cluster=many, role="worker", index=7), max_inline_bytes=32768)
    assert list(env) == [
        "TF_TASK_TYPE",
        "TF_TASK_INDEX",
        "TF_NUM_WORKERS",
        "TF_WORKER_PORT",
        "TFADMIT_CLUSTER",
    ]
    assert max(map(len, env.values())) < 100


@pytest.mark.parametrize("cluster", [WORKERS, ROLES, Cluster(worker=("h-{0..1234}.s:12345",))])
def test_the_announced_length_is_never_exceeded_and_not_far_off(cluster):
    announced = encoding.tf_config_length(cluster)
    for role in contract.ROLES:
        if cluster.size(role):
            last = Task(cluster=cluster, role=role, index=cluster.size(role) - 1)
            assert len(encoding.tf_config(last)) <= announced < len(encoding.tf_config(last)) + 90


def test_all_tasks_of_a_cluster_are_inline_or_none_is():
    limit = encoding.tf_config_length(ROLES)
    for role in contract.ROLES:
        task = Task(cluster=ROLES, role=role, index=0)
        assert "TF_CONFIG" in encoding.environment(task, max_inline_bytes=limit)
        assert "TF_CONFIG" not in encoding.environment(task, max_inline_bytes=limit - 1)


@pytest.mark.parametrize("cluster", [WORKERS, ROLES])
def test_the_compact_form_reads_back_as_it_was(cluster):
    assert encoding.decode(encoding.encode(cluster)) == cluster


@pytest.mark.parametrize("role", contract.ROLES)
def test_a_task_reads_back_from_its_environment(role):
    task = Task(cluster=ROLES.seen_by(role), role=role, index=0)
    env = encoding.environment(Task(cluster=ROLES, role=role, index=0), max_inline_bytes=0)
    assert encoding.task_from(env) == task


def test_a_compact_cluster_that_a_person_writes_needs_no_version():
    assert encoding.decode('{"worker":["h-{0..1}:1"]}').size("worker") == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "JSON object"),
        ('{"v":2,"worker":["h:1"]}', "version 2"),
        ('{"v":true,"worker":["h:1"]}', "version True"),
        ('{"master":["h:1"]}', "unknown role 'master'"),
        ('{"worker":"h:1"}', "must be a list"),
        ('{"worker":[1]}', "must be a list"),
        ('{"worker":["h"]}', "worker: 'h' does not end in a port"),
        ("{}", "no task"),
        ('{"worker":[]}', "no task"),
        ('{"chief":["h-{0..1}:1"]}', "one chief, the cluster has 2"),
        ('{"worker":["h-{0..99999}:1","h:1"]}', "more than 100,000"),
    ],
)
def test_what_is_no_compact_cluster_is_refused_with_the_reason(text, why):
    with pytest.raises(contract.ContractError, match=why):
        encoding.decode(text)


@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({}, "TFADMIT_CLUSTER, TF_TASK_TYPE, TF_TASK_INDEX not set"),
        ({"TF_TASK_TYPE": "worker", "TF_TASK_INDEX": "3"}, "no worker 3"),
        ({"TF_TASK_TYPE": "master", "TF_TASK_INDEX": "0"}, "name no task"),
        ({"TF_TASK_TYPE": "worker", "TF_TASK_INDEX": "-1"}, "name no task"),
        ({"TF_TASK_TYPE": "worker", "TF_TASK_INDEX": "²"}, "name no task"),
    ],
)
def test_an_environment_that_names_no_task_is_refused(environ, why):
    if environ:
        environ = {**environ, "TFADMIT_CLUSTER": encoding.encode(WORKERS)}
    with pytest.raises(contract.ContractError, match=why):
        encoding.task_from(environ)
