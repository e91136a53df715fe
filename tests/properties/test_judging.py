"""Valid objects with one to three mutations: whatever comes of them is judged, never a fault.

A mutation drops, replaces or doubles any node with any JSON. The originals are the examples of all
rules and the shipped runtimes, so that every rule has something to look at.
"""

import copy
import json
import pathlib

import jsonpatch
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import admission
import builders
from tfadmit_client.files import manifest
from tfadmit_client.lint import linting, output
from tfadmit_webhook import facts, policy, review
from tfadmit_webhook.selector import LabelSelector
from tfadmit_webhook.settings import Exemption, Override, Settings

pytestmark = pytest.mark.timeout(1800)
ROOT = pathlib.Path(__file__).parents[2]
FILES = [
    *sorted((pathlib.Path(policy.__file__).parent / "examples").glob("*.yaml")),
    *sorted((ROOT / "deploy/runtimes").glob("*.yaml")),
    *sorted((ROOT / "deploy/examples/cifar10/runtime").glob("tensorflow-*.yaml")),
]
OBJECTS = [item for path in FILES for item in yaml.safe_load_all(path.read_text()) if item]
RUNTIMES = [item for item in OBJECTS if item["kind"].endswith("Runtime")]
TRAINJOBS = [item for item in OBJECTS if item["kind"] == "TrainJob"]
# Everything that levels can depend on.
SETTINGS = Settings(
    overrides=(
        Override(
            namespace_selector=LabelSelector(match_labels={"a": "b"}), policies={"TFA001": "off"}
        ),
    ),
    exemptions=(Exemption(rule="TFA002", name="*", reason="because", namespace="*"),),
)

words = st.sampled_from(["node", "ps", "tensorflow", "", "1", "Never"]) | st.text(max_size=5)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def mutated(draw, originals):
    content = copy.deepcopy(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 3))):
        *above, last = draw(st.sampled_from(sorted(builders.places(content), key=str)))
        parent = content
        for step in above:
            parent = parent[step]
        kind = draw(st.sampled_from(["drop", "replace", "double"]))
        if kind == "drop" and (above or len(content) > 1):
            del parent[last]
        elif kind == "double" and isinstance(parent, list):
            parent.insert(draw(st.integers(0, len(parent))), copy.deepcopy(parent[last]))
        elif kind == "double":
            name = draw(words | st.sampled_from(sorted(parent)))
            parent[name] = copy.deepcopy(parent[last])
        else:
            parent[last] = draw(json_values)
    return content


class Reader(facts.StaticReader):
    """Knows one runtime, whatever is asked for; labels can be read or not."""

    def __init__(self, on=None, labels=None):
        super().__init__()
        self.on, self.labels = on, labels

    def runtime(self, **_):
        return self.on

    def namespace_labels(self, **_):
        if self.labels is None:
            raise facts.LookupFailedError("no")
        return self.labels


def decide(path, content, old, reader):
    """Judge a creation and an update; an answer comes of it in any case."""
    given_context = admission.context(reader=reader, settings=SETTINGS)
    for request in ({"operation": "CREATE"}, {"operation": "UPDATE", "old": old}):
        decision = admission.decide(path, content, given=given_context, **request)
        json.dumps(review.render(decision, uid="u"))
        yield decision


labels = st.none() | st.sampled_from([{}, {"a": "b"}])


@given(mutated(RUNTIMES), mutated(RUNTIMES), labels)
def test_any_runtime_gets_an_answer_and_a_patch_that_applies(new, old, known):
    reader = Reader(labels=known)
    for decision in decide("/mutate/runtimes", new, old, reader):
        assert decision.allowed
        once = jsonpatch.apply_patch(copy.deepcopy(new), list(decision.patch))
        for again in decide("/mutate/runtimes", once, old, reader):
            assert list(again.patch) == []
        for judged in decide("/validate/runtimes", once, old, reader):
            assert judged.code in (200, 403)
            assert judged.allowed or judged.message


@given(mutated(TRAINJOBS), mutated(TRAINJOBS), mutated(RUNTIMES) | st.none(), labels)
def test_any_trainjob_on_any_runtime_gets_an_answer(new, old, on, known):
    for decision in decide("/validate/trainjobs", new, old, Reader(on, known)):
        assert decision.code in (200, 403)
        assert decision.allowed or decision.message


@given(st.lists(mutated(RUNTIMES) | mutated(TRAINJOBS), min_size=1, max_size=3), labels)
def test_lint_has_a_place_for_every_finding_or_says_what_is_no_object(objects, known):
    text = yaml.safe_dump_all(objects, allow_unicode=True)
    faults: list[str] = []
    # As `manifest.read` does for each file.
    found = manifest._parsed(text, name="x.yaml", namespace="default", faults=faults)
    namespaces = {} if known is None else {"default": known}
    result = linting.lint(found, settings=SETTINGS, namespaces=namespaces)
    for item in result.findings:
        assert 1 <= item.position.line <= text.count("\n") + 1
    for write in output.WRITERS.values():
        assert write(result)
    assert all(line.startswith("x.yaml:") for line in faults)
