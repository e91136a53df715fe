"""The command `tfadmit lint`: places, forms of output, exit codes."""

import json
import textwrap

import jsonschema
import pytest
import yaml

from tfadmit_client import cli
from tfadmit_client.lint import output
from tfadmit_webhook import policy

GOOD = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: good
  labels: {trainer.kubeflow.org/framework: tensorflow}
spec:
  mlPolicy: {numNodes: 2}
  template:
    spec:
      network:
        publishNotReadyAddresses: true
      failurePolicy: {maxRestarts: 2}
      replicatedJobs:
        - name: node
          template:
            metadata:
              labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}
            spec:
              backoffLimit: 0
              template:
                spec:
                  containers:
                    - name: node
                      image: x
"""
BAD = GOOD.replace("name: good", "name: bad").replace(
    "publishNotReadyAddresses: true", "enableDNSHostnames: true"
)
WARNED = GOOD.replace("backoffLimit: 0", "backoffLimit: 3").replace("name: good", "name: warned")
OTHER = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def files(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.yaml").write_text(text)
        return [f"{name}.yaml" for name in texts]

    return files


def run(capsys, *argv):
    code = cli.main(["lint", *argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_good_runtime_is_told_so(write, capsys):
    assert run(capsys, *write(good=GOOD)) == (
        0,
        "0 violations, 0 warnings in 1 object; 0 without rules skipped\n",
        "",
    )


def test_a_finding_has_file_line_and_column(write, capsys):
    code, out, _ = run(capsys, *write(bad=BAD))
    assert code == 1
    # the field is not there, so its nearest parent is shown: `network:`
    first, summary = out.splitlines()
    assert first.startswith(
        "bad.yaml:10:7: error: ClusterTrainingRuntime bad: TFA001 spec.template"
    )
    assert summary == "1 violation, 0 warnings in 1 object; 0 without rules skipped"


def test_warnings_alone_are_no_failure(write, capsys):
    code, out, _ = run(capsys, *write(warned=WARNED))
    assert code == 0
    assert out.startswith("warned.yaml:19:15: warning: ClusterTrainingRuntime warned: TFA008 ")


def test_other_kinds_and_frameworks_are_skipped_and_counted(write, capsys):
    torch = BAD.replace("framework: tensorflow", "framework: torch").replace("bad", "torch")
    _, out, _ = run(capsys, *write(a=f"{OTHER}---\n{torch}---\n{GOOD}"))
    assert out == "0 violations, 0 warnings in 1 object; 2 without rules skipped\n"


def test_places_are_right_in_every_document_of_a_stream_and_in_lists(write, capsys):
    items = textwrap.indent(BAD, "  ")
    listed = "apiVersion: v1\nkind: List\nitems:\n- " + items.strip() + "\n"
    _, out, _ = run(capsys, *write(a=f"{GOOD}---\n{OTHER}---\n{listed}"))
    line = len(GOOD.splitlines()) + 1 + len(OTHER.splitlines()) + 1 + 3 + 10
    assert out.startswith(f"a.yaml:{line}:9: error")


def test_json_has_places_too(tmp_path, capsys):

    content = {"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(BAD)]}
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(content, indent=1))
    _, out, _ = run(capsys, str(path))
    (line,) = [at for at, text in enumerate(path.read_text().splitlines(), 1) if "network" in text]
    assert out.startswith(f"{path}:{line}:")


def test_findings_are_ordered_by_file_and_line(write, capsys):
    _, out, _ = run(capsys, *write(z=WARNED, a=BAD.replace("backoffLimit: 0", "backoffLimit: 1")))
    assert [line.rpartition(": TFA")[0].partition(": ")[0] for line in out.splitlines()[:-1]] == [
        "z.yaml:19:15",
        "a.yaml:10:7",
        "a.yaml:19:15",
    ]


def test_the_levels_are_those_of_the_settings(write, capsys):
    write(s="policies: {TFA001: warn, TFA008: deny}")
    bad = write(bad=BAD)
    assert run(capsys, *bad, "--settings", "s.yaml")[0] == 0
    assert run(capsys, *write(warned=WARNED), "--settings", "s.yaml")[0] == 1


def test_json_output_has_all_that_is_known(write, capsys):
    _, out, _ = run(capsys, *write(bad=BAD), "-o", "json")
    document = json.loads(out)
    (found,) = document["findings"]
    assert found["rule"] == "TFA001"
    assert found["path"] == "spec.template.spec.network.publishNotReadyAddresses"
    assert (found["file"], found["line"], found["column"]) == ("bad.yaml", 10, 7)
    assert (document["judged"], document["skipped"]) == (1, 0)


def test_sarif_names_every_rule_and_place(write, capsys):
    _, out, _ = run(capsys, *write(bad=BAD, warned=WARNED), "-o", "sarif")
    (log,) = json.loads(out)["runs"]
    assert [rule["id"] for rule in log["tool"]["driver"]["rules"]] == list(policy.ids())
    assert [(item["ruleId"], item["level"]) for item in log["results"]] == [
        ("TFA001", "error"),
        ("TFA008", "warning"),
    ]
    jsonschema.validate(log["results"], SARIF_RESULTS)


EXEMPT = """\
exemptions:
- {rule: TFA001, name: bad, namespace: default, reason: never}
- rule: TFA001
  name: ba*
  reason: |
    moves
    in May
"""


@pytest.fixture
def exempting(write):
    write(s=EXEMPT)
    return [*write(bad=BAD), "--settings", "s.yaml"]


def test_what_is_exempted_is_shown_with_the_reason_and_counted(exempting, capsys):
    code, out, _ = run(capsys, *exempting)
    assert code == 0
    first, summary = out.splitlines()
    assert first.startswith(
        "bad.yaml:10:7: exempted (moves in May): ClusterTrainingRuntime bad: TFA001 spec"
    )
    assert summary == "0 violations, 0 warnings, 1 exempted in 1 object; 0 without rules skipped"


def test_what_is_exempted_is_told_to_machines_as_such(exempting, capsys):
    _, out, _ = run(capsys, *exempting, "-o", "json")
    (found,) = json.loads(out)["findings"]
    assert (found["level"], found["exempted"]) == ("off", "moves in May")
    _, out, _ = run(capsys, *exempting, "-o", "sarif")
    (log,) = json.loads(out)["runs"]
    jsonschema.validate(log["results"], SARIF_RESULTS)
    (result,) = log["results"]
    assert result["level"] == "note"
    assert result["suppressions"] == [{"kind": "external", "justification": "moves in May"}]
    _, out, _ = run(capsys, *exempting, "-o", "github")
    assert out.startswith("::notice file=bad.yaml,line=10,col=7,title=TFA001 ")


# the part of the SARIF 2.1.0 schema that concerns results
SARIF_RESULTS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["message", "ruleId", "level", "locations"],
        "properties": {
            "level": {"enum": ["none", "note", "warning", "error"]},
            "message": {"required": ["text"]},
            "locations": {
                "items": {
                    "properties": {
                        "physicalLocation": {
                            "required": ["artifactLocation", "region"],
                            "properties": {
                                "region": {
                                    "properties": {
                                        "startLine": {"type": "integer", "minimum": 1},
                                        "startColumn": {"type": "integer", "minimum": 1},
                                    }
                                }
                            },
                        }
                    }
                }
            },
        },
    },
}


def test_github_annotations_are_escaped(write, capsys):
    _, out, _ = run(capsys, *write(bad=BAD), "-o", "github")
    first = out.splitlines()[0]
    assert first.startswith(
        "::error file=bad.yaml,line=10,col=7,title=TFA001 publish-not-ready-addresses::"
    )
    assert output._data("a%\nb") == "a%25%0Ab"
    assert output._property("a:b,c") == "a%3Ab%2Cc"


def test_broken_yaml_is_told_with_file_line_and_reason(write, capsys):
    code, _, err = run(capsys, *write(broken="kind: [\n"))
    assert code == 2
    assert err.startswith("tfadmit lint: error: broken.yaml:")


def test_nothing_to_read_is_a_mistake(capsys):
    assert run(capsys)[0] == 2
    assert run(capsys, "no-such-file.yaml")[0] == 2


# --- TrainJobs ---------------------------------------------------------------------------------

TRAINJOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: mnist
spec:
  runtimeRef:
    name: good
  trainer:
    numNodes: 0
"""


def test_a_trainjob_is_judged_when_its_runtime_is_among_the_files(write, capsys):
    long = TRAINJOB.replace("mnist", "x" * 50)
    code, out, _ = run(capsys, *write(job=long, runtime=GOOD))
    first, second, summary = out.splitlines()
    assert code == 1
    assert first.startswith(f"job.yaml:4:3: error: TrainJob default/{'x' * 50}: TFA014 metadata.n")
    assert second.startswith("job.yaml:9:5: warning: ")
    assert "TFA016 spec.trainer.numNodes is 0" in second
    assert summary == "1 violation, 1 warning in 2 objects; 0 without rules skipped"


@pytest.mark.parametrize(
    "text",
    [
        TRAINJOB,
        TRAINJOB + "---\n" + GOOD.replace("name: good", "name: another"),
        TRAINJOB + "---\n" + GOOD.replace("framework: tensorflow", "framework: torch"),
        TRAINJOB.replace("    name: good", "    name: good\n    kind: TrainingRuntime")
        + "---\n"
        + GOOD,
    ],
    ids=["alone", "another runtime", "another framework", "another kind"],
)
def test_a_trainjob_without_a_tensorflow_runtime_among_the_files_is_skipped(write, capsys, text):
    code, out, _ = run(capsys, *write(a=text))
    assert code == 0
    assert out.startswith("0 violations, 0 warnings in ")


def test_a_namespaced_runtime_is_found_in_the_trainjobs_namespace_only(write, capsys):
    job = TRAINJOB.replace("    name: good", "    name: good\n    kind: TrainingRuntime")
    runtime = GOOD.replace("ClusterTrainingRuntime", "TrainingRuntime")
    assert "1 warning in 2 objects" in run(capsys, *write(a=f"{job}---\n{runtime}"))[1]
    elsewhere = runtime.replace("  name: good", "  name: good\n  namespace: other")
    assert "0 warnings in 1 object" in run(capsys, *write(a=f"{job}---\n{elsewhere}"))[1]


# --- explain ------------------------------------------------------------------------------------


def explain(capsys, *argv):
    code = cli.main(["explain", *argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("word", ["TFA007", "tfa007", "success-policy"])
def test_a_rule_is_explained_with_examples(capsys, word):
    code, out, _ = explain(capsys, word)
    assert code == 0
    assert out.startswith("TFA007 success-policy, level deny\n\nA successPolicy does not wait")
    assert "# failing\napiVersion" in out
    assert "# passing\napiVersion" in out


def test_without_a_rule_they_are_listed(capsys):
    _, out, _ = explain(capsys)
    assert [line.split()[0] for line in out.splitlines()] == list(policy.ids())


def test_an_unknown_rule_is_told_with_the_known_ones(capsys):
    code, _, err = explain(capsys, "TFA999")
    assert code == 2
    assert "there is no rule 'TFA999'; the rules are TFA001" in err


def test_the_page_of_rules_is_the_generated_one(capsys, request):
    _, out, _ = explain(capsys, "--markdown")
    page = request.config.rootpath / "docs" / "rules.md"
    assert out == page.read_text(), "write it anew: tfadmit explain --markdown > docs/rules.md"


OVERRIDES = """\
overrides:
  - namespaceSelector: {matchLabels: {tier: sandbox}}
    policies: {TFA001: warn}
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {tier: sandbox}}\n"
TEAM = BAD.replace("ClusterTrainingRuntime", "TrainingRuntime").replace(
    "name: bad", "name: bad\n  namespace: team"
)


@pytest.mark.parametrize("command", ["lint", "preview"])
@pytest.mark.parametrize(
    ("runtime", "options", "code"),
    [
        (TEAM, [], 1),  # nobody knows the labels: the strictest level
        (f"{TEAM}---\n{NAMESPACE}", [], 0),
        (f"{TEAM}---\n{NAMESPACE.replace('sandbox', 'prod')}", [], 1),
        (TEAM, ["-n", "team", "--namespace-labels", "tier=sandbox,x="], 0),
        (TEAM, ["--namespace-labels", "tier=sandbox"], 1),  # those of `default`
        (f"{BAD}---\n{NAMESPACE}", ["--namespace-labels", "tier=sandbox"], 1),
    ],
)
def test_levels_follow_the_labels_that_files_and_options_state(
    write, capsys, command, runtime, options, code
):
    runtimes, settings = write(runtime=runtime, settings=OVERRIDES)
    named = ["-f", runtimes] if command == "preview" else [runtimes]
    assert cli.main([command, *named, "--settings", settings, *options]) == code
    assert "TFA001" in capsys.readouterr().out


def test_labels_that_are_none_are_a_mistake(write, capsys):
    (file,) = write(good=GOOD)
    code, _, err = run(capsys, file, "--namespace-labels", "tier")
    assert code == 2
    assert "write key=value" in err
