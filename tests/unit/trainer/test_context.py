import dataclasses

import pytest

from unit.trainer.outside import task_context


def test_a_context_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        task_context(worker=("w:1",)).attempt = 3


@pytest.mark.parametrize(
    ("role", "index", "cluster", "chief"),
    [
        ("worker", 0, {"worker": ("w-{0..1}.j:1",)}, True),
        ("worker", 1, {"worker": ("w-{0..1}.j:1",)}, False),
        ("worker", 0, {"chief": ("c.j:1",), "worker": ("w.j:1",)}, False),
        ("chief", 0, {"chief": ("c.j:1",), "worker": ("w.j:1",)}, True),
        ("ps", 0, {"chief": ("c.j:1",), "ps": ("p.j:1",)}, False),
        ("evaluator", 0, {"worker": ("w.j:1",), "evaluator": ("e.j:1",)}, False),
    ],
)
def test_one_task_saves_and_prints(role, index, cluster, chief):
    assert task_context(role, index, **cluster).is_chief is chief


def test_the_evaluator_is_no_member_of_the_training():
    context = task_context("evaluator", 0, worker=("w-{0..1}.j:1",), evaluator=("e.j:1",))
    assert context.members == 2
    assert context.address == "e.j:1"


def test_a_task_alone_is_not_distributed():
    assert not task_context(worker=("w:1",)).is_distributed
    assert task_context(chief=("c:1",), worker=("w:1",)).is_distributed


def test_chief_and_workers_compute_gradients_and_parameter_servers_do_not():
    context = task_context("chief", chief=("c:1",), worker=("w-{0..2}:1",), ps=("p:1",))
    assert context.replicas == 4
    assert context.members == 5


@pytest.mark.parametrize(("text", "attempt"), [("", 0), ("0", 0), ("3", 3), ("-1", 0), ("x", 0)])
def test_the_attempt_counts_from_zero_and_nonsense_is_the_first(text, attempt):
    assert task_context(worker=("w:1",), environ={"TFADMIT_ATTEMPT": text}).attempt == attempt


def test_the_directories_lie_below_the_one_that_is_named():
    assert task_context(worker=("w:1",)).directories.logs == "/workspace/output/logs"
    context = task_context(worker=("w:1",), environ={"TFADMIT_OUTPUT_DIR": "/data/run 7"})
    assert context.directories.checkpoints == "/data/run 7/checkpoints"
    assert context.directories.model == "/data/run 7/model"
