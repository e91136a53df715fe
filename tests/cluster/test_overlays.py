"""The overlays before a real API server: known fields, admitted pods, and rights as stated."""

import functools
import subprocess

import pytest
import yaml

from cluster import support
from harness import addons, controllers
from harness.api import ApiError

OVERLAYS = ("self-managed", "cert-manager", "files")
NAMESPACE = "tfadmit-system"
CRD = "CustomResourceDefinition"
RIGHTS = {"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
HOOKS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
SECRETS = ("tfadmit-webhook-ca", "tfadmit-webhook-tls")
# Every verb that could matter, for each kind of object that an overlay has to do with.
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")


@pytest.fixture(scope="module", autouse=True)
def known(cluster):
    """The kinds of cert-manager and the Prometheus Operator, and our namespace."""
    definitions = sorted(addons.crds().glob("*.yaml"))
    names = [cluster.apply(file)[0]["metadata"]["name"] for file in definitions]
    for name in names:
        cluster.wait(
            lambda name=name: cluster.get(CRD, name),
            until=controllers.established,
            what=f"{name} is established",
        )
    cluster.apply(support.ROOT / "deploy/base/namespace.yaml")
    yield
    for name in names:
        cluster.delete(CRD, name)


def render(cluster, folder):
    return cluster.kubectl("kustomize", str(support.ROOT / "deploy" / folder)).stdout


def objects(cluster, folder):
    return [item for item in yaml.safe_load_all(render(cluster, folder)) if item]


@pytest.mark.parametrize("folder", [*(f"overlays/{name}" for name in OVERLAYS), "monitoring"])
def test_the_api_server_knows_every_field_and_warns_of_nothing(cluster, folder):
    """Pod Security warns at Deployments, kubectl and the API server at unknown fields."""
    # Server-side, or kubectl would warn of objects that it has not applied before.
    options = ("--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict")
    done = cluster.kubectl("apply", *options, "-f", "-", input=render(cluster, folder))
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == len(objects(cluster, folder))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_pods_are_admitted_where_the_restricted_standard_is_enforced(cluster, overlay):
    rendered = objects(cluster, f"overlays/{overlay}")
    needed = [item for item in rendered if item["kind"] in {"ServiceAccount", "PriorityClass"}]
    cluster.apply(needed)
    try:
        for item in (item for item in rendered if item["kind"] == "Deployment"):
            name = item["metadata"]["name"]
            template = item["spec"]["template"]
            pod = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {**template["metadata"], "name": name, "namespace": NAMESPACE},
                "spec": template["spec"],
            }
            # Admission hears of the new PriorityClass a moment after it was created.
            made = cluster.wait(
                functools.partial(cluster.tried, pod),
                until=lambda found: isinstance(found, dict),
                what=f"the pod of {name} is admitted",
            )
            assert made["metadata"]["name"] == name
            pod["spec"] = {**pod["spec"], "hostNetwork": True}
            with pytest.raises(ApiError, match="violates PodSecurity"):
                cluster.create(pod, dry_run=True)
    finally:
        for item in needed:
            metadata = item["metadata"]
            cluster.delete(item["kind"], metadata["name"], metadata.get("namespace"))


@pytest.fixture(scope="module")
def granted(cluster, known):
    """The accounts and rights of the self-managed overlay, without its processes."""
    rendered = objects(cluster, "overlays/self-managed")
    rights = [item for item in rendered if item["kind"] in RIGHTS]
    cluster.apply(rights)
    yield
    for item in rights:
        metadata = item["metadata"]
        cluster.delete(item["kind"], metadata["name"], metadata.get("namespace"))


def allowed(cluster, account, resource):
    """The verbs that the API server would let an account use on one object."""
    return {verb for verb in VERBS if can(cluster, account, verb, resource)}


def can(cluster, account, verb, resource):
    subject = f"--as=system:serviceaccount:{NAMESPACE}:{account}"
    done: subprocess.CompletedProcess[str] = cluster.kubectl(
        "auth", "can-i", verb, resource, "-n", NAMESPACE, subject, check=False
    )
    return done.stdout.strip() == "yes"


@pytest.mark.usefixtures("granted")
def test_the_server_reads_its_own_certificate_and_never_the_ca(cluster):
    ca, leaf = (f"secrets/{name}" for name in SECRETS)
    assert allowed(cluster, "tfadmit-webhook", ca) == set()
    assert allowed(cluster, "tfadmit-webhook", leaf) == {"get", "list", "watch"}
    for hooks in HOOKS:
        assert allowed(cluster, "tfadmit-webhook", f"{hooks}/tfadmit") == {"get"}
        assert allowed(cluster, "tfadmit-webhook", f"{hooks}/other") == set()


@pytest.mark.usefixtures("granted")
def test_the_process_of_the_certificates_touches_its_own_objects_only(cluster):
    account = "tfadmit-certs"
    reads = {"get", "watch"}
    for name in SECRETS:
        # A right to create has no name.
        assert allowed(cluster, account, f"secrets/{name}") == reads | {"create", "update"}
    assert allowed(cluster, account, "secrets/other") == {"create"}
    lease = "leases.coordination.k8s.io/tfadmit-certs"
    assert allowed(cluster, account, lease) == reads | {"create", "update"}
    for hooks in HOOKS:
        assert allowed(cluster, account, f"{hooks}/tfadmit") == reads | {"patch"}
        assert allowed(cluster, account, f"{hooks}/other") == set()
    assert allowed(cluster, account, "pods") == set()
