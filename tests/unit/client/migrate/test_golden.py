"""Migrations of whole files: input.yaml in, expected.yaml and expected.txt (the report) out.

`arguments.txt` holds further arguments of the command. `--update-golden` writes both anew.
"""

import json
from pathlib import Path

import pytest
import yaml

import operator_v1
from tfadmit_client import cli
from tfadmit_client.files import yamltext

GOLDEN = Path(__file__).parents[3] / "golden" / "migrate"
CASES = sorted(GOLDEN.iterdir(), key=lambda path: path.name)
# Those with something that TFJob could do and Trainer cannot.
INCOMPLETE = {
    "classification-chief", "coscheduling", "dynamic-exit-codes", "dynamic-workers",
    "gang-unknown", "helpers", "kueue", "mirrored-gpus", "misplaced", "mixed-restarts",
    "run-policy", "summaries", "volcano",
}  # fmt: skip


@pytest.fixture(params=CASES, ids=lambda path: path.name)
def case(request, monkeypatch):
    monkeypatch.chdir(request.param)
    return request.param


def run(capsys, case, *options):
    path = case / "arguments.txt"
    more = path.read_text().split() if path.exists() else []
    code = cli.main(["migrate", "-f", "input.yaml", *more, *options])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def tfjobs(case):
    """The TFJobs of a case, read by another reader than the command's."""
    for document in yaml.safe_load_all((case / "input.yaml").read_text()):
        items = document["items"] if document["kind"] == "List" else [document]
        yield from (item for item in items if item["kind"] == "TFJob")


def test_the_output_and_the_report_are_as_expected(case, capsys, update_golden):
    code, out, report = run(capsys, case)
    for name, text in (("expected.yaml", out), ("expected.txt", report)):
        if update_golden:
            (case / name).write_text(text)
        assert text == (case / name).read_text()
    assert code == 0


def test_strict_fails_where_something_is_not_translated(case, capsys):
    code, out, _ = run(capsys, case, "--strict")
    assert code == (1 if case.name in INCOMPLETE else 0)
    assert out == (case / "expected.yaml").read_text()


def test_json_holds_the_same_objects_and_the_report(case, capsys):
    _, out, _ = run(capsys, case, "-o", "json")
    content = json.loads(out)
    documents = [item.content for item in yamltext.documents((case / "expected.yaml").read_text())]
    assert content["items"] == documents
    assert (content["kind"], content["apiVersion"]) == ("List", "v1")
    counts = [entry["counts"] for entry in content["report"]]
    report = (case / "expected.txt").read_text()
    for count in counts:
        assert f"{count['exactly']} exactly, {count['nearly']} nearly, {count['not']} not" in report


def test_a_runtime_and_a_trainjob_come_of_each_and_nothing_else(case):
    documents = list(yaml.safe_load_all((case / "expected.yaml").read_text()))
    kinds = [document["kind"] for document in documents]
    assert kinds == ["TrainingRuntime", "TrainJob"] * len(list(tfjobs(case)))
    assert {document["apiVersion"] for document in documents} == {"trainer.kubeflow.org/v1alpha1"}


def test_lint_finds_nothing_that_the_report_does_not_name(case, capsys):
    code = cli.main(["lint", "-o", "json", "expected.yaml"])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert code == 0
    report = (case / "expected.txt").read_text()
    for finding in found:
        assert finding["level"] == "warn"
        assert f"{finding['object'].split()[0]} {finding['path']}\n" in report
        assert f"{finding['rule']}: " in report


def test_the_pods_are_those_that_the_training_operator_made(case, capsys):
    assert cli.main(["preview", "-f", "expected.yaml", "-o", "json"]) == 0
    pods = [entry["pod"] for entry in json.loads(capsys.readouterr().out)]
    for tfjob in tfjobs(case):
        metadata = tfjob["metadata"]
        name = "digits-2" if case.name == "gang-restart" else metadata.get("name", "second")
        ours = [pod for pod in pods if of(pod, name)]
        assert ours
        assert operator_v1.differences(tfjob, ours) == []


def test_the_gangs_recipe_is_that_of_the_shipped_runtimes():
    """But for the container's name in TFJobs, which only the job `node` changes."""
    runtimes = GOLDEN.parents[2] / "deploy" / "runtimes"
    shipped = yaml.safe_load((runtimes / "tensorflow-distributed.yaml").read_text())
    ours = yaml.safe_load_all((GOLDEN / "gang-restart" / "expected.yaml").read_text())
    (migrated,) = [item for item in ours if item["kind"] == "TrainingRuntime"]
    assert recipe(migrated) == recipe(shipped)


def recipe(runtime):
    jobset = runtime["spec"]["template"]["spec"]
    (job,) = [job for job in jobset["replicatedJobs"] if job["name"] == "node"]
    spec = job["template"]["spec"]
    return jobset["failurePolicy"]["rules"], spec["podFailurePolicy"], spec["backoffLimit"]


def of(pod, name):
    return pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"].startswith(name)
