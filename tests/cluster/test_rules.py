"""Each rule's examples at `kubectl apply`: the sentence that was promised, or none."""

import pytest
import yaml

from cluster import support
from tfadmit_webhook import policy

pytestmark = pytest.mark.usefixtures("tfadmit")
EXAMPLES = support.ROOT / "webhook/tfadmit_webhook/policy/examples"
GOLDEN = support.ROOT / "tests/golden/policy"
RULES = [rule for rule in policy.rules() if "runtime" in rule.subjects]
BY_ID = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
# The API server shows no more of a warning.
WARNING = 256


def apply(cluster, namespace, name):
    """Apply an example in the test's namespace."""
    content = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    content["kind"] = "TrainingRuntime"
    content["metadata"]["namespace"] = namespace
    return cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(content), check=False)


@BY_ID
def test_a_failing_example_gets_exactly_its_sentences(cluster, namespace, rule):
    expected = (GOLDEN / f"{rule.id}.txt").read_text().splitlines()
    result = apply(cluster, namespace, f"{rule.id}-failing")
    denied = [line.partition(": ")[2] for line in expected if line.startswith("deny")]
    warned = [line.partition(": ")[2] for line in expected if line.startswith("warn")]
    assert result.returncode == (1 if denied else 0), result.stderr
    for sentence in denied:
        assert sentence in result.stderr
    for sentence in warned:
        assert f"Warning: {sentence[:WARNING]}" in result.stderr


@BY_ID
def test_a_passing_example_is_accepted_in_silence(cluster, namespace, rule):
    result = apply(cluster, namespace, f"{rule.id}-passing")
    assert (result.returncode, result.stderr) == (0, "")
