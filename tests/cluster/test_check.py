"""`tfadmit check` over a real API server with tfadmit installed."""

import json

import pytest

from tfadmit_client import cli


@pytest.fixture
def check(cluster, capsys):
    """Run the command as the administrator, or with another kubeconfig."""

    def run(*argv, kubeconfig=cluster.kubeconfig):
        code = cli.main(["check", "--kubeconfig", str(kubeconfig), *argv])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def lines(out, state):
    return [line[6:] for line in out.splitlines() if line.startswith(state)]


def infrastructure(out):
    """The failures beside the objects that other tests leave behind."""
    others = ("objects judged", "the Kubeflow SDK fails to list")
    return [line for line in lines(out, "fail") if not line.startswith(others)]


def test_row_29_an_installed_cluster_is_ready(cluster, namespace, tfadmit, check):
    _, out, err = check("-n", namespace)
    assert (infrastructure(out), err) == ([], "")
    ok = lines(out, "ok")
    assert f"the webhook is called for pods in namespace {namespace} (dry run)" in ok
    assert "jobset.x-k8s.io/v1alpha2 serves JobSet" in ok
    assert any(line.startswith("webhook pods.tfadmit.dev: failurePolicy Fail, CA") for line in ok)
    assert cluster.list("Pod", namespace) == []


def test_the_serving_certificate_is_compared_with_each_ca_bundle(cluster, tfadmit, check):
    files = tfadmit.ca.parent
    name = "tfadmit-webhook-tls"
    cluster.kubectl(
        "create", "secret", "tls", name, "-n", "tfadmit-system",
        f"--cert={files / 'tls.crt'}", f"--key={files / 'tls.key'}",
    )  # fmt: skip
    try:
        _, out, _ = check()
    finally:
        cluster.delete("Secret", name, "tfadmit-system")
    (line,) = [text for text in lines(out, "ok") if "serving certificate" in text]
    assert line.endswith("and each webhook's caBundle trusts it")


def test_a_stopped_server_will_fail(namespace, tfadmit, check):
    with tfadmit.stopped():
        code, out, _ = check("-n", namespace)
    assert code == 1
    (line,) = infrastructure(out)
    assert line.startswith(f"TensorFlow pods in namespace {namespace} are refused: ")
    assert 'failed calling webhook "pods.tfadmit.dev"' in line


def test_a_namespace_that_is_left_out_is_told(tfadmit, check):
    code, out, _ = check("-n", "kube-system")
    assert code == 1
    assert infrastructure(out)[0].startswith("TensorFlow pods in namespace kube-system get no clus")


def test_without_rights_it_says_what_it_cannot_know(cluster, namespace, tfadmit, check):
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "guest"}}
    cluster.apply(account, namespace=namespace)
    guest = cluster.kubeconfig_of("guest", namespace)
    code, out, err = check("-n", namespace, kubeconfig=guest)
    assert (code, err, lines(out, "fail")) == (0, "", [])
    assert "the right is get on mutatingwebhookconfigurations" in out
    assert "whether the webhook is called is unknown" in out


def test_a_port_without_an_api_server(cluster, check, tmp_path):
    shown = cluster.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json")
    path = tmp_path / "kubeconfig"
    server = json.loads(shown.stdout)
    server["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    path.write_text(json.dumps(server))
    code, out, err = check(kubeconfig=path)
    assert (code, out) == (3, "")
    assert "the API server cannot be reached" in err
