"""Levels by the labels of the namespace: which override counts, and what an unknown label does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import admission
from builders import LABEL, make_runtime, make_trainjob
from tfadmit_webhook import facts, policy
from tfadmit_webhook.selector import LabelSelector, Requirement
from tfadmit_webhook.settings import Exemption, Override, Settings

VALIDATE = "/validate/runtimes"
UNREADABLE = "asked for Namespace team-a: may not get namespaces"


def runtime(kind="TrainingRuntime"):
    """A runtime that breaks TFA001 only."""
    content = make_runtime(network={})
    content["kind"] = kind
    content["metadata"] |= {"name": "a", "labels": dict(LABEL)}
    if kind == "TrainingRuntime":
        content["metadata"]["namespace"] = "team-a"
    return content


def override(labels, **policies):
    return Override(namespace_selector=LabelSelector(match_labels=labels), policies=policies)


class Reader(facts.StaticReader):
    """Counts questions for namespaces; without labels they cannot be answered."""

    def __init__(self, labels=None, **options):
        super().__init__(**options)
        self.labels = labels
        self.asked = []

    def namespace_labels(self, *, name, timeout):
        self.asked.append((name, timeout))
        if self.labels is None:
            raise facts.LookupFailedError(UNREADABLE)
        return self.labels


def judge(content, reader, *overrides, path=VALIDATE, **options):
    settings = Settings(overrides=overrides, **options)
    given = admission.context(settings=settings, reader=reader)
    namespace = "team-a" if content["kind"] != "ClusterTrainingRuntime" else ""
    return admission.decide(path, content, given=given, namespace=namespace)


SANDBOX = {"tier": "sandbox"}


def test_an_override_changes_the_level_in_the_namespaces_that_it_selects():
    softer = override(SANDBOX, TFA001="warn")
    assert not judge(runtime(), Reader({"tier": "prod"}), softer).allowed
    decision = judge(runtime(), Reader(SANDBOX), softer)
    assert decision.allowed
    assert decision.warnings[0].startswith("TFA001 ")


def test_of_those_that_state_the_rule_the_first_counts():
    overrides = [
        override(SANDBOX, TFA002="off"),
        override(SANDBOX, TFA001="warn"),
        override({}, TFA001="off"),
    ]
    assert judge(runtime(), Reader(SANDBOX), *overrides).warnings
    assert judge(runtime(), Reader({}), *overrides).warnings == ()


def test_an_override_may_be_stricter_than_the_general_level():
    decision = judge(runtime(), Reader({}), override({}, TFA001="deny"), policies={"TFA001": "off"})
    assert not decision.allowed


def test_the_name_of_the_namespace_is_a_label_of_it():
    named = override({"kubernetes.io/metadata.name": "team-a"}, TFA001="off")
    assert judge(runtime(), Reader({}), named).allowed


def test_a_runtime_of_the_cluster_has_no_namespace_and_nobody_is_asked():
    reader = Reader(SANDBOX)
    decision = judge(runtime("ClusterTrainingRuntime"), reader, override({}, TFA001="off"))
    assert (decision.allowed, reader.asked) == (False, [])


def test_without_overrides_nobody_is_asked():
    reader = Reader(SANDBOX)
    judge(runtime(), reader)
    assert reader.asked == []


def test_the_namespace_is_asked_for_once_within_the_time_that_is_left():
    reader = Reader(SANDBOX)
    judge(runtime(), reader, override({}, TFA001="off"))
    assert reader.asked == [("team-a", 5.0)]


@pytest.mark.parametrize(
    ("general", "stated", "allowed"),
    [
        ({}, {"TFA001": "off"}, False),
        ({"TFA001": "off"}, {"TFA001": "deny"}, False),
        ({"TFA001": "warn"}, {"TFA001": "off"}, True),
    ],
)
def test_when_labels_cannot_be_read_the_strictest_level_is_taken_and_told(general, stated, allowed):
    decision = judge(runtime(), Reader(), override(SANDBOX, **stated), policies=general)
    assert decision.allowed is allowed
    assert decision.warnings[0].startswith("tfadmit took the strictest level of each rule")
    assert UNREADABLE in decision.warnings[0]


def test_labels_that_change_nothing_are_not_missed():
    content = make_runtime()
    content["kind"] = "TrainingRuntime"
    decision = judge(content, Reader(), override(SANDBOX, TFA001="off"))
    assert (decision.allowed, decision.warnings) == (True, ())


def test_an_exemption_outlasts_every_override():
    exemption = Exemption(rule="TFA001", name="a", reason="moves in May")
    decision = judge(runtime(), Reader({}), override({}, TFA001="deny"), exemptions=(exemption,))
    assert decision.allowed


@pytest.mark.parametrize("labels", [SANDBOX, None])
def test_trainjobs_are_judged_by_the_same_levels(labels):
    on = make_runtime()
    on["kind"] = "TrainingRuntime"
    on["metadata"] |= {"name": "tensorflow", "namespace": "team-a"}
    job = make_trainjob(name="x" * 60, namespace="team-a")
    job["spec"]["runtimeRef"] = {"name": "tensorflow", "kind": "TrainingRuntime"}
    decision = judge(
        job,
        Reader(labels, runtimes=[on]),
        override(SANDBOX, TFA014="warn"),
        path="/validate/trainjobs",
    )
    assert decision.allowed is (labels is not None)
    assert any("TFA014" in line for line in decision.warnings) is (labels is not None)


words = st.sampled_from(["a", "b", "c"])
selectors = st.builds(
    LabelSelector,
    match_labels=st.dictionaries(words, words, max_size=1),
    match_expressions=st.lists(
        st.builds(
            Requirement,
            key=words,
            operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
            values=st.lists(words, min_size=1, max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
)
levels = st.sampled_from(["deny", "warn", "off"])
STRICTNESS = ["off", "warn", "deny"]


@given(
    st.lists(st.tuples(selectors, levels), max_size=3),
    levels,
    st.dictionaries(words, words, max_size=3),
)
def test_unknown_labels_are_never_judged_more_mildly_than_any_known_ones(stated, general, labels):
    settings = Settings(
        policies={"TFA001": general},
        overrides=tuple(
            Override(namespace_selector=selector, policies={"TFA001": level})
            for selector, level in stated
        ),
    )

    def strictness(labels):
        found = policy.judge_runtime(runtime(), settings=settings, labels=labels)
        return max((STRICTNESS.index(item.level) for item in found), default=0)

    assert strictness(None) >= strictness(labels)
