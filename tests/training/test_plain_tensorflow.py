"""What plain TensorFlow does in the same traps, so that the facts stay checked.

When one of these fails after an update of TensorFlow, a trap may be gone, and a part of the library
with it.
"""

import json
import signal
import socket
import time
from pathlib import Path

import pytest

from harness import loopback
from training import loopback_pods, tasks

SCRIPTS = Path(__file__).parent / "scripts"
PAIR = [str(SCRIPTS / "plain_pair.py")]


def pair(start, **env):
    return [
        start(f"plain-{index}", PAIR, env={**own, **env})
        for index, own in enumerate(loopback_pods.workers(2))
    ]


def test_facts_of_one_process(start):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        env = {
            "FREE_PORT": str(loopback.free_port()),
            "BUSY_PORT": str(busy.getsockname()[1]),
        }
        script = str(SCRIPTS / "plain_facts.py")
        running = [start(name, [script, name], env=env) for name in ("config", "late", "port")]
        assert tasks.ended(running, timeout=90) == [0, 0, 0], running[0].tail()
    lines = [line for task in running for line in task.text.splitlines()]
    facts = dict(
        line.removeprefix("FACT ").split(": ", 1) for line in lines if line.startswith("FACT ")
    )
    assert facts["empty TF_CONFIG"].startswith("JSONDecodeError")
    assert facts["trailing brace"].startswith("JSONDecodeError: Extra data")
    assert facts["empty object"].startswith("no error")
    assert facts["strategy before TF_CONFIG"] == "no error, 1 replica"
    assert facts["strategy again"].startswith("ValueError: Collective ops are already configured")
    assert "Collective ops must be configured at program startup" in facts["TF_CONFIG after use"]
    assert facts["port in use"] == "UnknownError: Could not start gRPC server"


def test_only_one_worker_comes_to_a_step(start):
    """The other waits without a word; ours ends it (test_traps, test_keras)."""
    one, two = pair(start, IDLE="1", IDLE_SECONDS="8")
    assert tasks.ended([one, two], timeout=90) == [0, 0]
    (last,) = [line for line in one.text.splitlines() if line.startswith("SUM 2 after")]
    assert float(last.split()[3]) > 5


def test_a_peer_that_never_comes(start):
    """It waits for 3,600 s (measured by hand); here only that it says nothing and does not end."""
    one, _ = loopback_pods.workers(2)
    task = start("plain-0", PAIR, env=one)
    time.sleep(15)
    assert task.code is None
    assert "REPLICAS" not in task.text


def test_a_name_that_does_not_resolve(start):
    """No word of the name that is wrong, and no end; ours names it before TensorFlow starts."""
    one, _ = loopback_pods.workers(2)
    config = json.loads(one["TF_CONFIG"])
    config["cluster"]["worker"][1] = "nobody.invalid:12345"
    task = start("plain-0", PAIR, env={"TF_CONFIG": json.dumps(config)})
    time.sleep(12)
    assert task.code is None
    assert "nobody.invalid" not in task.text


def test_a_worker_that_is_started_again_alone_is_another_incarnation(start):
    """While the other is outside of a step: it is told, and the one that came back never joins."""
    one, two = loopback_pods.workers(2)
    first = start("plain-0", PAIR, env={**one, "IDLE": "0", "IDLE_SECONDS": "15"})
    second = start("plain-1", PAIR, env={**two, "IDLE": "1", "IDLE_SECONDS": "60"})
    second.says("SUM 2")
    second.send(signal.SIGKILL)
    again = start("plain-1-again", PAIR, env=two)
    assert first.wait(timeout=90) == 1
    assert "different incarnation" in first.text
    assert "SUM" not in again.text
    again.end()


def test_a_worker_is_killed(start):
    one, two = pair(start, FOREVER="1")
    two.says("SUM 2 after")
    two.send(signal.SIGKILL)
    assert one.wait(timeout=60) == 1
    assert "UnavailableError" in one.text or "AbortedError" in one.text


def test_a_worker_that_sees_only_itself_trains_alone(start):
    one, two = loopback_pods.workers(2)
    config = json.loads(one["TF_CONFIG"])
    config["cluster"]["worker"] = config["cluster"]["worker"][:1]
    alone = start("plain-0", PAIR, env={"TF_CONFIG": json.dumps(config)})
    other = start("plain-1", PAIR, env=two)
    assert alone.wait(timeout=60) == 0
    assert "REPLICAS 1" in alone.text
    other.end()


@pytest.mark.parametrize("role", ["ps"])
def test_a_server_does_not_end_with_the_chief(start, role):
    """Nobody ever connects to it, and nothing tells it that nobody will."""
    env = loopback_pods.parameter_servers()[role][0]
    code = (
        "import tensorflow as tf\n"
        "r = tf.distribute.cluster_resolver.TFConfigClusterResolver()\n"
        "s = tf.distribute.Server(r.cluster_spec(), job_name='ps', task_index=0)\n"
        "print('SERVES', flush=True)\n"
        "s.join()"
    )
    task = start("plain-ps", ["-c", code], env=env)
    task.says("SERVES")
    time.sleep(5)
    assert task.code is None
    task.send(signal.SIGTERM)
    assert task.wait(timeout=20) == -15
