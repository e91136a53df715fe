"""The command `tfadmit audit` over a fake cluster: pages, failures, forms of output, exit codes."""

import copy
import json
import shlex

import pytest

import builders
from tfadmit_client import cli, fault
from tfadmit_client.audit import auditing
from tfadmit_client.cluster import listing, live
from tfadmit_client.commands import audit
from tfadmit_webhook import policy
from tfadmit_webhook.selector import LabelSelector
from tfadmit_webhook.settings import Override, Settings

NOW = 1_700_000_000.25
FRAMEWORK = "trainer.kubeflow.org/framework"
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def make_runtime(name="good", *, namespace="team", framework="tensorflow", network=None):
    labels = {FRAMEWORK: framework}
    pod = {
        "metadata": {"labels": labels},
        "spec": {"containers": [builders.make_container()]},
    }
    job = {"metadata": {"labels": {STEP: "trainer"}}, "spec": {"backoffLimit": 0, "template": pod}}
    spec = {
        "network": {"publishNotReadyAddresses": True} if network is None else network,
        "failurePolicy": {"maxRestarts": 2},
        "replicatedJobs": [{"name": "node", "template": job}],
    }
    metadata = {"name": name, "labels": labels, **({"namespace": namespace} if namespace else {})}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {"metadata": metadata, "spec": {"mlPolicy": {"numNodes": 2}, "template": template}}


def make_trainjob(name="mnist", *, runtime="good", kind="TrainingRuntime", **status):
    return {
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"runtimeRef": {"name": runtime, "kind": kind}},
        "status": status,
    }


class Cluster:
    """Pages of objects, or an exception in place of a kind; those of `once` come on later pages."""

    flags = ""

    def __init__(self, *, size=500, **kinds):
        self.kinds = kinds
        self.size = size
        self.asked = []
        self.once = []

    def namespace(self, name):
        self.asked.append(("Namespace", name, 1, ""))
        found = self.kinds.get("Namespace", {}).get(name)
        if found is None:
            raise listing.StatusError(403, "no")
        return {"metadata": {"name": name, "labels": found}}

    def page(self, kind, *, namespace, limit, token):
        self.asked.append((kind.name, namespace, limit, token))
        objects = self.kinds.get(kind.name, [])
        if isinstance(objects, Exception):
            raise objects
        if token and self.once:
            raise self.once.pop()
        start = int(token or 0)
        end = start + self.size
        more = str(end) if end < len(objects) else ""
        return {"items": objects[start:end], "metadata": {"continue": more}}


def judge(cluster, *, namespace=None):
    return auditing.audit(cluster, namespace=namespace, settings=Settings())


def run(capsys, cluster, *argv):
    code = audit.main(argv, connect=lambda **_: cluster, clock=lambda: NOW)
    return code, capsys.readouterr().out


def rules(report):
    return [(item.label, item.rule, item.level) for item in report.findings]


def test_a_cluster_in_order_is_told_so(capsys):
    cluster = Cluster(TrainingRuntime=[make_runtime()], TrainJob=[make_trainjob()])
    code, out = run(capsys, cluster)
    assert (code, out) == (0, "0 violations, 0 warnings in 2 objects; 0 skipped\n")
    assert {(namespace, limit) for _, namespace, limit, _ in cluster.asked} == {(None, 500)}


def test_a_violation_is_a_line_and_exit_code_1(capsys):
    bad = make_runtime("bad", network={"publishNotReadyAddresses": False})
    code, out = run(capsys, Cluster(TrainingRuntime=[bad]))
    first, summary = out.splitlines()
    assert code == 1
    assert first.startswith("error: TrainingRuntime team/bad: TFA001 spec.template.spec.network.")
    assert summary == "1 violation, 0 warnings in 1 object; 0 skipped"


def test_findings_come_by_kind_name_and_field():
    bad = {"network": {"publishNotReadyAddresses": False, "enableDNSHostnames": False}}
    report = judge(
        Cluster(
            ClusterTrainingRuntime=[make_runtime("z", namespace=None, **bad)],
            TrainingRuntime=[make_runtime("b", **bad), make_runtime("a", **bad)],
        )
    )
    assert rules(report) == [
        (label, rule, "deny")
        for label in (
            "ClusterTrainingRuntime z",
            "TrainingRuntime team/a",
            "TrainingRuntime team/b",
        )
        for rule in ("TFA002", "TFA001")
    ]


def test_all_pages_are_read():
    runtimes = [make_runtime(f"r{number}") for number in range(7)]
    report = judge(Cluster(size=3, TrainingRuntime=runtimes))
    assert report.objects == {("TrainingRuntime", "judged"): 7}


def test_a_list_that_expired_is_begun_again_and_nothing_is_told_twice():
    bad = [make_runtime(f"r{number}", network={}) for number in range(7)]
    cluster = Cluster(size=3, TrainingRuntime=bad)
    cluster.once = [listing.ExpiredError("gone")]
    report = judge(cluster)
    assert [item.name for item in report.findings] == [f"r{number}" for number in range(7)]
    tokens = [token for kind, _, _, token in cluster.asked if kind == "TrainingRuntime"]
    assert tokens == ["", "3", "", "3", "6"]


def test_a_list_that_always_expires_is_given_up(capsys):
    cluster = Cluster(size=3, TrainingRuntime=[make_runtime(f"r{n}") for n in range(7)])
    cluster.once = [listing.ExpiredError("gone")] * 9
    code, out = run(capsys, cluster)
    assert code == 3
    assert "not (all) read: TrainingRuntimes: gone" in out
    assert out.endswith("in 3 objects; 0 skipped; not (all) read: TrainingRuntime\n")


def test_a_forbidden_kind_does_not_end_the_run(capsys):
    cluster = Cluster(
        ClusterTrainingRuntime=listing.ReadError("you may not list (403)"),
        TrainingRuntime=[make_runtime("bad", network={})],
        TrainJob=[
            make_trainjob(runtime="bad"),
            make_trainjob("other", runtime="x", kind="ClusterTrainingRuntime"),
        ],
    )
    code, out = run(capsys, cluster)
    assert code == 1
    assert "error: TrainingRuntime team/bad: TFA001" in out
    assert "not judged: TrainJob team/other: its runtime could not be read: Clus" in out
    assert "not (all) read: ClusterTrainingRuntimes: you may not list (403)" in out
    assert "1 object not judged; not (all) read: ClusterTrainingRuntime" in out


def test_without_violations_something_unread_is_exit_code_3(capsys):
    assert run(capsys, Cluster(JobSet=listing.ReadError("no CRD")))[0] == 3


def test_many_trainjobs_without_a_readable_runtime_are_counted(capsys):
    jobs = [make_trainjob(f"j{n}", kind="ClusterTrainingRuntime") for n in range(30)]
    cluster = Cluster(ClusterTrainingRuntime=listing.ReadError("403"), TrainJob=jobs)
    out = run(capsys, cluster)[1]
    assert out.count("not judged: TrainJob") == 20
    assert "not judged: 10 more objects; -o json has all" in out


@pytest.mark.parametrize(
    "garbage", [None, 3, "text", [], {}, {"metadata": 1}, {"metadata": {"name": ["x"]}}]
)
def test_garbage_is_reported_and_the_others_are_judged(capsys, garbage):
    bad = make_runtime("bad", network={})
    code, out = run(capsys, Cluster(TrainingRuntime=[garbage, bad]), "-o", "json")
    document = json.loads(out)
    assert code == 1
    assert [item["name"] for item in document["findings"]] == ["bad"]
    assert document["failures"] == [
        {
            "kind": "TrainingRuntime",
            "object": "TrainingRuntime (no name)",
            "message": "it is no object with a name",
        }
    ]


@pytest.mark.parametrize("value", [None, 3, "text", [], [None], {}, [3], {"a": None}])
@pytest.mark.parametrize("path", [("spec",), ("spec", "template"), ("spec", "template", "spec")])
def test_wrong_types_anywhere_are_judged_or_reported(path, value):
    odd = make_runtime("odd")
    parent = odd
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value
    jobset = {"metadata": {"name": "j", "namespace": "team"}, "spec": value}
    bad = make_runtime("bad", network={})
    report = judge(Cluster(TrainingRuntime=[odd, bad], TrainJob=[odd], JobSet=[jobset]))
    assert "bad" in [item.name for item in report.findings]


def test_a_fault_of_a_rule_is_the_object_s_alone(monkeypatch):
    real = policy.judge_runtime

    def judge_runtime(content, **options):
        if content["metadata"]["name"] == "odd":
            raise RecursionError("too deep")
        return real(content, **options)

    monkeypatch.setattr(policy, "judge_runtime", judge_runtime)
    report = judge(Cluster(TrainingRuntime=[make_runtime("odd"), make_runtime("bad", network={})]))
    assert [item.name for item in report.findings] == ["bad"]
    assert report.failures[0].message == "RecursionError: too deep"


def test_other_frameworks_and_what_has_ended_or_goes_is_skipped():
    torch = make_runtime("torch", framework="torch", network={})
    going = make_runtime("going", network={})
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ended = make_trainjob("ended", runtime="gone")
    ended["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
    report = judge(
        Cluster(
            TrainingRuntime=[torch, going],
            TrainJob=[make_trainjob(runtime="torch"), ended],
            JobSet=[builders.make_jobset(builders.make_replicated_job(labels={}))],
        )
    )
    assert (report.findings, report.count("skipped"), report.count("judged")) == ((), 5, 0)


def test_a_trainjob_is_judged_on_its_runtime():
    going = make_runtime("going")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    jobs = [
        make_trainjob("x" * 60),
        make_trainjob("gone", runtime="gone"),
        make_trainjob("going", runtime="going"),
    ]
    report = judge(Cluster(TrainingRuntime=[make_runtime(), going], TrainJob=jobs))
    assert rules(report) == [
        ("TrainJob team/going", "TFA015", "warn"),
        ("TrainJob team/gone", "TFA015", "warn"),
        (f"TrainJob team/{'x' * 60}", "TFA014", "deny"),
    ]


def test_a_jobset_is_judged_by_its_network_and_its_cluster():
    group = builders.make_replicated_job("chief", completions=2, annotations={
        "tfadmit.dev/port": "many"
    })  # fmt: skip
    jobset = builders.make_jobset(group)
    jobset["spec"]["network"] = {
        "publishNotReadyAddresses": False, "enableDNSHostnames": False, "subdomain": "its-own",
    }  # fmt: skip
    report = judge(Cluster(JobSet=[jobset, builders.make_jobset(name="good")]))
    assert [(item.rule, item.path) for item in report.findings] == [
        ("cluster-invalid", "spec"),
        ("TFA002", "spec.network.enableDNSHostnames"),
        ("TFA001", "spec.network.publishNotReadyAddresses"),
    ]
    said = report.findings[0].message
    assert said.startswith(
        "cluster-invalid its pods are refused: chief: annotation tfadmit.dev/port"
    )
    assert "TensorFlow allows one chief, there are 2" in said
    assert report.count("judged") == 2


def test_a_runtime_from_before_tfadmit_is_warned_of():
    runtime = make_runtime()
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]
    del job["template"]["spec"]["template"]["metadata"]
    report = judge(Cluster(TrainingRuntime=[copy.deepcopy(runtime)]))
    assert rules(report) == [("TrainingRuntime team/good", "label-not-copied", "warn")]
    assert report.findings[0].message.endswith(
        "fix: `kubectl get trainingruntime good -n team -o yaml | kubectl replace -f -`"
    )


def test_a_fix_by_kubectl_reaches_the_cluster_that_was_read():
    runtime = make_runtime()
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]
    del job["template"]["spec"]["template"]["metadata"]
    cluster = Cluster(TrainingRuntime=[runtime])
    cluster.flags = " --context blue"
    assert (
        judge(cluster)
        .findings[0]
        .message.endswith(
            "kubectl get trainingruntime good -n team --context blue -o yaml | "
            "kubectl replace --context blue -f -`"
        )
    )


def test_a_context_or_file_that_was_named_is_named_again(tmp_path):
    folder = tmp_path / "my clusters"
    folder.mkdir()
    file = write_kubeconfig(folder / "prod")
    assert live.connect(kubeconfig=file).flags == f" --kubeconfig '{file}'"
    both = live.connect(kubeconfig=file, context="here").flags
    assert shlex.split(both) == ["--kubeconfig", file, "--context", "here"]


def test_the_context_in_use_needs_no_options(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", write_kubeconfig(tmp_path / "config"))
    assert live.connect().flags == ""


def test_with_a_namespace_the_runtimes_of_the_cluster_are_only_read_for_its_trainjobs(capsys):
    cluster = Cluster(
        ClusterTrainingRuntime=[make_runtime("c", namespace=None, network={})],
        TrainJob=[make_trainjob("x" * 60, runtime="c", kind="ClusterTrainingRuntime")],
    )
    out = run(capsys, cluster, "-n", "team")[1]
    assert out.splitlines()[0].startswith("error: TrainJob team/xxx")
    assert out.splitlines()[1] == "1 violation, 0 warnings in 1 object; 0 skipped"
    assert [namespace for _, namespace, _, _ in cluster.asked] == [None, "team", "team", "team"]


def test_prometheus_has_violations_objects_and_the_time(capsys):
    runtimes = [make_runtime("a", network={}), make_runtime("b", network={})]
    cluster = Cluster(TrainingRuntime=runtimes, JobSet=listing.ReadError("403"))
    lines = run(capsys, cluster, "-o", "prometheus")[1].splitlines()
    assert lines[:3] == [
        "# HELP tfadmit_audit_violations Violations by rule, level and kind of object.",
        "# TYPE tfadmit_audit_violations gauge",
        'tfadmit_audit_violations{rule="TFA001",level="deny",kind="TrainingRuntime"} 2',
    ]
    assert 'tfadmit_audit_objects{kind="TrainingRuntime",outcome="judged"} 2' in lines
    assert 'tfadmit_audit_kind_read{kind="JobSet"} 0' in lines
    assert 'tfadmit_audit_kind_read{kind="TrainJob"} 1' in lines
    assert lines[-1] == "tfadmit_audit_last_run_timestamp_seconds 1700000000.250"


def test_the_levels_are_those_of_the_settings(tmp_path, capsys):
    (tmp_path / "s.yaml").write_text("policies: {TFA001: warn}")
    cluster = Cluster(TrainingRuntime=[make_runtime(network={})])
    code, out = run(capsys, cluster, "--settings", str(tmp_path / "s.yaml"))
    assert (code, out.partition(":")[0]) == (0, "warning")


def test_nobody_answers(capsys):
    cluster = Cluster(ClusterTrainingRuntime=listing.UnreachableError("https://x: refused"))
    with pytest.raises(fault.ClusterError, match="https://x: refused") as caught:
        run(capsys, cluster)
    assert caught.value.code == 3


def test_an_answer_that_stops_keeps_what_was_found(capsys):
    cluster = Cluster(
        ClusterTrainingRuntime=[make_runtime("bad", namespace=None, network={})],
        TrainingRuntime=listing.UnreachableError("it is gone"),
    )
    code, out = run(capsys, cluster)
    assert code == 1
    assert "not (all) read: TrainingRuntimes: it is gone" in out


def write_kubeconfig(path, *, server="https://127.0.0.1:1"):
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path.write_text(json.dumps(content))
    return str(path)


def test_an_unreachable_cluster_is_a_sentence_and_exit_code_3(tmp_path, capsys):
    file = write_kubeconfig(tmp_path / "config")
    assert cli.main(["audit", "--kubeconfig", file]) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(
        "tfadmit audit: error: https://127.0.0.1:1: the API server cannot be reached ("
    )
    assert f"does `kubectl --kubeconfig {file} version` work?" in captured.err


@pytest.mark.parametrize(
    ("text", "expected"), [("", "config"), ("[", "parsing"), ("just text", "config"), ("{}", "con")]
)
def test_an_unusable_kubeconfig_is_one_sentence(tmp_path, capsys, text, expected):
    (tmp_path / "config").write_text(text)
    assert cli.main(["audit", "--kubeconfig", str(tmp_path / "config")]) == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 1


def test_an_unknown_context_is_named(tmp_path, capsys):
    file = write_kubeconfig(tmp_path / "config")
    assert cli.main(["audit", "--kubeconfig", file, "--context", "there"]) == 2
    error = capsys.readouterr().err
    assert "there" in error
    assert "config get-contexts" in error


def test_a_missing_kubeconfig_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    with pytest.raises(fault.ClientError, match="gone: there is no such kubeconfig"):
        live.connect()


def test_an_empty_namespace_is_a_mistake(capsys):
    assert cli.main(["audit", "-n", ""]) == 2
    assert cli.main(["audit", "-A", "-n", "x"]) == 2


SANDBOX = Settings(
    overrides=(
        Override(
            namespace_selector=LabelSelector(match_labels={"tier": "sandbox"}),
            policies={"TFA001": "warn"},
        ),
    )
)


def test_levels_follow_the_labels_of_the_namespace_each_asked_for_once():
    bad = [make_runtime(f"r{number}", network={}) for number in range(3)]
    cluster = Cluster(
        TrainingRuntime=bad,
        ClusterTrainingRuntime=[make_runtime("all", namespace=None, network={})],
        Namespace={"team": {"tier": "sandbox"}},
    )
    report = auditing.audit(cluster, namespace=None, settings=SANDBOX)
    levels = {item.label: item.level for item in report.findings}
    assert levels == {
        "ClusterTrainingRuntime all": "deny",
        "TrainingRuntime team/r0": "warn",
        "TrainingRuntime team/r1": "warn",
        "TrainingRuntime team/r2": "warn",
    }
    assert [asked for asked in cluster.asked if asked[0] == "Namespace"] == [
        ("Namespace", "team", 1, "")
    ]


def test_a_namespace_that_cannot_be_read_is_judged_strictly_and_told():
    report = auditing.audit(
        Cluster(TrainingRuntime=[make_runtime(network={}), make_runtime("b", network={})]),
        namespace=None,
        settings=SANDBOX,
    )
    assert {item.level for item in report.findings} == {"deny"}
    (failure,) = report.failures
    assert failure.object == "Namespace team"
    assert failure.message.startswith("the strictest level of each rule was taken, as ")


EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never", "args": None}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("no-such-program-of-tfadmit", "no-such-program-of-tfadmit"),
        ("false", "process returned 1"),
        ("true", "failed to decode process output"),
    ],
)
def test_credentials_that_cannot_be_made_are_told(tmp_path, capsys, command, words):
    path = tmp_path / "config"
    write_kubeconfig(path)
    content = json.loads(path.read_text())
    content["users"][0]["user"] = {"exec": {**EXEC, "command": command}}
    path.write_text(json.dumps(content))
    assert cli.main(["audit", "--kubeconfig", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"tfadmit audit: error: {path}: it gives no credentials: ")
    assert words in error
    assert error.count("\n") == 1
