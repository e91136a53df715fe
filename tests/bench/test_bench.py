import json

import pytest

from bench import guard, large, report, rounds, specimens


@pytest.mark.parametrize("size", [4096, 30 * 1024, 1024 * 1024])
def test_a_pod_has_the_size_that_is_asked_for(size: int) -> None:
    pod = specimens.pod(tasks=64, index=3, size=size)
    assert size <= len(json.dumps(pod, separators=(",", ":"))) <= size * 1.05


def test_every_specimen_of_a_case_is_another_task() -> None:
    for tasks in (8, 64, 1024):
        case = specimens.pods(tasks=tasks, size=4096)
        hosts = {one.review["request"]["object"]["spec"]["hostname"] for one in case.specimens}
        assert len(hosts) == 8


def test_a_ratio_compares_samples_of_the_same_round() -> None:
    assert rounds.spread([2.0, 1.0, 4.0]) == rounds.Spread(median=2.0, low=1.0, high=4.0)
    assert report.with_spread(rounds.spread([2.0, 1.0, 4.0])) == "2.00 (1.00-4.00)"


@pytest.mark.parametrize(("calls", "code"), [(109, 0), (111, 1), (50, 0)])
def test_the_guard_fails_at_ten_per_cent_more(calls: int, code: int) -> None:
    known = {"a path": {"calls": 100}}
    assert guard.judge({"a path": {"calls": calls}}, known) == code


def test_a_path_without_a_committed_figure_fails_the_guard() -> None:
    assert guard.judge({"a new path": {"calls": 1}}, {}) == 1


def test_calls_of_a_review_are_counted_alike_each_time() -> None:
    work = guard.paths()["64 tasks, 4 KB"]
    assert guard.measure(work)["calls"] == guard.measure(work)["calls"] > 100


@pytest.mark.skipif(guard.PYTHON not in guard.known(), reason="no figures for this Python")
def test_no_review_does_over_a_tenth_more_than_when_it_was_last_looked_at() -> None:
    """Calls and memory, which are the same on every machine; `make bench-check` counts more."""
    found = {name: guard.measure(work) for name, work in guard.paths().items()}
    assert guard.judge(found, guard.known()[guard.PYTHON]) == 0


def test_above_the_limit_a_pod_does_not_grow_with_its_job() -> None:
    found = [large.job(tasks) for tasks in (1_024, 4_096, 10_000)]
    assert not any(one.inline for one in found)
    # A number has a digit more here and there; the names of ten thousand tasks have 600,000.
    assert max(one.added for one in found) - min(one.added for one in found) < 20


def test_a_job_above_the_limit_takes_as_many_bytes_as_it_has_tasks() -> None:
    per_task = [one.total / one.tasks for one in map(large.job, (1_024, 4_096, 10_000))]
    assert max(per_task) < 1.01 * min(per_task)


def test_no_job_takes_more_than_its_limit_per_pod() -> None:
    for tasks in large.SIZES:
        found = large.job(tasks)
        # TF_CONFIG and the host lists of workers, and the few variables beside them.
        assert found.added < (2 * 32 * 1024 + 1024 if found.inline else 1024)
