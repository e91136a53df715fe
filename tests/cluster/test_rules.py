"""Each rule's examples at `kubectl apply`: the sentence that was promised, or none."""

import json

import pytest
import yaml

import builders
from builders import make_trainer_job
from cluster import support
from tfadmit_client import cli
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


def promised(rule, level):
    """The sentences of the golden file, as much of each as the API server passes on."""
    lines = (GOLDEN / f"{rule.id}.txt").read_text().splitlines()
    sentences = [line.partition(": ")[2] for line in lines if line.startswith(level)]
    if level == "deny":
        return sentences
    return [
        text if len(text) <= WARNING else text.replace(f": {rule.why};", ";") for text in sentences
    ]


@BY_ID
def test_a_failing_example_gets_exactly_its_sentences(cluster, namespace, rule):
    result = apply(cluster, namespace, f"{rule.id}-failing")
    denied, warned = promised(rule, "deny"), promised(rule, "warn")
    assert result.returncode == (1 if denied else 0), result.stderr
    assert support.warnings(result) == warned
    assert support.denied(result) == denied


@BY_ID
def test_lint_finds_the_same_rules_as_the_api_server(cluster, namespace, rule, capsys):
    file = EXAMPLES / f"{rule.id}-failing.yaml"
    code = cli.main(["lint", "-o", "json", str(file)])
    findings = json.loads(capsys.readouterr().out)["findings"]
    result = apply(cluster, namespace, f"{rule.id}-failing")
    told = [*support.warnings(result), *support.denied(result)]
    assert sorted(item["rule"] for item in findings) == sorted(text.split()[0] for text in told)
    assert code == result.returncode


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
