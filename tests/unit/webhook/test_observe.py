"""Metrics and log lines."""

import io
import json
import logging

import prometheus_client
import pytest

import builders
from tfadmit_webhook import decision, json_log, observe, review
from tfadmit_webhook.decision import Decision, Operation, Reason, Refusal

SECRET = "hunter2"


@pytest.fixture
def registry():
    return prometheus_client.CollectorRegistry()


@pytest.fixture
def observer(registry):
    return observe.Observer(registry)


@pytest.fixture
def lines():
    """What is logged in a test, as objects; the process' own handlers are put back."""
    root = logging.getLogger()
    kept = root.handlers, root.level
    stream = io.StringIO()
    json_log.install(stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    root.handlers, level = kept
    root.setLevel(level)
    logging.captureWarnings(capture=False)


def request(**fields):
    pod = builders.make_pod(containers=[{"name": "node", "env": [{"name": "T", "value": SECRET}]}])
    return review.parse(builders.body(builders.make_review(pod, **fields)))


def test_a_decision_is_counted_by_hook_outcome_and_dry_run(observer, registry):
    observer.decided(
        request(dry_run=True), decision.allow(Reason.MUTATED), hook="mutate-pods", seconds=0.003
    )
    labels = {
        "hook": "mutate-pods",
        "operation": "CREATE",
        "decision": "allowed",
        "reason": "mutated",
        "dry_run": "true",
    }
    assert registry.get_sample_value("tfadmit_admission_requests_total", labels) == 1
    name, hook = "tfadmit_admission_duration_seconds_bucket", {"hook": "mutate-pods"}
    assert registry.get_sample_value(name, {**hook, "le": "0.0005"}) == 0
    assert registry.get_sample_value(name, {**hook, "le": "0.002"}) == 0
    assert registry.get_sample_value(name, {**hook, "le": "0.005"}) == 1


def test_every_metric_that_is_promised_is_there(observer, registry):
    observer.rejected(status=415, message="no", path="/x")
    observer.looked_up(kind="jobset", source="live", outcome="found", seconds=0.1)
    observer.cache_changed(objects=3)
    observer.watch_changed(up=True)
    with observer.in_flight():
        assert registry.get_sample_value("tfadmit_in_flight") == 1
    assert registry.get_sample_value("tfadmit_in_flight") == 0
    assert registry.get_sample_value("tfadmit_rejected_requests_total", {"status": "415"}) == 1
    lookup = {"object": "jobset", "source": "live", "outcome": "found"}
    assert registry.get_sample_value("tfadmit_lookups_total", lookup) == 1
    seconds = "tfadmit_lookup_duration_seconds_count"
    assert registry.get_sample_value(seconds, {"object": "jobset"}) == 1
    assert registry.get_sample_value("tfadmit_cache_objects") == 3
    assert registry.get_sample_value("tfadmit_cache_synced") == 1
    assert b"tfadmit_build_info{" in prometheus_client.generate_latest(registry)


def test_one_line_per_decision_says_who_what_and_how_long(observer, lines):
    observer.decided(request(), decision.allow(Reason.MUTATED), hook="mutate-pods", seconds=0.0123)
    (line,) = lines()
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "event": "decision",
        "uid": "review-uid-1",
        "hook": "mutate-pods",
        "operation": "CREATE",
        "kind": "Pod",
        "namespace": "team",
        "name": "mnist-node-0-0-",
        "user": "system:serviceaccount:kube-system:job-controller",
        "dry_run": False,
        "allowed": True,
        "reason": "mutated",
        "patch_ops": 0,
        "ms": 12.3,
    }


def test_a_refusal_is_a_warning_with_its_message(observer, lines):
    refusal = decision.refuse(Refusal(reason=Reason.JOBSET_MISSING, message="it is gone"))
    observer.decided(request(name="given"), refusal, hook="mutate-pods", seconds=0)
    (line,) = lines()
    assert (line["level"], line["message"], line["name"]) == ("warning", "it is gone", "given")


def test_a_fault_carries_its_traceback_as_a_field(observer, lines):
    with pytest.raises(ZeroDivisionError) as caught:
        print(1 / 0)
    observer.decided(request(), decision.fault(), hook="h", seconds=0, fault=caught.value)
    (line,) = lines()
    assert line["level"] == "error"
    assert line["traceback"].startswith("Traceback (most recent call last)")
    assert "ZeroDivisionError" in line["traceback"]


def test_no_environment_value_and_no_object_is_logged(observer, lines):
    admission = request()
    patch = [Operation(op="add", path="/x", value=SECRET)]
    observer.decided(admission, decision.patched(patch), hook="mutate-pods", seconds=0)
    observer.decided(admission, decision.fault(), hook="mutate-pods", seconds=0)
    assert SECRET not in json.dumps(lines())


def test_a_refused_request_is_logged_with_its_path(observer, lines):
    observer.rejected(status=415, message="no", path="/mutate/pods")
    (line,) = lines()
    assert (line["event"], line["status"], line["path"]) == ("rejected", 415, "/mutate/pods")


def test_long_texts_are_cut_and_odd_characters_stay_on_one_line(observer, lines):
    message = "a\nb\ud800" + "x" * 5000
    refusal = Decision(allowed=False, reason=Reason.NO_CLUSTER, message=message, code=403)
    observer.decided(request(), refusal, hook="h", seconds=0)
    (line,) = lines()
    assert line["message"].startswith("a\nb\ud800xxx")
    assert line["message"].endswith("… (5,004 characters)")
    assert len(line["message"]) < 2100


def test_records_of_others_are_json_too(lines):
    logging.getLogger("somebody").warning("it is %s", "hot")
    (line,) = lines()
    assert (line["event"], line["logger"], line["message"]) == ("log", "somebody", "it is hot")


def test_violations_are_counted_by_rule_and_level(observer, registry):
    result = Decision(
        allowed=False,
        reason=Reason.POLICY_VIOLATED,
        code=403,
        violations=(("TFA001", "deny"), ("TFA008", "warn"), ("TFA001", "deny")),
    )
    observer.decided(request(), result, hook="validate-runtimes", seconds=0)
    name = "tfadmit_policy_violations_total"
    assert registry.get_sample_value(name, {"rule": "TFA001", "level": "deny"}) == 2
    assert registry.get_sample_value(name, {"rule": "TFA008", "level": "warn"}) == 1


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (decision.patched([Operation(op="add", path="/x", value=1)]), "patched"),
        (decision.allow(Reason.NOT_OURS), "allowed"),
        (decision.refuse(Refusal(reason=Reason.JOBSET_MISSING, message="gone")), "denied"),
        (decision.fault(), "fault"),
    ],
)
def test_a_decision_is_one_of_four_and_an_odd_operation_is_no_label(
    observer, registry, result, kind
):
    observer.decided(request(operation="EXPLODE"), result, hook="h", seconds=0)
    labels = {
        "hook": "h",
        "operation": "OTHER",
        "decision": kind,
        "dry_run": "false",
        "reason": result.reason.value,
    }
    assert registry.get_sample_value("tfadmit_admission_requests_total", labels) == 1


def test_the_age_of_the_cache_begins_anew_with_every_word_of_the_api_server():
    now, registry = [100.0], prometheus_client.CollectorRegistry()
    observer = observe.Observer(registry, clock=lambda: now[0])
    age = "tfadmit_cache_age_seconds"
    assert registry.get_sample_value(age) != registry.get_sample_value(age), "not a number yet"
    observer.heard()
    now[0] += 7
    assert registry.get_sample_value(age) == 7
    observer.heard()
    assert registry.get_sample_value(age) == 0
