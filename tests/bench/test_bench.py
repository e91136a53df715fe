import base64
import json

import pytest

from bench import (
    apiserver,
    burst,
    cluster_figures,
    guard,
    large,
    nodes,
    report,
    rounds,
    specimens,
    stored,
)


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


_CALL = "apiserver_admission_webhook_admission_duration_seconds"
_REQUEST = "apiserver_request_duration_seconds"
_METRICS = f"""\
# TYPE {_CALL} histogram
{_CALL}_bucket{{name="ours",operation="CREATE",rejected="false",type="admit",le="0.005"}} 10
{_CALL}_bucket{{name="ours",operation="CREATE",rejected="false",type="admit",le="+Inf"}} 20
{_CALL}_sum{{name="ours",operation="CREATE",rejected="false",type="admit"}} 1.5
{_CALL}_count{{name="ours",operation="CREATE",rejected="false",type="admit"}} 20
{_CALL}_sum{{name="ours",operation="CREATE",rejected="true",type="admit"}} 0.5
{_CALL}_count{{name="ours",operation="CREATE",rejected="true",type="admit"}} 1
{_CALL}_count{{name="theirs",operation="CREATE",rejected="false",type="admit"}} 400
apiserver_admission_webhook_rejection_count{{name="ours",rejection_code="403",type="admit"}} 1
{_REQUEST}_sum{{dry_run="",resource="pods",scope="resource",subresource="",verb="POST"}} 4
{_REQUEST}_count{{dry_run="",resource="pods",scope="resource",subresource="",verb="POST"}} 10
{_REQUEST}_count{{dry_run="All",resource="pods",scope="resource",subresource="",verb="POST"}} 70
{_REQUEST}_count{{dry_run="",resource="pods",scope="resource",subresource="binding",verb="POST"}} 80
{_REQUEST}_count{{dry_run="",resource="jobs",scope="resource",subresource="",verb="POST"}} 90
"""


def test_calls_of_other_webhooks_are_not_counted() -> None:
    calls = apiserver.counted(_METRICS, webhook="ours").calls
    assert (calls.count, calls.seconds, calls.refused) == (21, 2.0, 1)
    assert calls.buckets == {0.005: 10, float("inf"): 20}


def test_dry_runs_bindings_and_other_objects_are_no_creations_of_pods() -> None:
    creations = apiserver.counted(_METRICS, webhook="ours").creations
    assert (creations.count, creations.seconds) == (10, 4)


def test_only_what_came_after_the_first_look_counts() -> None:
    found = apiserver.counted(_METRICS, webhook="ours")
    assert found.since(apiserver.counted("", webhook="ours")) == found
    nothing = found.since(found)
    assert (nothing.calls.count, nothing.calls.refused, nothing.creations.seconds) == (0, 0, 0)


def _sample(*, created: float, running: float, own_cpu: float = 0.0) -> cluster_figures.Sample:
    return cluster_figures.Sample(
        pods=100,
        took=burst.Took(created=created, running=running),
        counted=apiserver.counted(_METRICS, webhook="ours"),
        fetched=0,
        own_cpu=own_cpu,
        all_cpu=10,
    )


def test_a_webhook_is_compared_with_none_of_the_same_round() -> None:
    samples = {
        "none": [_sample(created=10, running=20), _sample(created=50, running=100)],
        "ours": [_sample(created=20, running=30), _sample(created=100, running=150)],
    }
    ours = cluster_figures.spreads(samples, base="none")["ours"]
    assert ours["pods/s created"] == rounds.Spread(median=3.0, low=1.0, high=5.0)
    assert ours["pods/s created, of none"] == rounds.Spread(median=0.5, low=0.5, high=0.5)
    assert ours["all run, s, of none"] == rounds.Spread(median=1.5, low=1.5, high=1.5)


def test_the_share_of_a_webhook_is_of_all_processor_time_and_of_the_time_of_creations() -> None:
    samples = {"none": [_sample(created=10, running=20, own_cpu=2)]}
    found = cluster_figures.spreads(samples, base="none")["none"]
    assert found["% of CPU"].median == 20
    assert found["% of creates"].median == 50


def test_a_table_shows_no_calls_where_there_is_no_webhook() -> None:
    samples = {name: [_sample(created=10, running=20)] for name in ("none", "ours")}
    found = cluster_figures.spreads(samples, base="none")
    speed, called, processor = cluster_figures.tables(found, base="none").split("\n\n")
    for table, webhooks in ((speed, 2), (called, 1), (processor, 2)):
        head, _, *rows = table.splitlines()
        assert len(rows) == webhooks
        assert {row.count("|") for row in rows} == {head.count("|")}


def test_the_bytes_of_a_pod_in_etcd_are_those_of_its_newest_version() -> None:
    values = [(b"k8s\x00" + b"x" * 96, 3), (b"k8s\x00" + b"x" * 196, 5)]
    answer = {
        "kvs": [
            {"value": base64.b64encode(value).decode(), "version": str(version)}
            for value, version in values
        ]
    }
    found = stored.read(answer)
    assert found == stored.Stored(objects=2, total=300, writes=4.0)
    assert found.each == 150


def test_etcd_without_any_pods_is_no_error() -> None:
    assert stored.read({}) == stored.Stored(objects=0, total=0, writes=0.0)


@pytest.mark.parametrize("pods", [1, 100, 1_000, 10_000])
def test_the_fake_nodes_take_more_pods_than_there_are_at_a_time(pods: int) -> None:
    assert nodes.needed(pods) * 110 > pods
