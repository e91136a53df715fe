"""`tfadmit preview` through the command line: what is missing, settings, formats, exit codes."""

import json

import pytest
import yaml

import builders
from tfadmit_client import cli
from tfadmit_client.demo import examples
from tfadmit_client.preview import previewing


def make_trainjob(num_nodes: int = 2) -> builders.Json:
    runtime = {"name": "tensorflow-distributed"}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "mnist", "namespace": "team", "uid": "uid-1"},
        "spec": {"runtimeRef": runtime, "trainer": {"numNodes": num_nodes}},
    }


TRAINJOB = make_trainjob()


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(inside, capsys):
    def run(*objects, options=()):
        (inside / "in.yaml").write_text(yaml.safe_dump_all(objects))
        code = cli.main(["preview", "-f", "in.yaml", *options])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def rows(text):
    """The first three cells of every row."""
    lines = [line.split() for line in text.splitlines() if line.startswith("  ")]
    return [line[:3] for line in lines if len(line) == 7 and line[0] != "POD"]


# --- what is missing ----------------------------------------------------------------------------


def test_a_trainjob_without_its_runtime_is_refused_with_the_command_that_brings_it(run):
    code, out, err = run(TRAINJOB)
    assert (code, out) == (2, "")
    assert err == (
        "tfadmit preview: error: in.yaml:1: TrainJob team/mnist runs on ClusterTrainingRuntime "
        "tensorflow-distributed, which is in none of the files: add its file with -f, or take it "
        "from the cluster:\n"
        "  kubectl get clustertrainingruntime tensorflow-distributed -o yaml | tfadmit preview "
        "-f in.yaml -f -\n"
    )


def test_a_namespaced_runtime_is_looked_for_in_the_trainjob_s_namespace(run):
    reference = {"kind": "TrainingRuntime", "name": "mine"}
    trainjob = {**TRAINJOB, "spec": {"runtimeRef": reference}}
    runtime = builders.make_runtime(name="mine", namespace="other")
    runtime["kind"] = "TrainingRuntime"
    code, _, err = run(trainjob, runtime)
    assert code == 2
    assert "kubectl get trainingruntime mine -n team -o yaml" in err
    runtime["metadata"]["namespace"] = "team"
    assert run(trainjob, runtime)[0] == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({**TRAINJOB, "spec": {}}, "TrainJob team/mnist names no runtime: write spec.runtimeRef"),
        ({**TRAINJOB, "metadata": {}}, "this TrainJob has no name, and its pods are named after"),
    ],
)
def test_an_object_that_cannot_be_expanded_is_named(run, content, words):
    code, _, err = run(content)
    assert code == 2
    assert words in err


def test_files_that_cannot_be_read_are_a_usage_fault(capsys):
    assert cli.main(["preview", "-f", "nope.yaml"]) == 2
    assert "nope.yaml: cannot be read: No such file" in capsys.readouterr().err


def test_without_files_the_usage_is_shown(capsys):
    assert cli.main(["preview"]) == 2
    assert "the following arguments are required: -f/--filename" in capsys.readouterr().err


# --- what is shown ------------------------------------------------------------------------------


def test_a_trainjob_on_its_runtime_shows_its_pods(run):
    code, out, err = run(builders.make_runtime(), TRAINJOB)
    assert (code, err) == (0, "")
    assert rows(out) == [["mnist-node-0-0", "worker", "0"], ["mnist-node-0-1", "worker", "1"]]


def test_objects_of_a_live_cluster_are_shown_once_under_their_owner(run):
    owner = {"kind": "TrainJob", "name": "mnist", "controller": True}
    jobset = builders.make_jobset()
    jobset["metadata"]["ownerReferences"] = [owner]
    code, out, _ = run(builders.make_runtime(), TRAINJOB, jobset)
    assert code == 0
    assert len(rows(out)) == 2
    assert "  JobSet team/mnist: shown as part of TrainJob team/mnist" in out


def test_a_pod_of_a_jobset_in_the_files_finds_it(run):
    pod = builders.make_pod(index=2)
    pod["metadata"]["namespace"] = "team"
    _, out, _ = run(builders.make_jobset(), pod)
    assert rows(out).count(["mnist-node-0-2", "worker", "2"]) == 2


def test_names_that_the_api_server_makes_are_stood_in_for(run):
    jobset = builders.make_jobset(builders.make_replicated_job(completions=1))
    jobset["metadata"] = {"generateName": "run-"}
    _, out, _ = run(jobset)
    assert rows(out) == [["run-xxxxx-node-0-0", "worker", "0"]]


def test_the_namespace_option_counts_where_an_object_states_none(run):
    job = builders.make_job()
    del job["metadata"]["namespace"]
    _, out, _ = run(job, options=["-n", "research"])
    assert "plain-0.plain-svc.research.svc.cluster.local:12345" in out


def test_pods_in_a_namespace_that_the_webhooks_leave_out_are_untouched(run):
    _, out, _ = run(builders.make_job(), options=["-n", "kube-system"])
    assert "left as it is" not in out
    job = builders.make_job()
    job["metadata"]["namespace"] = "kube-system"
    _, out, _ = run(job)
    assert "left as it is: tfadmit's webhooks leave out the namespace kube-system" in out
    assert out.endswith("3 pods: 0 TensorFlow tasks, 3 untouched\n")


@pytest.mark.skipif(not examples.DEPLOY.is_dir(), reason="no repository around the package")
def test_the_namespaces_left_out_are_those_of_the_shipped_webhooks():
    text = (examples.DEPLOY / "base/webhooks.yaml").read_text()
    found = {
        tuple(expression["values"])
        for configuration in yaml.safe_load_all(text)
        for webhook in configuration["webhooks"]
        for expression in webhook.get("namespaceSelector", {}).get("matchExpressions", [])
    }
    assert found == {previewing.EXCLUDED}


def test_big_groups_are_folded_unless_all_is_asked_for(run):
    job = builders.make_job(completions=30)
    _, out, _ = run(job)
    assert len(rows(out)) == 10
    assert "  … 20 more\n" in out
    _, out, _ = run(job, options=["--all"])
    assert len(rows(out)) == 30


def test_a_group_is_not_folded_for_a_few_rows(run):
    assert len(rows(run(builders.make_job(completions=14))[1])) == 14


def test_files_without_pods_say_so(run):
    _, out, _ = run(builders.make_runtime())
    assert out.endswith("no pods: no TrainJob, JobSet, Job or Pod in the files makes any\n")


def test_no_nodes_no_pods(run):
    _, out, _ = run(builders.make_runtime(), make_trainjob(0))
    assert "\n  no pods\n" in out


def test_a_warning_of_the_webhook_is_shown(run):
    pod = builders.make_pod(annotations={"tfadmit.dev/inject": "no"})
    pod["metadata"]["namespace"] = "team"
    _, out, _ = run(builders.make_jobset(), pod)
    assert "* warning: tfadmit.dev/inject is 'no'; only \"false\" leaves a pod out" in out


# --- exit codes ---------------------------------------------------------------------------------


def test_a_refused_runtime_is_exit_code_one_in_every_format(run):
    runtime = builders.make_runtime(network={})
    for output in ("table", "json", "yaml"):
        code, out, err = run(runtime, TRAINJOB, options=["-o", output])
        assert code == 1
        assert "TFA001 spec.template.spec.network" in (out if output == "table" else err)


def test_what_the_cluster_itself_would_refuse_is_exit_code_one(run):
    job = builders.make_job()
    del job["spec"]["completions"]
    code, out, _ = run(job)
    assert code == 1
    assert "the API server refuses Job plain" in out


# --- data ---------------------------------------------------------------------------------------


def test_json_and_yaml_are_the_same_list(run):
    objects = builders.make_runtime(), TRAINJOB
    _, as_json, _ = run(*objects, options=["-o", "json"])
    _, as_yaml, _ = run(*objects, options=["-o", "yaml"])
    entries = json.loads(as_json)
    assert yaml.safe_load(as_yaml) == entries
    assert "&id" not in as_yaml
    first = entries[0]
    assert list(first) == ["pod", "patch", "decision"]
    assert first["decision"] == {"allowed": True, "reason": "mutated"}
    names = [item["name"] for item in first["pod"]["spec"]["containers"][0]["env"]]
    assert names[0] == "TF_TASK_TYPE"
    assert names[-1] == "JOB_COMPLETION_INDEX"


def test_a_refused_pod_is_shown_as_it_was_sent(run):
    pod = builders.make_pod(jobset=None)
    code, out, _ = run(pod, options=["-o", "json"])
    (entry,) = json.loads(out)
    assert code == 1
    assert entry["pod"]["spec"] == pod["spec"]
    assert entry["patch"] == []
    assert entry["decision"]["reason"] == "no-cluster"
    assert entry["decision"]["allowed"] is False


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_nothing_is_an_empty_list(run, output):
    _, out, _ = run(builders.make_runtime(), options=["-o", output])
    assert yaml.safe_load(out) == []


# --- settings -----------------------------------------------------------------------------------


def with_settings(inside, text):
    (inside / "settings.yaml").write_text(text)
    return ["--settings", "settings.yaml"]


def test_settings_are_those_of_the_server(run, inside):
    options = with_settings(inside, "clusterDomain: example.org\ndefaultPort: 2222\n")
    _, out, _ = run(builders.make_jobset(), options=options)
    assert "mnist-node-0-0.mnist.team.svc.example.org:2222" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("clusterDomian: x\n", "settings.yaml: clusterDomian"),
        (
            "policies: {TFA999: deny}\n",
            "settings.yaml: policies.TFA999: no such rule: use TFA001, TFA002",
        ),
    ],
)
def test_faults_in_the_settings_are_told(run, inside, text, words):
    code, _, err = run(builders.make_jobset(), options=with_settings(inside, text))
    assert code == 2
    assert words in err


def test_settings_that_are_not_there_are_told(run):
    code, _, err = run(builders.make_jobset(), options=["--settings", "nope.yaml"])
    assert code == 2
    assert "nope.yaml: the settings cannot be read: No such file or directory" in err


# --- size ---------------------------------------------------------------------------------------


def test_ten_thousand_tasks_take_seconds(run):
    """1.3 s measured on two slow cores; pytest's own limit of a test would catch worse."""
    code, out, _ = run(builders.make_runtime(), make_trainjob(10_000))
    assert code == 0
    assert "  … 9,990 more\n" in out
    assert out.endswith("10,000 pods: 10,000 TensorFlow tasks\n")


# --- what the webhook says to the TrainJob itself -------------------------------------------------


def test_a_trainjob_is_judged_with_its_runtime(run):
    code, out, _ = run(make_trainjob(0), builders.make_runtime())
    assert code == 0
    assert "* TFA016 spec.trainer.numNodes is 0" in out


def test_a_refused_trainjob_counts_as_refused(run, inside):
    (inside / "s.yaml").write_text("policies: {TFA016: deny}")
    code, out, _ = run(make_trainjob(0), builders.make_runtime(), options=["--settings", "s.yaml"])
    assert code == 1
    assert "* TFA016 spec.trainer.numNodes is 0" in out


def test_a_trainjob_of_another_framework_is_not_judged(run):
    labels = {"trainer.kubeflow.org/framework": "torch"}
    _, out, _ = run(make_trainjob(0), builders.make_runtime(labels=labels))
    assert "TFA0" not in out


def test_a_trainjob_in_a_namespace_that_webhooks_leave_out_is_not_judged(run):
    trainjob = make_trainjob(0)
    trainjob["metadata"]["namespace"] = "kube-system"
    _, out, _ = run(trainjob, builders.make_runtime())
    assert "TFA0" not in out


# --- the numbers of roles -------------------------------------------------------------------------


def roles(text, **metadata):
    jobs = [builders.make_replicated_job(name, completions=1) for name in ("worker", "ps")]
    jobset = builders.make_jobset(*jobs)
    jobset["metadata"] |= {"labels": builders.LABEL, **metadata}
    jobset["metadata"]["annotations"] = {"tfadmit.dev/replicas": text}
    return jobset


def test_a_jobset_of_its_own_is_shown_with_its_roles(run):
    code, out, _ = run(roles("ps=2"))
    assert code == 0
    assert ["mnist-ps-0-1", "ps", "1"] in rows(out)
    assert "* roles as tfadmit.dev/replicas asks for: worker 1, ps 2" in out
    assert "* complete when worker is: successPolicy, for these roles" in out


def test_a_jobset_that_is_refused_has_no_pods(run):
    code, out, _ = run(roles("boss=2"))
    assert code == 1
    assert rows(out) == []
    assert (
        "* the JobSet is refused: annotation tfadmit.dev/replicas is 'boss=2': there is no" in out
    )


@pytest.mark.parametrize("metadata", [{"labels": {}}, {"namespace": "kube-system"}])
def test_a_jobset_that_the_webhook_does_not_see_keeps_its_roles(run, metadata):
    _, out, _ = run(roles("ps=2", **metadata))
    assert "mnist-ps-0-1" not in out
    assert "asks for" not in out
