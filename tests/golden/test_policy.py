"""Golden rules: the examples that ship with each rule, and the sentences that they get.

`policy/<id>.txt` has the findings of the failing example; the passing one has none of any rule.
`policy/lint.txt` has the places that `tfadmit lint` gives for them, each with the line itself.
"""

import json
import pathlib

import pytest
import yaml

import admission
from tfadmit_client.files import manifest
from tfadmit_client.lint import linting
from tfadmit_webhook import policy
from tfadmit_webhook.settings import Settings

HERE = pathlib.Path(__file__).parent / "policy"
EXAMPLES = pathlib.Path(policy.__file__).parent / "examples"
RULES = policy.rules()
BY_ID = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)


def example(rule, kind):
    """The runtime, and where the rule is about TrainJobs only, the TrainJob."""
    runtime, *rest = yaml.safe_load_all((EXAMPLES / f"{rule.id}-{kind}.yaml").read_text())
    assert bool(rest) == ("runtime" not in rule.subjects)
    # as the API server sees it: the label has reached the pods
    return [admission.admit(runtime, path="/mutate/runtimes"), *rest]


def findings(objects):
    runtime, *rest = objects
    found = policy.judge_runtime(runtime, settings=Settings())
    for trainjob in rest:
        named = trainjob["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
        found += policy.judge_trainjob(trainjob, on=runtime if named else None, settings=Settings())
    return found


@BY_ID
def test_the_failing_example_breaks_this_rule_and_no_other(rule, update_golden):
    found = findings(example(rule, "failing"))
    assert {item.rule.id for item in found} == {rule.id}
    text = "".join(f"{item.level}: {item.sentence}\n" for item in found)
    golden = HERE / f"{rule.id}.txt"
    if update_golden:
        golden.write_text(text)
    assert text == golden.read_text()


@BY_ID
def test_the_passing_example_breaks_no_rule(rule):
    assert findings(example(rule, "passing")) == ()


def linted(rule):
    """What lint finds in the failing example: rule, line, column, and what stands in that line."""
    file = EXAMPLES / f"{rule.id}-failing.yaml"
    found = manifest.read([str(file)], namespace="default")
    if rule.id == "TFA015":
        # Only a cluster can say that a runtime is missing; lint passes such a TrainJob by.
        assert linting.lint(found, settings=Settings()).skipped == 1
        return
    lines = file.read_text().splitlines()
    for item in linting.lint(found, settings=Settings()).findings:
        line, column = item.position.line, item.position.column
        yield f"{item.violation.rule.id} {line}:{column} {lines[line - 1].strip()}"


def test_lint_points_at_the_line_that_breaks_the_rule(update_golden):
    text = "".join(f"{line}\n" for rule in RULES for line in linted(rule))
    golden = HERE / "lint.txt"
    if update_golden:
        golden.write_text(text)
    assert text == golden.read_text()


@BY_ID
def test_the_examples_differ_only_in_what_the_rule_is_about(rule):
    failing, passing = (json.dumps(example(rule, kind)) for kind in ("failing", "passing"))
    assert failing != passing


def test_no_example_is_left_over():
    names = {f"{rule.id}-{kind}" for rule in RULES for kind in ("failing", "passing")}
    assert {path.stem for path in EXAMPLES.glob("*")} == names
