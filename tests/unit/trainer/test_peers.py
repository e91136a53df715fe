import pytest

from tfadmit_trainer import peers
from tfadmit_trainer.peers import Peer
from unit.trainer.outside import task_context


def some(role, *indexes):
    return [Peer(role=role, index=index, address=f"{role}-{index}.job:1") for index in indexes]


@pytest.mark.parametrize(
    ("tasks", "text"),
    [
        ([], ""),
        (some("worker", 3, 7), "worker 3, 7"),
        (some("worker", 3, 4), "worker 3, 4"),
        (some("worker", 9, 8, 7, 3), "worker 3, 7-9"),
        (some("ps", 0) + some("worker", 1) + some("chief", 0), "chief 0, worker 1, ps 0"),
        (some("worker", *range(10_000)), "worker 0-9999"),
        (
            some("worker", *range(0, 40, 2)),
            "worker 0, 2, 4, 6, 8, 10, 12, 14, 16, 18 and 10 more",
        ),
    ],
)
def test_tasks_are_named_in_short(tasks, text):
    assert peers.describe(tasks) == text


def test_the_members_are_all_but_the_evaluator():
    context = task_context(
        "ps", 0, chief=("c:1",), worker=("w-{0..1}:1",), ps=("p:1",), evaluator=("e:1",)
    )
    members = peers.members(context)
    assert [str(peer) for peer in members] == ["chief 0", "worker 0", "worker 1", "ps 0"]
    assert [str(peer) for peer in members if peers.is_own(peer, context=context)] == ["ps 0"]
    assert (members[1].host, members[1].port) == ("w-0", 1)
