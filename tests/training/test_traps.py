"""The traps of TensorFlow's start: what the library makes of them, within a bounded time."""

import json
import signal
import socket
import time
from pathlib import Path

from harness import loopback
from training import loopback_pods, tasks

SCRIPTS = Path(__file__).parent / "scripts"
STEPS = [str(SCRIPTS / "steps.py")]


def pair(start, environments, **env):
    return [
        start(f"worker-{index}", STEPS, env={**own, **env})
        for index, own in enumerate(environments)
    ]


def moved(env, cluster):
    """The environment of a task that sees another cluster; its own TF_CONFIG is gone."""
    return {
        "TF_TASK_TYPE": env["TF_TASK_TYPE"],
        "TF_TASK_INDEX": env["TF_TASK_INDEX"],
        "TFADMIT_CLUSTER": json.dumps(cluster),
    }


def test_a_peer_that_never_comes(start):
    one, _ = loopback_pods.workers(2)
    task = start("worker-0", STEPS, env={**one, "TFADMIT_START_TIMEOUT": "6"})
    assert task.wait(timeout=60) == 75
    assert "worker 0 gave up after 6 s in the start of the training: worker 1 (1 of 2)" in task.text
    assert "did not come, though all names resolve" in task.text


def test_a_name_that_does_not_resolve(start):
    one, _ = loopback_pods.workers(2)
    cluster = json.loads(one["TFADMIT_CLUSTER"])
    cluster["worker"][1] = "worker-1.invalid:12345"
    task = start("worker-0", STEPS, env={**moved(one, cluster), "TFADMIT_BARRIER_TIMEOUT": "3"})
    assert task.wait(timeout=60) == 75
    assert "worker 1 (1 of 2) not found in 3 s by worker 0" in task.text


def test_a_port_in_use(start):
    one, _ = loopback_pods.workers(2)
    with socket.create_server(("127.0.0.1", int(one["TF_WORKER_PORT"]))):
        task = start("worker-0", STEPS, env=one)
        assert task.wait(timeout=60) == 78
    assert f"port {one['TF_WORKER_PORT']} of worker 0 is in use" in task.text


def test_tensorflow_was_used_before(start):
    one, _ = loopback_pods.workers(2)
    task = start("worker-0", STEPS, env={**one, "BEFORE": "1"})
    assert task.wait(timeout=60) == 1
    assert "TensorFlow was used before the strategy was created" in task.text


def test_one_worker_sees_another_cluster(start):
    one, two = loopback_pods.workers(2)
    cluster = json.loads(two["TFADMIT_CLUSTER"])
    cluster["worker"].append(f"127.0.0.1:{loopback.free_port()}")
    env = {"TFADMIT_START_TIMEOUT": "20"}
    running = [
        start("worker-0", STEPS, env={**one, **env}),
        start("worker-1", STEPS, env={**moved(two, cluster), **env}),
    ]
    assert tasks.ended(running, timeout=90) == [76, 76]
    for task in running:
        assert "worker 1 sees another cluster than worker 0" in task.text


def test_workers_of_different_attempts_do_not_train_together(start):
    one, two = loopback_pods.workers(2, attempt=1)
    running = pair(start, [one, {**two, "TFADMIT_ATTEMPT": "2"}])
    assert tasks.ended(running, timeout=90) == [76, 76]
    for task in running:
        assert "worker 1 sees another attempt than worker 0" in task.text


def test_a_worker_that_is_killed_and_comes_back_alone(start):
    environments = loopback_pods.workers(2)
    env = {"STEPS": "1000", "PAUSE": "0.1", "TFADMIT_START_TIMEOUT": "12"}
    one, two = pair(start, environments, **env)
    two.says("STEP 3")
    two.send(signal.SIGKILL)
    again = start("worker-1-again", STEPS, env={**environments[1], **env})
    assert one.wait(timeout=40) == 76
    assert "worker 0 ends:" in one.text
    assert again.wait(timeout=60) in (75, 76)


def test_a_step_that_only_one_worker_comes_to(start):
    running = pair(start, loopback_pods.workers(2), IDLE="1", TFADMIT_STEP_TIMEOUT="5")
    assert running[0].wait(timeout=60) == 77
    assert "gave up after 5 s in sum 2, which all workers must call" in running[0].text
    assert "all other tasks listen, but not all of them came to this point" in running[0].text


def test_the_fault_of_a_program_is_seen_before_what_it_does_to_others(start):
    """So Kubernetes judges the fault, which fails the training, and not the lost connection."""
    one, two = pair(start, loopback_pods.workers(2), FAIL="1", STEPS="1000")
    assert two.wait(timeout=60) == 1
    failed = time.monotonic()
    assert one.wait(timeout=40) == 76
    assert time.monotonic() - failed > 3
    assert "ValueError: a fault of the program" in two.text


def test_ten_thousand_tasks(start):
    env = {
        "TFADMIT_CLUSTER": json.dumps(
            {"v": 1, "worker": ["big-node-0-{0..9999}.big.team.svc.cluster.local:12345"]}
        ),
        "TF_TASK_TYPE": "worker",
        "TF_TASK_INDEX": "4711",
    }  # fmt: skip
    task = start("worker-4711", [str(SCRIPTS / "large.py")], env=env)
    assert task.wait(timeout=60) == 0, task.tail()
    print(task.text)
    assert "TASKS 10000 big-node-0-9999.big.team.svc.cluster.local:12345" in task.text
    assert "CHILD 0" in task.text


def test_a_task_that_waits_is_asked_to_end(start):
    one, _ = loopback_pods.workers(2)
    task = start("worker-0", STEPS, env=one)
    task.says("all 2 tasks found")
    task.send(signal.SIGTERM)
    assert task.wait(timeout=30) == 143
    assert "worker 0 was asked to end (SIGTERM) while it waited for others" in task.text
