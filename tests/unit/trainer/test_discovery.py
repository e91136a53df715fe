"""Counting workers by DNS, with the log lines that users of the recipe know."""

import pytest

from tfadmit_trainer import discovery
from tfadmit_trainer.fault import DiscoveryError, SetupError
from unit.trainer.outside import FOUND, UNKNOWN, Outside

COMPLETIONS = [f"mnist-node-0-{i}.mnist" for i in range(4)]
REPLICAS = [f"mnist-node-{j}-0.mnist" for j in range(4)]


@pytest.fixture
def outside():
    return Outside()


def appearing(outside, arrivals):
    """Names that are there from a given second on."""
    begin = outside.clock.now
    return lambda name: FOUND if outside.clock.now - begin >= arrivals.get(name, 1e9) else UNKNOWN


def test_the_lines_of_the_log_are_those_of_the_recipe(outside):
    names = appearing(outside, {COMPLETIONS[0]: 0, COMPLETIONS[1]: 5})
    task = discovery.discover_workers(outside.host(name="mnist-node-0-0", names=names))
    assert outside.said == [
        "[Discovery] attempt 1/60: found 1 workers, retrying in 5s...",
        "[Discovery] attempt 2/60: found 2 workers, retrying in 5s...",
        "[Discovery] Discovered 2 workers via DNS",
    ]
    assert task.cluster.worker == ("mnist-node-0-{0..1}.mnist:12345",)


def test_a_count_is_taken_when_it_was_the_same_twice(outside):
    names = appearing(outside, dict(zip(COMPLETIONS, [0, 0, 5, 10], strict=True)))
    task = discovery.discover_workers(outside.host(name="mnist-node-0-0", names=names))
    assert task.cluster.size("worker") == 4
    assert outside.clock.slept == [5.0] * 3


@pytest.mark.parametrize(("name", "index"), [("mnist-node-0-2", 2), ("mnist-node-0-0", 0)])
def test_one_job_of_many_tasks_has_its_index_at_the_end(outside, name, index):
    task = discovery.discover_workers(outside.host(name=name, names=COMPLETIONS))
    assert (task.role, task.index, task.cluster.size("worker")) == ("worker", index, 4)


@pytest.mark.parametrize(("name", "index"), [("mnist-node-2-0", 2), ("mnist-node-0-0", 0)])
def test_many_jobs_of_one_task_have_their_index_before_it(outside, name, index):
    task = discovery.discover_workers(outside.host(name=name, names=REPLICAS))
    assert (task.index, task.cluster.worker) == (index, ("mnist-node-{0..3}-0.mnist:12345",))


def test_both_patterns_at_once_cannot_be_told_apart(outside):
    host = outside.host(name="mnist-node-0-0", names=[*COMPLETIONS, *REPLICAS])
    with pytest.raises(SetupError, match="several jobs of several tasks"):
        discovery.discover_workers(host)


def test_a_host_with_both_indexes_is_refused_before_any_question(outside):
    with pytest.raises(SetupError, match="both a job and a task index"):
        discovery.discover_workers(outside.host(name="mnist-node-1-1", names=COMPLETIONS))
    assert outside.asked == []


def test_after_sixty_attempts_it_ends_with_what_to_do(outside):
    with pytest.raises(DiscoveryError) as caught:
        discovery.discover_workers(outside.host(name="mnist-node-0-0", names=COMPLETIONS[:1]))
    assert outside.clock.slept == [5.0] * 59
    assert "found 1 workers by DNS in 60 attempts, at least 2 workers are needed" in str(
        caught.value
    )
    assert "set env TF_NUM_WORKERS=1" in str(caught.value)
    assert caught.value.exit_code == 75


def test_where_not_even_the_first_name_is_there_the_runtime_is_named(outside):
    with pytest.raises(DiscoveryError, match="publishNotReadyAddresses: true"):
        discovery.discover_workers(outside.host(name="mnist-node-0-0"))


def test_a_stated_number_is_waited_for_and_taken_at_once(outside):
    names = appearing(outside, dict(zip(COMPLETIONS, [0, 0, 20, 20], strict=True)))
    host = outside.host({"TF_NUM_WORKERS": "4"}, name="mnist-node-0-1", names=names)
    assert discovery.discover_workers(host).cluster.size("worker") == 4
    assert outside.clock.slept == [5.0] * 4


def test_a_stated_single_worker_asks_nobody(outside):
    host = outside.host({"TF_NUM_WORKERS": "1"}, name="mnist-node-0-0")
    task = discovery.discover_workers(host)
    assert task.cluster.worker == ("mnist-node-0-0.mnist:12345",)
    assert outside.asked == []


def test_a_stated_number_that_excludes_this_host_is_refused(outside):
    host = outside.host({"TF_NUM_WORKERS": "2"}, name="mnist-node-0-3", names=COMPLETIONS)
    with pytest.raises(SetupError, match="TF_NUM_WORKERS=2, but this host is mnist-node-0-3"):
        discovery.discover_workers(host)


def test_the_namespace_makes_the_full_name(outside):
    files = {"/var/run/secrets/kubernetes.io/serviceaccount/namespace": "team\n"}
    full = "mnist-node-0-{}.mnist.team.svc.cluster.local"
    names = [full.format(i) for i in range(2)]
    task = discovery.discover_workers(outside.host(name="mnist-node-0-0", names=names, files=files))
    assert task.cluster.worker == (full.format("{0..1}") + ":12345",)


def test_a_name_that_was_found_is_not_asked_for_again(outside):
    discovery.discover_workers(outside.host(name="mnist-node-0-1", names=COMPLETIONS))
    assert outside.asked.count(COMPLETIONS[0]) == 1


@pytest.mark.parametrize(
    ("name", "claims"),
    [("a-node-0-0", True), ("a-b-node-12-3", True), ("node-0-0", False), ("a-worker-0-0", False)],
)
def test_only_a_task_of_a_trainjob_is_called_like_that(outside, name, claims):
    assert discovery.claims(outside.host(name=name)) is claims
