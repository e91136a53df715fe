"""Which strategy a task needs, and what is refused before TensorFlow is used."""

import socket

import pytest

from harness import loopback
from tfadmit_trainer import exits, ports, start, strategy
from tfadmit_trainer.contract import Cluster
from tfadmit_trainer.fault import SetupError
from unit.trainer import trainings

PS = Cluster(chief=("c:1",), worker=("w:1", "w:2"), ps=("p:1",), evaluator=("e:1",))


@pytest.mark.parametrize(
    ("cluster", "role", "kind"),
    [
        (Cluster(worker=("w:1",)), "worker", "none"),
        (Cluster(worker=("w:1", "w:2")), "worker", "mirrored"),
        (Cluster(chief=("c:1",), worker=("w:1",)), "chief", "mirrored"),
        (Cluster(worker=("w:1", "w:2"), evaluator=("e:1",)), "evaluator", "none"),
        (PS, "chief", "parameter-server"),
        (PS, "ps", "parameter-server"),
        (PS, "worker", "parameter-server"),
        (PS, "evaluator", "none"),
    ],
)
def test_the_kind_of_a_tasks_strategy(cluster, role, kind):
    assert strategy.kind(trainings.task(cluster, role=role)) == kind


def test_another_number_of_replicas_than_expected_is_refused():
    task = trainings.task(Cluster(worker=("w:1", "w:2")))
    strategy.check_replicas(16, context=task, gpus=8)
    strategy.check_replicas(2, context=task, gpus=0)
    with pytest.raises(strategy.StrategyError, match="1 replicas in sync, but 2 workers with 1"):
        strategy.check_replicas(1, context=task, gpus=0)


def test_the_deadline_of_a_start_is_the_users_to_set():
    assert start.seconds({}) == 900
    assert start.seconds({"TFADMIT_START_TIMEOUT": "60"}) == 60
    with pytest.raises(SetupError, match="TFADMIT_START_TIMEOUT='soon' is no number of seconds"):
        start.seconds({"TFADMIT_START_TIMEOUT": "soon"})


def test_a_port_in_use_ends_the_process(monkeypatch):
    left = []
    monkeypatch.setattr(exits, "leave", lambda code, sentence: left.append((code, sentence)))
    port = loopback.free_port()
    task = trainings.task(Cluster(worker=(f"127.0.0.1:{port}", "w:2")))
    ports.require(task)
    assert left == []
    with socket.create_server(("127.0.0.1", port)):
        ports.require(task)
    ((code, sentence),) = left
    assert code == 78
    assert sentence.startswith(f"port {port} of worker 0 is in use (Address already in use): end")
