"""The runtimes that Kubeflow Trainer itself ships: none is TensorFlow's, and none is touched."""

import copy

import pytest
import yaml

import admission
from cluster import support
from harness import upstream
from tfadmit_client.files import manifest
from tfadmit_client.lint import linting
from tfadmit_webhook.settings import Settings


@pytest.fixture(scope="module")
def files(cluster):
    return upstream.trainer_runtimes()


def contents(files):
    return [yaml.safe_load(path.read_text()) for path in files]


def test_there_are_the_five_of_other_frameworks_and_their_variants(files):
    frameworks = {
        item["metadata"]["labels"]["trainer.kubeflow.org/framework"] for item in contents(files)
    }
    assert {"torch", "deepspeed", "mlx", "jax", "xgboost"} <= frameworks
    assert "tensorflow" not in frameworks
    assert len(files) >= 5


def test_the_webhooks_would_let_them_pass_unchanged(files):
    for content in contents(files):
        for path in ("/mutate/runtimes", "/validate/runtimes"):
            decision = admission.decide(path, content)
            assert decision.allowed
            assert [*decision.patch, *decision.warnings] == []


def test_the_api_server_does_not_even_ask_about_them(cluster, tfadmit, files):
    def made():
        specs = [cluster.apply(copy.deepcopy(item), dry_run=True)[0] for item in contents(files)]
        return [(item["spec"], item["metadata"]["labels"]) for item in specs]

    with_us = made()
    with tfadmit.stopped():
        assert made() == with_us
    for content in contents(files):
        result = support.applied(cluster, content, dry_run=True)
        assert result.returncode == 0
        assert "TFA" not in result.stderr


def test_lint_has_no_finding_and_counts_them_as_skipped(files):
    found = manifest.read([str(path) for path in files], namespace="default")
    result = linting.lint(found, settings=Settings())
    assert (result.findings, result.judged, result.skipped) == ((), 0, len(files))


def test_the_shipped_runtimes_get_no_finding_at_all(cluster, namespace, tfadmit, capsys):
    paths = sorted((support.ROOT / "deploy/runtimes").glob("tensorflow-*.yaml"))
    found = manifest.read([str(path) for path in paths], namespace="default")
    result = linting.lint(found, settings=Settings())
    assert (result.findings, result.judged) == ((), len(paths))
    for path in paths:
        content = yaml.safe_load(path.read_text())
        content["kind"] = "TrainingRuntime"
        content["metadata"]["namespace"] = namespace
        answer = support.applied(cluster, content)
        assert (answer.returncode, answer.stderr) == (0, "")
