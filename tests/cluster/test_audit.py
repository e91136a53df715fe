"""`tfadmit audit` over a real API server.

Without tfadmit: these objects are those that it would refuse. So this module comes before all that
install it, by its name.
"""

import concurrent.futures
import json
import subprocess
import sys
import time

import pytest

import builders
from cluster import support
from tfadmit_client import cli
from tfadmit_client.cluster import listing, live

LONG = "mnist-with-a-learning-rate-of-0-0005-and-batches-of-1024"
MANY = 5_000
# The audit as a process that tells how much memory it took.
MEASURED = (
    "import resource, sys; from tfadmit_client import cli; code = cli.main(sys.argv[1:]); "
    "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr); "
    "sys.exit(code)"
)


@pytest.fixture
def audit(cluster, capsys):
    """Run the command as the administrator, or with another kubeconfig."""

    def run(*argv, kubeconfig=cluster.kubeconfig):
        code = cli.main(["audit", "--kubeconfig", str(kubeconfig), *argv])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def guest(cluster, namespace):
    """A service account of the namespace, without any right."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "guest"}}
    cluster.apply(account, namespace=namespace)
    return cluster.kubeconfig_of("guest", namespace)


def runtime(namespace, name, *, labelled=True, **network):
    """A runtime with the label where the webhook would put it."""
    content = support.shipped_runtime(name=name, namespace=namespace)
    if labelled:
        template = content["spec"]["template"]
        template.setdefault("metadata", {}).setdefault("labels", {}).update(builders.LABEL)
        for job in template["spec"]["replicatedJobs"]:
            pod = job["template"]["spec"]["template"]
            pod.setdefault("metadata", {}).setdefault("labels", {}).update(builders.LABEL)
    return support.network(content, network) if network else content


def grant(cluster, namespace, *resources):
    """Let the guest list these resources of the namespace."""
    metadata = {"name": "guest", "namespace": namespace}
    group = "rbac.authorization.k8s.io"
    rule = {
        "apiGroups": ["trainer.kubeflow.org", "jobset.x-k8s.io"],
        "resources": list(resources),
        "verbs": ["list"],
    }
    account = {"kind": "ServiceAccount", "name": "guest", "namespace": namespace}
    cluster.apply(
        [
            {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
            {
                "apiVersion": f"{group}/v1",
                "kind": "RoleBinding",
                "metadata": metadata,
                "roleRef": {"apiGroup": group, "kind": "Role", "name": "guest"},
                "subjects": [account],
            },
        ]
    )


def found(out):
    return [(item["kind"], item["name"], item["rule"]) for item in json.loads(out)["findings"]]


def test_a_namespace_in_order(cluster, namespace, audit):
    cluster.apply(runtime(namespace, "good"))
    assert audit("-n", namespace) == (0, "0 violations, 0 warnings in 1 object; 0 skipped\n", "")


def test_violations_of_every_kind_are_found(cluster, namespace, audit):
    job = support.trainjob(namespace, runtime="good", name=LONG, numNodes=11)
    job["spec"]["suspend"] = True
    chiefs = builders.make_replicated_job("chief", completions=2)
    cluster.apply(
        [
            runtime(namespace, "good"),
            runtime(namespace, "bad", publishNotReadyAddresses=False),
            runtime(namespace, "old", labelled=False),
            job,
            support.jobset(namespace, chiefs, name="chiefs", suspend=True),
        ]
    )
    code, out, _ = audit("-n", namespace, "-o", "json")
    # Trainer may have made the JobSet of the TrainJob, or not: JobSet refuses its long names.
    assert code == 1
    assert found(out) == [
        ("TrainingRuntime", "bad", "TFA001"),
        ("TrainingRuntime", "old", "label-not-copied"),
        ("TrainJob", LONG, "TFA014"),
        ("JobSet", "chiefs", "cluster-invalid"),
    ]
    assert json.loads(out)["failures"] == []


def test_the_way_out_for_a_runtime_from_before_tfadmit_is_an_update(cluster, namespace, audit):
    cluster.apply(runtime(namespace, "old", labelled=False))
    assert "kubectl get trainingruntime old -n" in audit("-n", namespace)[1]
    shown = cluster.kubectl("get", "trainingruntime", "old", "-n", namespace, "-o", "yaml").stdout
    cluster.kubectl("replace", "-f", "-", input=shown)


def test_all_namespaces_and_the_runtimes_of_the_cluster(cluster, namespace, audit):
    content = runtime(namespace, "audited", publishNotReadyAddresses=False)
    content["kind"] = "ClusterTrainingRuntime"
    del content["metadata"]["namespace"]
    with support.applied_runtime(cluster, content):
        code, out, _ = audit("-o", "prometheus")
    assert code == 1
    metric = "tfadmit_audit_violations"
    kind = "ClusterTrainingRuntime"
    assert f'{metric}{{rule="TFA001",level="deny",kind="{kind}"}} 1\n' in out
    assert 'tfadmit_audit_kind_read{kind="JobSet"} 1\n' in out


def test_without_rights_the_missing_ones_are_named(audit, namespace, guest):
    code, out, err = audit("-n", namespace, kubeconfig=guest)
    assert (code, err) == (3, "")
    assert (
        f"not (all) read: TrainJobs: you may not list trainjobs.trainer.kubeflow.org in namespace "
        f"{namespace} (403): a Role in it with the verb list" in out
    )
    assert "clustertrainingruntimes.trainer.kubeflow.org in the whole cluster (403)" in out
    assert out.count("(403)") == 4


def test_with_some_rights_the_rest_is_judged(cluster, namespace, audit, guest):
    grant(cluster, namespace, "trainingruntimes", "jobsets")
    cluster.apply(runtime(namespace, "bad", publishNotReadyAddresses=False))
    code, out, _ = audit("-n", namespace, "-o", "json", kubeconfig=guest)
    assert code == 1
    assert found(out) == [("TrainingRuntime", "bad", "TFA001")]
    assert [item["kind"] for item in json.loads(out)["failures"]] == [
        "ClusterTrainingRuntime",
        "TrainJob",
    ]


def changed(cluster, tmp_path, *, server=None, token=None):
    """The administrator's kubeconfig with another address, or as somebody else."""
    shown = cluster.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json")
    content = json.loads(shown.stdout)
    if server:
        content["clusters"][0]["cluster"]["server"] = server
    if token:
        content["users"][0]["user"] = {"token": token}
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(content))
    return path


def test_a_port_without_an_api_server(cluster, audit, tmp_path):
    path = changed(cluster, tmp_path, server="https://127.0.0.1:1")
    code, out, err = audit(kubeconfig=path)
    assert (code, out) == (3, "")
    assert err.startswith("tfadmit audit: error: https://127.0.0.1:1: the API server cannot be re")


def test_credentials_that_are_not_accepted(cluster, audit, tmp_path):
    code, out, err = audit(kubeconfig=changed(cluster, tmp_path, token="nobody"))
    assert (code, out) == (3, "")
    assert "your credentials are not accepted (401)" in err


def test_a_kind_that_the_cluster_does_not_serve(cluster):
    kind = listing.Kind(name="TrainJob", group="trainer.kubeflow.org", version="v9")
    reader = live.connect(kubeconfig=str(cluster.kubeconfig))
    with pytest.raises(listing.ReadError) as caught:
        list(listing.objects(reader, kind, namespace=None))
    assert str(caught.value).startswith(
        "the cluster does not serve trainjobs.trainer.kubeflow.org/v9: install Kubeflow Trainer"
    )


@pytest.mark.timeout(300)
def test_thousands_of_objects_take_seconds(cluster, namespace):
    content = runtime(namespace, "bad", publishNotReadyAddresses=False)
    path = cluster.api.resource("TrainingRuntime").path(namespace=namespace)

    def create(number):
        metadata = {**content["metadata"], "name": f"bad-{number}"}
        cluster.api.request("POST", path, body={**content, "metadata": metadata})

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(create, range(MANY)))
    started = time.perf_counter()
    options = ["audit", "--kubeconfig", str(cluster.kubeconfig), "-n", namespace, "-o", "json"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *options], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    assert done.returncode == 1, done.stderr
    assert len(json.loads(done.stdout)["findings"]) == MANY
    print(f"audit of {MANY:,} runtimes: {seconds:.1f} s, {int(done.stderr)} MiB")
