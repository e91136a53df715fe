"""Mistakes of users of ps, show, logs, stop, start and rm: each has a sentence and an exit code."""

import subprocess
import sys

import pytest
import yaml

import fake_jobs as make
from tfadmit_client import cli
from tfadmit_client.cluster import listing, live, live_jobs

AWAY = listing.UnreachableError(
    "https://192.0.2.1: the API server did not answer in time; does `kubectl version` work? …"
)
FORBIDDEN = listing.ReadError(
    "you may not list trainjobs.trainer.kubeflow.org in namespace team (403): a Role …"
)
NOT_SERVED = listing.ReadError(
    "the cluster does not serve trainjobs.trainer.kubeflow.org/v1alpha1: install Kubeflow "
    "Trainer 2.x; …"
)
DENIED = listing.StatusError(403, "admission webhook denied the request: spec is immutable")


def cluster(**kinds):
    jobs = [
        make.trainjob("mnist"),
        make.trainjob("done", make.condition("Complete")),
        make.trainjob("failed", make.condition("Failed")),
        make.trainjob("stopped", spec={"suspend": True}),
        make.trainjob("gone", metadata={"deletionTimestamp": make.CREATED}),
    ]
    pods = [make.running("mnist", 0), make.running("mnist", 1)]
    return make.Cluster(
        **{"TrainJob": jobs, "JobSet": [make.jobset("mnist")], "Pod": pods, **kinds}
    )


@pytest.fixture
def run(monkeypatch, capsys):
    def run(words, connected=None):
        connected = connected or cluster()
        # The commands have bound the function as a default: so they are asked with another one.
        monkeypatch.setattr(live_jobs.Jobs, "__init__", lambda *_: None)
        monkeypatch.setattr(live, "connect", lambda **_: None)
        for name in ("objects", "get", "patch", "delete", "version_of", "log", "changes"):
            monkeypatch.setattr(live_jobs.Jobs, name, as_method(getattr(connected, name)))
        monkeypatch.setattr(live_jobs.Jobs, "default_namespace", "team", raising=False)
        monkeypatch.setattr(live_jobs.Jobs, "flags", connected.flags, raising=False)
        code = cli.main(words.split())
        out, err = capsys.readouterr()
        return code, out, err

    return run


def as_method(function):
    return lambda _, *words, **options: function(*words, **options)


NONE = "there is no TrainJob {} in namespace team"
MISTAKES = [
    # usage
    ("show", 2, "tfadmit show: error: the following arguments are required: JOB"),
    ("logs", 2, "the following arguments are required: JOB"),
    ("stop", 2, "the following arguments are required: JOB"),
    ("rm", 2, "the following arguments are required: JOB"),
    ("ps mnist", 2, "tfadmit ps: error: unrecognized arguments: mnist"),
    ("show mnist -A", 2, "unrecognized arguments: -A"),
    ("ps -A -n team", 2, "argument -n/--namespace: not allowed with argument -A/--all-namespaces"),
    ("ps -n Team", 2, "argument -n/--namespace: 'Team' is no name of a namespace"),
    ("ps -n a/b", 2, "argument -n/--namespace: 'a/b' is no name of a namespace"),
    ("ps -o wide", 2, "argument -o/--output: invalid choice: 'wide'"),
    ("logs mnist -o yaml", 2, "argument -o/--output: invalid choice: 'yaml'"),
    ("logs mnist --tail -1", 2, "argument --tail: '-1' is no number from 0 on"),
    ("logs mnist --tail many", 2, "argument --tail: 'many' is no number from 0 on"),
    ("logs mnist --attempt last", 2, "argument --attempt: 'last' is no number from 0 on"),
    ("rm mnist --timeout soon", 2, "argument --timeout: 'soon' is no number of seconds above 0"),
    ("rm mnist --timeout 0", 2, "argument --timeout: '0' is no number of seconds above 0"),
    ("list", 2, "tfadmit: there is no command 'list'"),
    ("stat mnist", 2, "tfadmit: there is no command 'stat'; did you mean 'start'?"),
    # names
    ("show mnits", 2, f"tfadmit show: error: {NONE.format('mnits')}; did you mean mnist?"),
    ("show other", 2, f"{NONE.format('other')}; `tfadmit ps -n team` lists them, -A in all na"),
    ("show trainjob/mnist", 2, "'trainjob/mnist' is no name of a TrainJob: leave out trainjob/"),
    ("show ../mnist", 2, "'../mnist' is no name of a TrainJob"),
    ("logs other", 2, "there is no TrainJob other in namespace team"),
    ("logs other -f", 2, "there is no TrainJob other in namespace team"),
    ("stop other", 2, "there is no TrainJob other in namespace team"),
    ("start other", 2, "there is no TrainJob other in namespace team"),
    ("ps -n nowhere", 2, "there is no namespace nowhere: -n NS names another"),
    ("rm mnist -n nowhere", 2, "there is no namespace nowhere: -n NS names another"),
    ("logs mnist worker-7", 2, "mnist has no task worker-7; it has worker-0 to worker-1"),
    ("logs mnist ps", 2, "mnist has no task ps; it has worker-0 to worker-1"),
    ("logs mnist -f worker-7", 2, "mnist has no task worker-7; it has worker-0 to worker-1"),
    ("logs mnist -c tensorflow", 2, "mnist has no container tensorflow; it has node"),
    # what cannot be
    ("start done", 2, "and a TrainJob runs once: `tfadmit run -n team --from done` repeats it"),
    ("start failed", 2, "failed has ended (Failed), and a TrainJob runs once"),
    ("start gone", 2, "gone is being deleted: it cannot go on"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "code", "sentence"), MISTAKES, ids=[it[0] for it in MISTAKES])
def test_a_mistake_has_its_sentence_and_exit_code(words, code, sentence, run):
    found, out, err = run(words)
    assert (found, out) == (code, "")
    assert sentence in err
    assert "Traceback" not in err


FAULTS = [
    ("ps", {"TrainJob": AWAY}, 3, "tfadmit ps: error: https://192.0.2.1: the API server did not"),
    ("show mnist", {"TrainJob": AWAY}, 3, "tfadmit show: error: https://192.0.2.1"),
    ("stop mnist", {"TrainJob": AWAY}, 3, "tfadmit stop: error: https://192.0.2.1"),
    ("rm mnist", {"TrainJob": AWAY}, 3, "tfadmit rm: error: https://192.0.2.1"),
    ("logs mnist -f", {"Pod": AWAY}, 3, "tfadmit logs: error: https://192.0.2.1"),
    ("ps", {"TrainJob": FORBIDDEN}, 2, "you may not list trainjobs.trainer.kubeflow.org"),
    ("show mnist", {"TrainJob": FORBIDDEN}, 2, "you may not list trainjobs"),
    ("ps", {"TrainJob": NOT_SERVED}, 2, "install Kubeflow Trainer 2.x"),
]


@pytest.mark.parametrize(("words", "kinds", "code", "sentence"), FAULTS)
def test_a_cluster_that_does_not_do_its_part(words, kinds, code, sentence, run, monkeypatch):
    monkeypatch.setattr("tfadmit_client.logs.follow._AWAY_SECONDS", -1.0)
    found, out, err = run(words, cluster(**kinds))
    assert (found, out) == (code, "")
    assert sentence in err
    assert "Traceback" not in err


FAULTY = listing.StatusError(500, "etcdserver: request timed out")
KINDS = ("TrainJob", "JobSet", "Job", "Pod", "Event", "Workload", "Namespace")
COMMANDS = ("ps", "ps -A", "show queued", "logs queued", "stop queued", "start queued", "rm queued")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", COMMANDS)
def test_a_fault_of_any_kind_is_a_sentence(words, kind, run):
    labels = {"labels": {"kueue.x-k8s.io/queue-name": "team"}}
    job = make.trainjob("queued", metadata=labels, spec={"suspend": True})
    faulty = cluster(**{"TrainJob": [job], "Workload": [], kind: FAULTY})
    code, _, err = run(words, faulty)
    assert code == (2 if kind == "TrainJob" else 0)
    if kind == "TrainJob":
        assert "the API server answered 500: etcdserver: request timed out" in err


def test_a_fault_while_the_pods_end_is_told_and_waited_for(run, monkeypatch):
    monkeypatch.setattr("tfadmit_client.jobs.remove._POLL_SECONDS", 0.0)
    faulty = cluster()
    # before the deletion, in it, and twice after it
    given, answers = faulty.get, iter([None, None, FAULTY, FAULTY])

    def get(kind, *, namespace, name):
        if kind.name == "TrainJob" and (fault := next(answers, None)):
            raise fault
        return given(kind, namespace=namespace, name=name)

    faulty.get = get
    faulty.kinds["Pod"] = []
    faulty.kinds["JobSet"] = []
    code, out, err = run("rm mnist", faulty)
    assert (code, out) == (0, "mnist is deleted\n")
    assert err == "mnist: the API server answered 500: etcdserver: request timed out\n"


def test_a_refused_change_is_quoted_and_the_other_jobs_are_changed(run):
    refusing = cluster()
    given = refusing.patch

    def patch(kind, *, namespace, name, body):
        if name == "mnist":
            raise DENIED
        return given(kind, namespace=namespace, name=name, body=body)

    refusing.patch = patch
    refusing.kinds["TrainJob"].append(make.trainjob("other"))
    code, out, err = run("stop mnist other", refusing)
    assert code == 2
    assert out == "other is stopping; `tfadmit start -n team other` lets it go on\n"
    assert err == (
        "mnist: the API server answered 403: admission webhook denied the request: spec is "
        "immutable\n"
    )


ALREADY = [
    ("stop stopped", "stopped is stopped already"),
    ("stop done", "done has ended (Succeeded): there is nothing to stop"),
    ("stop gone", "gone is being deleted: there is nothing to stop"),
    ("start mnist", "mnist is started already (Running)"),
    ("rm other", "other is not there"),
    ("rm other other", "other is not there"),
]


@pytest.mark.parametrize(("words", "sentence"), ALREADY)
def test_what_is_so_already_is_no_mistake(words, sentence, run):
    assert run(words) == (0, f"{sentence}\n", "")


def test_an_empty_namespace_is_no_mistake(run):
    assert run("ps", cluster(TrainJob=[])) == (0, "", "there are no TrainJobs in namespace team\n")
    assert run("ps -o json", cluster(TrainJob=[])) == (0, "[]\n", "")


# --- kubeconfigs, as a process of its own ---------------------------------------------------------


def process(*words, **environ):
    return subprocess.run(
        [sys.executable, "-m", "tfadmit_client", *words],
        capture_output=True, text=True, check=False, env={**environ},
    )  # fmt: skip


@pytest.mark.parametrize("command", ["ps", "show mnist", "logs mnist", "stop mnist", "rm mnist"])
def test_a_kubeconfig_that_is_not_there(command, tmp_path):
    path = tmp_path / "none"
    done = process(*command.split(), "--kubeconfig", str(path), **child_environment())
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{path}: there is no such kubeconfig: name one with --kubeconfig FILE" in done.stderr


def test_a_context_that_is_not_there(tmp_path):
    path = kubeconfig(tmp_path, server="https://127.0.0.1:1")
    done = process("ps", "--kubeconfig", str(path), "--context", "x", **child_environment())
    assert done.returncode == 2
    assert "config get-contexts` work?" in done.stderr


def test_a_port_without_an_api_server(tmp_path):
    path = kubeconfig(tmp_path, server="https://127.0.0.1:1")
    done = process("ps", "--kubeconfig", str(path), **child_environment())
    assert (done.returncode, done.stdout) == (3, "")
    assert "the API server cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("server", ["ftp://127.0.0.1", "127.0.0.1:6443"])
def test_a_server_that_is_no_address(tmp_path, server):
    path = kubeconfig(tmp_path, server=server)
    done = process("ps", "--kubeconfig", str(path), **child_environment())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"tfadmit ps: error: {path}: the server {server!r} of the context is no address of an API "
        "server: write https://HOST:PORT\n"
    )


@pytest.mark.parametrize("token", ["abc\ndef", "tök€n"])
def test_a_token_that_cannot_be_sent(tmp_path, token):
    path = kubeconfig(tmp_path, server="https://127.0.0.1:1", token=token)
    done = process("ps", "--kubeconfig", str(path), **child_environment())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"tfadmit ps: error: {path}: the token of the context's user has a line feed or a letter "
        "that no token has: copy it again\n"
    )


def test_a_folder_in_the_place_of_a_kubeconfig(tmp_path):
    done = process("ps", "--kubeconfig", str(tmp_path), **child_environment())
    assert done.returncode == 2
    assert done.stderr == (
        f"tfadmit ps: error: {tmp_path} is a folder: name the kubeconfig in it\n"
    )


def kubeconfig(tmp_path, *, server, token="t"):
    path = tmp_path / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": server}}],
        "users": [{"name": "a", "user": {"token": token}}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def child_environment():
    return {"PYTHONPATH": ":".join(sys.path), "HOME": "/nonexistent"}
