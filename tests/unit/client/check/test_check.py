"""The command `tfadmit check` over a fake cluster: each thing that may be wrong, and exit codes."""

import base64
import datetime as dt

import pytest

from tfadmit_certs import issue, san
from tfadmit_client import fault
from tfadmit_client.cluster import listing
from tfadmit_client.commands import check

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)
DAY = dt.timedelta(days=1)
SERVING = "the serving certificate (Secret tfadmit-system/tfadmit-webhook-tls)"
PUBLIC = "ConfigMap kubeflow-system/kubeflow-trainer-public"
GOOD = "CA good for 365 days"
GONE = listing.StatusError(404, "not found")
FORBIDDEN = listing.StatusError(403, "forbidden")
HOOKS = {
    "mutatingwebhookconfigurations": {
        "pods.tfadmit.dev": "Fail",
        "jobsets.tfadmit.dev": "Fail",
        "runtimes.tfadmit.dev": "Fail",
    },
    "validatingwebhookconfigurations": {
        "runtimes.validate.tfadmit.dev": "Fail",
        "trainjobs.validate.tfadmit.dev": "Ignore",
    },
}
TRAINER = "ClusterTrainingRuntime, TrainingRuntime, TrainJob"
KINDS = {
    "trainer.kubeflow.org": TRAINER.split(", "),
    "jobset.x-k8s.io": ["JobSet"],
}


TODAY = dt.datetime.now(dt.timezone.utc)
PAST = TODAY - 30 * DAY
HOST = "tfadmit-webhook.tfadmit-system.svc"


def make_bundle(days=365):
    return encoded(make_ca(days).certificate)


def make_ca(days=365, now=NOW):
    return issue.issue_ca(now=now, entropy=issue.system_entropy(), lifetime=days * DAY)


def encoded(data):
    return base64.b64encode(data).decode()


def make_serving(ca, *, host=HOST, days=7, now=TODAY):
    leaf = issue.issue_leaf(
        ca=ca,
        names=san.check(dns=[host]),
        now=now,
        entropy=issue.system_entropy(),
        lifetime=days * DAY,
    )
    return {"data": {"tls.crt": encoded(leaf.certificate), "tls.key": encoded(leaf.key)}}


class Cluster:
    """A cluster in order, but for the answers that a test replaces; exceptions are raised."""

    flags = ""

    def __init__(self, **answers):
        self.bundle = answers.pop("bundle", None) or make_bundle()
        self.policy = answers.pop("policy", None)
        self.answers = answers

    def _give(self, name, default):
        answer = self.answers.get(name, default)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def page(self, kind, *, namespace, limit, token):
        return self._give(kind.name, {"items": []})

    def version(self):
        return self._give("version", {"gitVersion": "v1.36.0"})

    def groups(self):
        return self._give("groups", {"groups": [{"name": "kueue.x-k8s.io"}]})

    def resources(self, group, version):
        served = {"resources": [{"kind": kind} for kind in KINDS[group]]}
        return self._give(group.partition(".")[0], served)

    def configuration(self, plural):
        hooks = [
            {
                "name": name,
                "failurePolicy": self.policy or policy,
                "clientConfig": {
                    "caBundle": self.bundle,
                    "service": {"name": "tfadmit-webhook", "namespace": "tfadmit-system"},
                },
            }
            for name, policy in HOOKS[plural].items()
        ]
        return self._give(plural, {"webhooks": hooks})

    def secret(self, namespace, name):
        return self._give("secret", FORBIDDEN)

    def config_map(self, namespace, name):
        assert (namespace, name) == ("kubeflow-system", "kubeflow-trainer-public")
        return self._give("public", {"data": {"kubeflow_trainer_version": "v2.3.0"}})

    def role_binding(self, namespace, name):
        return self._give("binding", {})

    def tried_pod(self, namespace, pod):
        env = [{"name": "TF_TASK_INDEX", "value": "0"}]
        return self._give("pod", {"spec": {"containers": [{"name": "node", "env": env}]}})


def run(capsys, cluster, *, at=NOW):
    code = check.main([], connect=lambda **_: cluster, clock=at.timestamp)
    return code, capsys.readouterr().out


def test_a_cluster_in_order(capsys):
    code, out = run(capsys, Cluster())
    assert (code, out.splitlines()) == (
        0,
        [
            "ok    the API server answers, v1.36.0",
            f"ok    trainer.kubeflow.org/v1alpha1 serves {TRAINER}",
            "ok    jobset.x-k8s.io/v1alpha2 serves JobSet",
            "ok    webhook pods.tfadmit.dev: failurePolicy Fail, CA good for 365 days",
            "ok    webhook jobsets.tfadmit.dev: failurePolicy Fail, CA good for 365 days",
            "ok    webhook runtimes.tfadmit.dev: failurePolicy Fail, CA good for 365 days",
            "ok    webhook runtimes.validate.tfadmit.dev: failurePolicy Fail, CA good for 365 days",
            f"ok    webhook trainjobs.validate.tfadmit.dev: failurePolicy Ignore, {GOOD}",
            (
                f"note  {SERVING} was not looked at: the API server answered 403: forbidden; the "
                "right is get on this Secret"
            ),
            "ok    the webhook is called for pods in namespace default (dry run)",
            "ok    objects judged: 0, violations: 0, warnings: 0",
            f"ok    the Kubeflow SDK finds Trainer v2.3.0 in {PUBLIC}",
            "ok    the Kubeflow SDK can read all runtimes: 0",
            (
                "note  no runtime says where results go (annotation tfadmit.dev/default-output): "
                "they go with their pods, unless `tfadmit run --output` says"
            ),
            "note  Volcano is not installed (optional)",
            "note  Kueue is installed",
        ],
    )


REFUSED = listing.StatusError(500, 'failed calling webhook "pods.tfadmit.dev": refused')
BAD = {
    "metadata": {"name": "bad", "labels": {"trainer.kubeflow.org/framework": "tensorflow"}},
    "spec": {"template": {"spec": {}}},
}


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"trainer": GONE}, "trainer.kubeflow.org/v1alpha1 is not served; install Kubeflow"),
        ({"trainer": {}}, "does not serve ClusterTrainingRuntime, TrainingRuntime, TrainJob; "),
        ({"jobset": {"resources": None}}, "jobset.x-k8s.io/v1alpha2 does not serve JobSet; "),
        ({"mutatingwebhookconfigurations": GONE}, "there is no MutatingWebhookConfiguration tf"),
        ({"validatingwebhookconfigurations": {}}, "has no webhook runtimes.validate.tfadmit.dev;"),
        (
            {"mutatingwebhookconfigurations": {"webhooks": [{"name": "pods.tfadmit.dev"}]}},
            "webhook pods.tfadmit.dev has no caBundle; see Certificates in deploy/README.md",
        ),
        ({"bundle": "%"}, "its caBundle is of no use: it is no PEM in base64"),
        ({"bundle": base64.b64encode(b"x").decode()}, "its caBundle is of no use: it is no PEM"),
        ({"pod": {"spec": {"containers": [None]}}}, "get no cluster: the webhook is not called"),
        ({"pod": REFUSED}, "TensorFlow pods in namespace default are refused: failed calling"),
        ({"TrainingRuntime": {"items": [BAD]}}, "objects judged: 1, violations: "),
    ],
)
def test_what_will_fail(capsys, answers, expected):
    code, out = run(capsys, Cluster(**answers))
    assert code == 1
    assert any(line.startswith("fail") and expected in line for line in out.splitlines()), out


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"jobset": FORBIDDEN}, "jobset.x-k8s.io/v1alpha2 is unknown: "),
        ({"mutatingwebhookconfigurations": FORBIDDEN}, "the right is get on mutatingwebhookconf"),
        ({"policy": "Ignore"}, "webhook pods.tfadmit.dev has failurePolicy Ignore; Fail is what"),
        ({"bundle": make_bundle(20)}, "the CA in its caBundle expires in 20 days; "),
        ({"pod": FORBIDDEN}, "whether the webhook is called is unknown, a dry run ended: forb"),
        ({"JobSet": FORBIDDEN}, "JobSets are not (all) judged: the API server answered 403"),
    ],
)
def test_what_should_be_seen_to_or_cannot_be_known(capsys, answers, expected):
    code, out = run(capsys, Cluster(**answers))
    assert code == 0
    assert any(line.startswith("warn") and expected in line for line in out.splitlines()), out


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"jobset": GONE}, "`kubectl api-versions --context blue` lists what is there"),
        ({"pod": {}}, "`kubectl get mutatingwebhookconfiguration tfadmit --context blue -o yaml`"),
        ({"TrainingRuntime": {"items": [BAD]}}, "`tfadmit audit --context blue` shows them"),
    ],
)
def test_what_shows_more_reaches_the_same_cluster(capsys, answers, expected):
    cluster = Cluster(**answers)
    cluster.flags = " --context blue"
    assert expected in run(capsys, cluster)[1]


def test_an_expired_ca_will_fail(capsys):
    code, out = run(capsys, Cluster(), at=NOW + 366 * DAY)
    assert code == 1
    assert "fail  webhook pods.tfadmit.dev: the CA in its caBundle has expired; " in out


@pytest.mark.parametrize("error", [listing.UnreachableError("refused"), GONE])
def test_nobody_answers(capsys, error):
    with pytest.raises(fault.ClusterError) as caught:
        run(capsys, Cluster(version=error))
    assert caught.value.code == 3


CA = make_ca(now=TODAY)


def lines(capsys, cluster, *, at=TODAY):
    return run(capsys, cluster, at=at)[1].splitlines()


def test_a_serving_certificate_that_all_webhooks_trust(capsys):
    cluster = Cluster(bundle=encoded(CA.certificate), secret=make_serving(CA))
    words = "is good for 6 days, and each webhook's caBundle trusts it"
    assert f"ok    {SERVING} {words}" in lines(capsys, cluster)


def test_a_serving_certificate_that_ends_within_a_day(capsys):
    cluster = Cluster(bundle=encoded(CA.certificate), secret=make_serving(CA))
    told = lines(capsys, cluster, at=TODAY + 6.5 * DAY)
    assert f"warn  {SERVING} expires within a day; is it being renewed?" in told


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        (make_serving(make_ca(now=TODAY)), f"called as {HOST} does not trust it: "),
        (make_serving(CA, host="other.svc"), "Hostname mismatch"),
        (make_serving(make_ca(now=PAST), now=PAST), "certificate has expired"),
        ({"data": {}}, "there is no PEM in tls.crt and tls.key"),
        ({"data": {"tls.crt": "x", "tls.key": "y"}}, "there is no PEM in tls.crt and tls.key"),
        ({"data": {"tls.crt": encoded(b"x"), "tls.key": encoded(b"y")}}, "is no PEM"),
        ({"data": make_serving(CA)["data"] | {"tls.key": encoded(b"y")}}, "PEM"),
        (
            {"data": make_serving(CA)["data"] | {"tls.key": make_serving(CA)["data"]["tls.key"]}},
            "KEY_VALUES_MISMATCH",
        ),
    ],
)
def test_a_serving_certificate_that_is_not_trusted_will_fail(capsys, secret, words):
    cluster = Cluster(bundle=encoded(CA.certificate), secret=secret)
    (line,) = [text for text in lines(capsys, cluster) if SERVING in text]
    assert line.startswith("fail  ")
    assert words.lower() in line.lower()
    assert "deploy/README.md" in line


def test_a_missing_serving_certificate_is_seen_to(capsys):
    (line,) = [text for text in lines(capsys, Cluster(secret=GONE)) if SERVING in text]
    assert line.startswith("warn  ")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"public": GONE}, f"{PUBLIC} cannot be read: the API server answered 404"),
        ({"public": {"data": None}}, f"{PUBLIC} has no kubeflow_trainer_version"),
        ({"binding": GONE}, f"others may not read {PUBLIC}"),
        ({"TrainingRuntime": {"items": [{"metadata": {"name": "a"}}]}}, "label trainer.kubefl"),
    ],
)
def test_what_the_kubeflow_sdk_warns_of(capsys, answers, expected):
    assert any(
        line.startswith("warn") and expected in line for line in lines(capsys, Cluster(**answers))
    )


def foreign(name, *, limits=None, policy=None):
    """A runtime of another framework, which our rules do not judge."""
    container = {"name": "node", "image": "x", "resources": {"limits": limits}}
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    pod = {
        "spec": {"template": {"spec": {"containers": [container]}}},
        "metadata": {"labels": labels},
    }
    return {
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": policy,
            "template": {"spec": {"replicatedJobs": [{"name": "node", "template": pod}]}},
        },
    }


def test_runtimes_of_any_framework_that_the_sdk_cannot_read_will_fail(capsys):
    items = [
        foreign("good", policy={"torch": {}}, limits={"cpu": 1}),
        foreign("odd", policy={"torch": {}}, limits={"memory": "1Gi"}),
        foreign("none"),
    ]
    code, out = run(capsys, Cluster(ClusterTrainingRuntime={"items": items}))
    assert code == 1
    (line,) = [text for text in out.splitlines() if "fails to list runtimes" in text]
    assert "ClusterTrainingRuntime odd, spec.template." in line
    assert "resources.limits has only memory" in line
    assert "ClusterTrainingRuntime none, spec.mlPolicy is missing" in line
    assert "good" not in line


OUTPUT = "tfadmit.dev/default-output"
STORE = "tfadmit.dev/default-store-secret"
RESULTS = "results of ClusterTrainingRuntime mine go to s3://bucket/results"


def saving(**annotations):
    metadata = {
        "name": "mine",
        "labels": {"trainer.kubeflow.org/framework": "tensorflow"},
        "annotations": annotations,
    }
    return {"items": [{"metadata": metadata, "spec": {}}]}


@pytest.mark.parametrize(
    ("annotations", "secret", "expected"),
    [
        (
            {},
            GONE,
            "note  no runtime says where results go (annotation tfadmit.dev/default-output)",
        ),
        ({OUTPUT: "s3://bucket/results"}, GONE, f"ok    {RESULTS}, with the rights of the pods'"),
        (
            {OUTPUT: "s3://bucket/results", STORE: "store"},
            {},
            f"ok    {RESULTS}, and namespace default has the Secret store",
        ),
        (
            {OUTPUT: "s3://bucket/results", STORE: "store"},
            GONE,
            f"warn  {RESULTS}, and namespace default has no Secret store; jobs there fail",
        ),
        (
            {OUTPUT: "s3://bucket/results", STORE: "store"},
            FORBIDDEN,
            f"note  {RESULTS}; whether namespace default has the Secret store cannot be seen",
        ),
        (
            {OUTPUT: "ftp://bucket"},
            GONE,
            "fail  `tfadmit run` refuses all jobs of ClusterTrainingRuntime mine: annotation",
        ),
    ],
)
def test_row_29_where_results_go_and_whether_a_namespace_may_write_there(
    capsys, annotations, secret, expected
):
    cluster = Cluster(ClusterTrainingRuntime=saving(**annotations), secret=secret)
    assert any(line.startswith(expected) for line in lines(capsys, cluster)), lines(capsys, cluster)
