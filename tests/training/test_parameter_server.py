"""Parameter servers, coordinated by a chief: nothing is left running, whatever way it ends."""

import signal
from pathlib import Path

import pytest

from training import loopback_pods, tasks

ROLES = [str(Path(__file__).parent / "scripts" / "roles.py")]


@pytest.fixture
def training(start):
    def begin(*, workers=2, servers=ROLES, others=ROLES, **env):
        return {
            f"{role}-{index}": start(
                f"{role}-{index}",
                servers if role in ("ps", "worker") else others,
                env={**own, **env},
            )
            for role, environments in loopback_pods.parameter_servers(workers=workers).items()
            for index, own in enumerate(environments)
        }

    return begin


def all_end(running, *, timeout=60):
    codes = tasks.ended(running.values(), timeout=timeout)
    assert not any(map(tasks.alive, running.values()))
    return dict(zip(running, codes, strict=True))


SERVERS = {"worker-0": 0, "worker-1": 0, "ps-0": 0, "evaluator-0": 0}


def test_a_training_that_ends_well(training):
    running = training(EPOCHS="3")
    assert all_end(running, timeout=90) == {"chief-0": 0, **SERVERS}
    assert "CHIEF DONE" in running["chief-0"].text
    assert "EVALUATED ckpt-3" in running["evaluator-0"].text
    assert "ends, because the chief has ended" in running["ps-0"].text


def test_a_chief_without_the_library_raises_an_exception(training):
    """And its servers are `tfadmit-run --server`."""
    running = training(servers=["-m", "tfadmit_trainer", "--server"], PLAIN="1", FAIL="1")
    assert all_end(running, timeout=90) == {"chief-0": 1, **SERVERS}


def test_one_command_is_right_for_every_role(training, tensorflow):
    """As the roles of the runtime tensorflow-ps get it from a TrainJob."""
    command = ["-m", "tfadmit_trainer", "--server", "--", str(tensorflow.python), *ROLES]
    running = training(servers=command, others=command, EPOCHS="2")
    assert all_end(running, timeout=90) == {"chief-0": 0, **SERVERS}
    assert "EVALUATED ckpt-2" in running["evaluator-0"].text


def test_the_chief_is_killed(training):
    running = training(EPOCHS="1000", PAUSE="0.2")
    running["chief-0"].says("EPOCH 2")
    running["chief-0"].send(signal.SIGKILL)
    assert all_end(running) == {"chief-0": -9, **SERVERS}


def test_a_worker_is_killed(training):
    running = training(EPOCHS="15", PAUSE="0.5")
    running["chief-0"].says("EPOCH 2")
    running["worker-1"].send(signal.SIGKILL)
    codes = all_end(running, timeout=90)
    print(codes, running["chief-0"].text)
    assert codes.pop("worker-1") == -9
    # The others go on without it: in a cluster its pod's failure starts all of them again.
    assert codes == {"chief-0": 0, "worker-0": 0, "ps-0": 0, "evaluator-0": 0}


@pytest.mark.timeout(400)
def test_servers_are_asked_to_end(training):
    running = training(workers=1, EPOCHS="1000", PAUSE="0.2")
    running["chief-0"].says("EPOCH 1 ")
    for name in ("ps-0", "worker-0"):
        running[name].send(signal.SIGTERM)
        assert running[name].wait(timeout=10) == 143
    # Without its variables the chief cannot go on, and says so in a code that starts all again. On
    # a busy machine TensorFlow takes the failure for a passing one for minutes first.
    assert running["chief-0"].wait(timeout=300) == 76
    assert running["evaluator-0"].wait(timeout=30) == 0


def test_a_chief_whose_server_never_comes(start):
    env = loopback_pods.parameter_servers()["chief"][0]
    task = start("chief-0", ROLES, env={**env, "TFADMIT_START_TIMEOUT": "4"})
    assert task.wait(timeout=60) == 75
    assert "worker 0, 1, ps 0 (3 of 4) not found in 4 s by chief 0" in task.text
    assert "nothing accepts connections on their ports" in task.text


def test_a_server_whose_chief_never_comes(start):
    env = loopback_pods.parameter_servers()["ps"][0]
    task = start("ps-0", ROLES, env={**env, "TFADMIT_START_TIMEOUT": "4"})
    assert task.wait(timeout=60) == 75
    assert "ps 0 gave up: the chief (127.0.0.1:" in task.text
