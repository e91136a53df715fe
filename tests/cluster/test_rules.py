"""Each rule's examples at `kubectl apply`: the sentence that was promised, or none."""

import pytest
import yaml

import builders
from builders import make_trainer_job
from cluster import support
from tfadmit_webhook import policy

pytestmark = pytest.mark.usefixtures("tfadmit")
EXAMPLES = support.ROOT / "webhook/tfadmit_webhook/policy/examples"
GOLDEN = support.ROOT / "tests/golden/policy"
RULES = [rule for rule in policy.rules() if "runtime" in rule.subjects]
BY_ID = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
# As much of a warning, and of all together, as the API server passes on in any case.
WARNING, WARNINGS = 256, 4096


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
        shown = sentence if len(sentence) <= WARNING else sentence.replace(f": {rule.why};", ";")
        assert f"Warning: {shown}\n" in result.stderr


@BY_ID
def test_a_passing_example_is_accepted_in_silence(cluster, namespace, rule):
    result = apply(cluster, namespace, f"{rule.id}-passing")
    assert (result.returncode, result.stderr) == (0, "")


def test_more_warnings_than_the_api_server_passes_on_are_counted(cluster, namespace):
    content = yaml.safe_load((EXAMPLES / "TFA008-passing.yaml").read_text())
    content["kind"] = "TrainingRuntime"
    content["metadata"]["namespace"] = namespace
    (job,) = content["spec"]["template"]["spec"]["replicatedJobs"]
    del job["template"]["spec"]["backoffLimit"]
    labels = builders.LABEL | {"tfadmit.dev/role": "worker"}
    workers = [make_trainer_job(f"w{number}", step=None, labels=labels) for number in range(40)]
    for worker in workers:
        del worker["template"]["spec"]["backoffLimit"]
    content["spec"]["template"]["spec"]["replicatedJobs"] += workers
    result = support.applied(cluster, content)
    assert result.returncode == 0, result.stderr
    *told, last = [line.removeprefix("Warning: ") for line in result.stderr.splitlines()]
    assert all("TFA008" in line and line.endswith("; fix: `backoffLimit: 0`") for line in told)
    assert last == f"... and {41 - len(told)} more: `tfadmit lint FILE` shows all"
    assert WARNINGS - 2 * WARNING < sum(map(len, [*told, last])) <= WARNINGS
