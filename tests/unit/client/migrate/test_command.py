"""`tfadmit migrate`: what it reads, what it refuses, where it writes, how it ends."""

import io
import json

import pytest
import yaml

from tfadmit_client import cli, fault
from tfadmit_client.cluster import listing
from tfadmit_client.commands import migrate

POD = {"spec": {"containers": [{"name": "tensorflow", "image": "registry.example.com/a:1"}]}}


def make_tfjob(name="mnist", *, spec=None, **types):
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name},
        "spec": {
            "runPolicy": {"cleanPodPolicy": "Running"},
            **(spec or {}),
            "tfReplicaSpecs": types or {"Worker": {"template": POD}},
        },
    }


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(*objects, name="job.yaml"):
        text = "".join(
            item if isinstance(item, str) else "---\n" + yaml.safe_dump(item, sort_keys=False)
            for item in objects
        )
        (tmp_path / name).write_text(text)
        return name

    return write


@pytest.fixture
def run(capsys):
    def run(*arguments, command=None):
        code = command(arguments) if command else cli.main(["migrate", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def names(text):
    return [(item["kind"], item["metadata"]["name"]) for item in yaml.safe_load_all(text)]


CONTAINERS = "spec.tfReplicaSpecs.Worker.template.spec.containers"


def with_container(**fields):
    return with_pod(containers=[{"name": "tensorflow", "image": "a", **fields}])


def with_pod(**fields):
    return make_tfjob(Worker={"template": {"spec": {**POD["spec"], **fields}}})


WRONG = {
    "no container": (
        make_tfjob(Worker={"template": {"spec": {"containers": [{"name": "main", "image": "a"}]}}}),
        (
            f"job.yaml:13: TFJob default/mnist: {CONTAINERS}: TFJob demands one container "
            "`tensorflow`, here are main: name the one that trains `tensorflow`"
        ),
    ),
    "no image": (
        make_tfjob(Worker={"template": {"spec": {"containers": [{"name": "tensorflow"}]}}}),
        f"job.yaml:14: TFJob default/mnist: {CONTAINERS}[0]: the container has no image",
    ),
    "no template": (
        make_tfjob(Worker={"replicas": 1}),
        (
            f"job.yaml:10: TFJob default/mnist: {CONTAINERS}: TFJob demands one container "
            "`tensorflow`, here are none"
        ),
    ),
    "two chiefs": (
        make_tfjob(Chief={"replicas": 2, "template": POD}),
        (
            "job.yaml:9: TFJob default/mnist: spec.tfReplicaSpecs: there are 2 chief tasks, and "
            "TensorFlow takes one: write `replicas: 1`"
        ),
    ),
    "chief and master": (
        make_tfjob(Chief={"template": POD}, master={"template": POD}),
        "spec.tfReplicaSpecs.master: 'master' and 'Chief' are the same role: keep one",
    ),
    "two evaluators": (
        make_tfjob(Worker={"template": POD}, Evaluator={"replicas": 2, "template": POD}),
        "there are 2 evaluator tasks, and TensorFlow takes one",
    ),
    "one role twice": (
        make_tfjob(Worker={"template": POD}, worker={"template": POD}),
        "spec.tfReplicaSpecs.worker: 'worker' and 'Worker' are the same role: keep one",
    ),
    "nobody trains": (
        make_tfjob(PS={"template": POD}, Worker={"replicas": 0, "template": POD}),
        "there is neither a Chief, a Master nor a Worker with replicas: nobody trains",
    ),
    "negative": (
        make_tfjob(Worker={"replicas": -1, "template": POD}),
        (
            "job.yaml:11: TFJob default/mnist: spec.tfReplicaSpecs.Worker.replicas: is -1; it must "
            "be a number from 0"
        ),
    ),
    "a word for a number": (
        make_tfjob(Worker={"replicas": "2", "template": POD}),
        'spec.tfReplicaSpecs.Worker.replicas: is "2"; it must be a number from 0',
    ),
    "unknown role": (
        make_tfjob(Worker={"template": POD}, Boss={"template": POD}),
        (
            "spec.tfReplicaSpecs.Boss: 'Boss' is no replica type of a TFJob: Chief, Master, "
            "Worker, PS, Evaluator, in any case"
        ),
    ),
    "an empty role": (
        make_tfjob(Worker=None),
        "spec.tfReplicaSpecs.Worker: is empty: write replicas and template",
    ),
    "no roles": (
        make_tfjob(spec={}) | {"spec": {"tfReplicaSpecs": {}}},
        "spec.tfReplicaSpecs: there are no replicas",
    ),
    "restart policy": (
        make_tfjob(Worker={"restartPolicy": "Sometimes", "template": POD}),
        'restartPolicy: is "Sometimes"; it must be one of Never, OnFailure, Always, ExitCode',
    ),
    "clean pod policy": (
        make_tfjob(spec={"runPolicy": {"cleanPodPolicy": "Some"}}),
        'spec.runPolicy.cleanPodPolicy: is "Some"; it must be one of None, Running, All',
    ),
    "success policy": (
        make_tfjob(spec={"successPolicy": "ChiefWorker"}),
        'spec.successPolicy: is "ChiefWorker"; it must be one of AllWorkers',
    ),
    "port": (
        make_tfjob(
            Worker={
                "template": {
                    "spec": {
                        "containers": [
                            POD["spec"]["containers"][0]
                            | {"ports": [{"name": "tfjob-port", "containerPort": "http"}]}
                        ]
                    }
                }
            }
        ),
        f"{CONTAINERS}[0].ports[0].containerPort: 'http' is no port",
    ),
    "name": (
        make_tfjob("1mnist"),
        "metadata.name: '1mnist' is no name of a TFJob: at most 63 small letters",
    ),
    "namespace": (
        make_tfjob() | {"metadata": {"name": "mnist", "namespace": "Team_A"}},
        "metadata.namespace: 'Team_A' is no name of a namespace: at most 63 small letters",
    ),
    "a number as a label": (
        make_tfjob() | {"metadata": {"name": "mnist", "labels": {"run": 1}}},
        'metadata.labels: is {"run": 1}; it must be a map of texts, in quotes where they look',
    ),
    "a command in one text": (
        with_container(command="python train.py"),
        f'{CONTAINERS}[0].command: is "python train.py"; it must be a list of texts, numbers in ',
    ),
    "numbers as arguments": (
        with_container(args=["--epochs", 3]),
        f'{CONTAINERS}[0].args: is ["--epochs", 3]; it must be a list of texts, numbers in quotes',
    ),
    "a number as a variable": (
        with_container(env=[{"name": "EPOCHS", "value": 3}]),
        f"{CONTAINERS}[0].env[0].value: is 3; it must be a text, in quotes where it looks like a",
    ),
    "a variable without a name": (
        with_container(env=[{"value": "3"}]),
        f"{CONTAINERS}[0].env[0]: the variable has no name",
    ),
    "a null variable": (
        with_container(env=[None]),
        f"{CONTAINERS}[0].env: is [null]; it must be a list of maps",
    ),
    "a helper with a text for a list": (
        with_pod(initContainers=[{"name": "get", "image": "a", "volumeMounts": "data"}]),
        'spec.initContainers[0].volumeMounts: is "data"; it must be a list of maps',
    ),
    "a map for a list": (
        with_pod(volumes={"name": "data"}),
        'template.spec.volumes: is {"name": "data"}; it must be a list of maps',
    ),
    "a version that never was": (
        make_tfjob() | {"apiVersion": "kubeflow.org/v2"},
        "job.yaml:2: kubeflow.org/v2 is no version of TFJob: write `apiVersion: kubeflow.org/v1`",
    ),
    "two of one prefix": (
        "---\n".join(
            yaml.safe_dump({**make_tfjob(), "metadata": {"generateName": "mnist-"}})
            for _ in range(2)
        ),
        "its runtime would be mnist, and so is that of job.yaml:1: migrate one of the two by its",
    ),
    "half of a character": (
        json.dumps({**make_tfjob(), "metadata": {"name": "mnist", "annotations": {"a": "\ud83d"}}}),
        r"job.yaml:1: half of a character (\ud800 to \udfff)",
    ),
    "JSON without bottom": (
        '{"kind": "TFJob", "spec": ' + '{"a": ' * 50_000 + "1" + "}" * 50_001,
        "job.yaml:1: nested too deep",
    ),
    "deep": (
        json.dumps(make_tfjob(spec={"note": json.loads("[" * 120 + "]" * 120)})),
        "job.yaml:1: nested too deep: more than 100 levels",
    ),
    "v1beta2": (
        make_tfjob() | {"apiVersion": "kubeflow.org/v1beta2"},
        (
            "job.yaml:2: kubeflow.org/v1beta2 is of a version that ended in 2020: write "
            "`apiVersion: kubeflow.org/v1`, put cleanPodPolicy"
        ),
    ),
    "not a TFJob": (
        {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "mnist"}},
        "there is no TFJob of kubeflow.org in the input, only MPIJob: nothing to migrate",
    ),
    "another TFJob": (
        make_tfjob() | {"apiVersion": "example.com/v1"},
        "there is no TFJob of kubeflow.org in the input, only TFJob: nothing to migrate",
    ),
    "2 MB": (
        make_tfjob(spec={"note": "x" * 2_000_000}),
        "bytes as JSON, and no API server holds an object of more than 1,572,864: move data out",
    ),
    "an alias of itself": (
        "apiVersion: kubeflow.org/v1\nkind: TFJob\nspec: &a {x: *a}\n",
        "job.yaml:3: an alias that contains itself",
    ),
    "aliases without end": (
        "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)),
        "job.yaml:1: aliases that stand for more than ",
    ),
    "no YAML": ("kind: [TFJob\n", "job.yaml:2: while parsing a flow sequence"),
    "nothing": ("", "no Kubernetes object in job.yaml"),
}


@pytest.mark.parametrize(("content", "sentence"), WRONG.values(), ids=WRONG)
def test_what_is_no_tfjob_is_refused_with_a_sentence(files, run, content, sentence):
    code, out, error = run("-f", files(content))
    assert sentence in error
    assert (code, out) == (2, "")
    assert "Traceback" not in error


def test_everything_that_is_wrong_is_said_at_once(files, run):
    good, bad = make_tfjob("good"), make_tfjob("bad", Worker={"replicas": -1, "template": POD})
    worse = make_tfjob("worse", Boss={"template": POD})
    code, out, error = run("-f", files(good, bad, worse))
    assert (code, out) == (2, "")
    first, second = error.splitlines()
    assert "TFJob default/bad: spec.tfReplicaSpecs.Worker.replicas" in first
    assert "TFJob default/worse: spec.tfReplicaSpecs.Boss" in second


def test_anchors_and_merges_are_written_out(files, run):
    text = (
        "apiVersion: kubeflow.org/v1\nkind: TFJob\nmetadata: {name: mnist}\nspec:\n"
        "  runPolicy: {cleanPodPolicy: Running}\n  tfReplicaSpecs:\n    Chief: &pod\n"
        "      template: {spec: {containers: [{name: tensorflow, image: a}]}}\n"
        "    Worker: {<<: *pod, replicas: 2}\n"
    )
    code, out, _ = run("-f", files(text))
    runtime, job = yaml.safe_load_all(out)
    assert (code, job["spec"]["trainer"]) == (0, {"numNodes": 2})
    assert len(runtime["spec"]["template"]["spec"]["replicatedJobs"]) == 2
    assert "&" not in out


def test_other_kinds_are_passed_by_and_counted(files, run):
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "script"}}
    code, out, report = run("-f", files(other, make_tfjob()))
    assert (code, names(out)) == (0, [("TrainingRuntime", "mnist"), ("TrainJob", "mnist")])
    assert report.endswith("1 TFJob translated; 1 object of other kinds passed by\n")


def test_standard_input_and_directories_are_read(files, run, tmp_path, monkeypatch):
    files(make_tfjob("a"), name="a.yml")
    files(json.dumps(make_tfjob("b")), name="b.json")
    assert names(run("-f", ".")[1])[::2] == [("TrainingRuntime", "a"), ("TrainingRuntime", "b")]
    text = yaml.safe_dump(make_tfjob("c")).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    _, out, report = run("-f", "-")
    assert names(out)[0] == ("TrainingRuntime", "c")
    assert "TFJob default/c (standard input:1)" in report


@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump], ids=["json", "yaml"])
def test_a_list_may_be_typed_and_hold_nulls(files, run, write):
    """As `kubectl get --raw` gives it: only the list has a kind."""
    bare = {key: value for key, value in make_tfjob().items() if key in ("metadata", "spec")}
    content = {"apiVersion": "kubeflow.org/v1", "kind": "TFJobList", "items": [None, bare]}
    code, out, _ = run("-f", files(write(content)))
    assert (code, names(out)) == (0, [("TrainingRuntime", "mnist"), ("TrainJob", "mnist")])


def test_an_emoji_of_two_escapes_in_json_is_one_character(files, run):
    content = make_tfjob() | {"metadata": {"name": "mnist", "annotations": {"a": "\U0001f600"}}}
    code, out, _ = run("-f", files(json.dumps(content)), "-o", "json")
    assert (code, "\U0001f600" in out) == (0, True)


def test_only_the_named_ones_are_translated(files, run):
    bad = make_tfjob("bad", Boss={"template": POD})
    path = files(make_tfjob("a"), bad, make_tfjob("b"))
    code, out, _ = run("-f", path, "b")
    assert (code, names(out)[0]) == (0, ("TrainingRuntime", "b"))
    code, out, error = run("-f", path, "absent")
    assert (code, out) == (2, "")
    assert "there is no TFJob absent; there are: a, b, bad" in error


def test_the_report_goes_to_a_file_on_demand(files, run, tmp_path):
    _, out, error = run("-f", files(make_tfjob()), "--report", "report.txt")
    assert error == ""
    text = (tmp_path / "report.txt").read_text()
    assert text.startswith("TFJob default/mnist (job.yaml:2): ")
    code, out, error = run("-f", "job.yaml", "--report", "absent/report.txt")
    assert (code, out) == (2, "")
    assert "absent/report.txt: cannot be written: No such file or directory" in error


def test_a_name_that_is_too_long_is_told_and_another_one_helps(files, run):
    """TFA014: 46 characters and `-node-0-199-abcde` are 63."""
    path = files(make_tfjob("a" * 47, Worker={"replicas": 200, "template": POD}))
    code, out, report = run("-f", path)
    assert code == 1
    assert "  not      TrainJob metadata.name\n           TFA014: name has 47 characters" in report
    assert "to do: a name of at most 46 characters: --name NAME" in report
    assert "  # TFA014: name has 47 characters" in out
    code, out, _ = run("-f", path, "--name", "short", "--strict")
    assert (code, names(out)) == (0, [("TrainingRuntime", "short"), ("TrainJob", "short")])


def test_the_name_is_for_one_tfjob(files, run):
    path = files(make_tfjob("a"), make_tfjob("b"))
    code, out, error = run("-f", path, "--name", "c")
    assert (code, out) == (2, "")
    assert "--name is for one TFJob, and there are 2: say which, by its name" in error
    assert names(run("-f", path, "--name", "c", "a")[1])[0] == ("TrainingRuntime", "c")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "say what to read: -f FILE, or --from-cluster"),
        (["-f", "a", "--from-cluster"], "say what to read: -f FILE, or --from-cluster"),
        (["-f", "a", "-A"], "go with --from-cluster"),
        (["-f", "a", "--name", "A"], "--name A: at most 63 small letters"),
        (["-f", "a", "--gang", "yarn"], "invalid choice: 'yarn'"),
        (["--from-cluster", "-A", "-n", "x"], "not allowed with argument"),
    ],
)
def test_a_wrong_usage_is_told(run, arguments, sentence):
    code, out, error = run(*arguments)
    assert (code, out) == (2, "")
    assert sentence in error


class Cluster:
    """A cluster that answers with pages, or with a fault."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def page(self, kind, *, namespace, limit, token):
        self.asked.append((kind.plural, kind.group, kind.version, namespace, token))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def from_cluster(cluster):
    def command(arguments):
        return migrate.main(["--from-cluster", *arguments], connect=lambda **_: cluster)

    return command


def stored(name, namespace="team"):
    item = make_tfjob(name)
    del item["apiVersion"], item["kind"]  # a list has them once
    item["metadata"] |= {"namespace": namespace, "uid": "1", "resourceVersion": "2"}
    return item


def test_all_pages_of_a_cluster_are_read(run):
    cluster = Cluster(
        {"items": [stored("a")], "metadata": {"continue": "more"}},
        {"items": [stored("b", "other")]},
    )
    code, out, report = run(command=from_cluster(cluster))
    assert code == 0
    assert [item["metadata"]["namespace"] for item in yaml.safe_load_all(out)] == [
        "team", "team", "other", "other",
    ]  # fmt: skip
    assert "resourceVersion" not in out
    assert cluster.asked == [
        ("tfjobs", "kubeflow.org", "v1", None, ""),
        ("tfjobs", "kubeflow.org", "v1", None, "more"),
    ]
    assert "TFJob other/b (the cluster)" in report


def test_a_tfjob_that_a_cluster_holds_may_be_unusable_too(run, capsys):
    item = stored("a")
    item["spec"]["tfReplicaSpecs"]["Worker"]["replicas"] = 0
    with pytest.raises(fault.ClientError) as caught:
        run(command=from_cluster(Cluster({"items": [item]})))
    assert str(caught.value).startswith("the cluster: TFJob team/a: spec.tfReplicaSpecs: there is")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("error", "code"), [(listing.UnreachableError("down"), 3), (listing.ReadError("not served"), 2)]
)
def test_a_cluster_that_does_not_answer_is_told(run, error, code):
    with pytest.raises(fault.ClientError, match=str(error)) as caught:
        run(command=from_cluster(Cluster(error)))
    assert caught.value.code == code


def test_nothing_but_the_answer_to_strict_depends_on_strict(files, run):
    path = files(make_tfjob(spec={"runPolicy": {"cleanPodPolicy": "All"}}))
    loose, strict = run("-f", path), run("-f", path, "--strict")
    assert (loose[0], strict[0]) == (0, 1)
    assert loose[1:] == strict[1:]


def test_the_settings_decide_what_the_webhook_would_refuse(files, run, tmp_path):
    settings = tmp_path / "settings.yaml"
    settings.write_text("policies: {TFA008: deny}\n")
    path = files(make_tfjob())
    assert run("-f", path)[0] == 0
    code, _, report = run("-f", path, "--settings", str(settings))
    assert code == 1
    assert "  not      TrainingRuntime spec.template.spec.failurePolicy.maxRestarts" in report
