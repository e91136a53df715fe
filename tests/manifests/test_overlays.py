"""What each overlay adds to the base: who issues the certificate and where the server reads it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import jsonschema
import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from harness import addons
from manifests import crd_schema, shipped
from tfadmit_certs import bundle, issue, san

TLS_FILES = ["--tls-cert", "/tls/tls.crt", "--tls-key", "/tls/tls.key"]
TLS_SECRET = ["--tls-secret", "tfadmit-system/tfadmit-webhook-tls"]
NAMESPACE = "tfadmit-system"


def identity(item):
    return item["apiVersion"], item["kind"], item["metadata"]["name"]


def added(overlay, base):
    known = {identity(item) for item in base}
    return sorted(identity(item)[1:] for item in overlay if identity(item) not in known)


def server(objects):
    return shipped.pod_spec(objects, "tfadmit-webhook")


def arguments(objects, name="tfadmit-webhook"):
    (container,) = shipped.pod_spec(objects, name)["containers"]
    return container["args"]


def secrets(pod):
    """Every Secret that a pod would hold, by whatever way it gets in."""
    found = [v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v]
    found += [
        source["secret"]["name"]
        for volume in pod["volumes"]
        for source in volume.get("projected", {}).get("sources", [])
        if "secret" in source
    ]
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        found += [e["secretRef"]["name"] for e in container.get("envFrom", []) if "secretRef" in e]
        references = [e.get("valueFrom", {}).get("secretKeyRef") for e in container.get("env", [])]
        found += [reference["name"] for reference in references if reference]
    return found


def pods(objects):
    return {
        item["metadata"]["name"]: item["spec"]["template"]["spec"]
        for item in objects
        if item["kind"] == "Deployment"
    }


# --- all three ----------------------------------------------------------------------------------


def test_an_overlay_changes_nothing_of_the_base_but_the_server_and_annotations(overlay, base):
    mine = {identity(item): item for item in overlay}
    for item in base:
        other = mine[identity(item)]
        if item["kind"] != "Deployment":
            other = {**other, "metadata": {**other["metadata"]}}
            other["metadata"].pop("annotations", None)
            assert other == item
    shared, patched = (server(objects) for objects in (base, overlay))
    assert patched["securityContext"] == shared["securityContext"]
    assert arguments(overlay)[: len(arguments(base))] == arguments(base)


def test_no_manifest_carries_a_secret_or_a_ca_bundle(overlay):
    assert not any(item["kind"] == "Secret" for item in overlay)
    assert "caBundle" not in str(overlay)


def test_the_key_of_the_ca_reaches_no_pod(overlay):
    """Neither our own CA's Secret nor cert-manager's; of the leaf's Secret the pair alone."""
    held = {name: secrets(pod) for name, pod in pods(overlay).items()}
    assert held.pop("tfadmit-webhook") in ([], ["tfadmit-webhook-tls"])
    assert all(names == [] for names in held.values())


def test_everything_added_is_namespaced_labelled_and_named_after_us(overlay, base):
    known = {identity(item) for item in base}
    for item in (item for item in overlay if identity(item) not in known):
        cluster_scoped = item["kind"] in {"ClusterRole", "ClusterRoleBinding"}
        assert item["metadata"].get("namespace") == (None if cluster_scoped else NAMESPACE)
        assert item["metadata"]["labels"]["app.kubernetes.io/name"] == "tfadmit"
        assert item["metadata"]["name"].startswith("tfadmit-")


# --- self-managed -------------------------------------------------------------------------------


def test_self_managed_adds_one_process_and_its_rights(self_managed, base):
    assert added(self_managed, base) == [
        ("ClusterRole", "tfadmit-certs"),
        ("ClusterRoleBinding", "tfadmit-certs"),
        ("Deployment", "tfadmit-certs"),
        ("NetworkPolicy", "tfadmit-certs"),
        ("PodDisruptionBudget", "tfadmit-certs"),
        ("Role", "tfadmit-certs"),
        ("Role", "tfadmit-webhook"),
        ("RoleBinding", "tfadmit-certs"),
        ("RoleBinding", "tfadmit-webhook"),
        ("Service", "tfadmit-certs"),
        ("ServiceAccount", "tfadmit-certs"),
    ]


def test_self_managed_puts_no_key_on_any_file_system(self_managed, base):
    assert arguments(self_managed) == [*arguments(base), *TLS_SECRET]
    assert all(secrets(pod) == [] for pod in pods(self_managed).values())
    assert server(self_managed)["volumes"] == server(base)["volumes"]


def test_both_processes_read_the_same_settings(self_managed):
    names = [
        [v["configMap"]["name"] for v in pod["volumes"] if "configMap" in v]
        for pod in pods(self_managed).values()
    ]
    settings = shipped.one(self_managed, "ConfigMap")["metadata"]["name"]
    assert names == [[settings], [settings]]


# --- mounted certificates -----------------------------------------------------------------------


@pytest.fixture(params=["cert_manager", "files"])
def mounting(request):
    return request.getfixturevalue(request.param)


def test_a_mounted_certificate_can_be_renewed_and_brings_nothing_else_along(mounting, base):
    assert arguments(mounting) == [*arguments(base), *TLS_FILES]
    (container,) = server(mounting)["containers"]
    (mount,) = (m for m in container["volumeMounts"] if m["name"] == "tls")
    # With a subPath it would be filled once and never see a renewed certificate.
    assert mount == {"name": "tls", "mountPath": "/tls", "readOnly": True}
    (volume,) = (v for v in server(mounting)["volumes"] if v["name"] == "tls")
    assert volume["secret"] == {
        "secretName": "tfadmit-webhook-tls",
        "defaultMode": 0o440,
        "items": [
            {"key": "tls.crt", "path": "tls.crt"},
            {"key": "tls.key", "path": "tls.key"},
        ],
    }


def test_files_add_no_object(files, base):
    assert added(files, base) == []


# --- cert-manager -------------------------------------------------------------------------------


def certificates(objects):
    return [item for item in objects if item["apiVersion"] == "cert-manager.io/v1"]


def test_cert_manager_issues_from_a_ca_of_our_own(cert_manager, base):
    assert added(cert_manager, base) == [
        ("Certificate", "tfadmit-ca"),
        ("Certificate", "tfadmit-webhook"),
        ("Issuer", "tfadmit-ca"),
        ("Issuer", "tfadmit-selfsigned"),
    ]
    ca = shipped.named(cert_manager, "Certificate", "tfadmit-ca")["spec"]
    issuer = shipped.named(cert_manager, "Issuer", "tfadmit-ca")["spec"]
    assert issuer == {"ca": {"secretName": ca["secretName"]}}
    assert ca["secretName"] == "tfadmit-ca"
    assert (ca["duration"], ca["renewBefore"]) == ("8760h", "2160h")
    # A new key would not verify the certificate that the pods still show.
    assert ca["privateKey"] == {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Never"}


def ca_certificate(key):
    """A CA as cert-manager makes it: name and key identifier are those of the one before."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tfadmit-webhook-ca")])
    now = datetime.now(timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=365))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def test_a_renewed_ca_with_its_old_key_trusts_the_certificate_of_the_one_before():
    """What `rotationPolicy: Never` of the CA is for; with a new key the old leaf is a stranger."""
    names = san.check(dns=["tfadmit-webhook.tfadmit-system.svc"], ips=[])
    key = ec.generate_private_key(ec.SECP256R1())
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    before = ca_certificate(key).public_bytes(serialization.Encoding.PEM)
    leaf = issue.issue_leaf(
        ca=bundle.Pair(certificate=before, key=pem),
        names=names,
        now=datetime.now(timezone.utc),
        entropy=issue.system_entropy(),
        lifetime=timedelta(days=7),
    )
    (shown, *_) = x509.load_pem_x509_certificates(leaf.certificate)
    shown.verify_directly_issued_by(ca_certificate(key))
    with pytest.raises(InvalidSignature):
        shown.verify_directly_issued_by(ca_certificate(ec.generate_private_key(ec.SECP256R1())))


def test_cert_managers_leaf_is_for_the_name_that_the_api_server_asks_for(cert_manager):
    leaf = shipped.named(cert_manager, "Certificate", "tfadmit-webhook")["spec"]
    service = shipped.named(cert_manager, "Service", "tfadmit-webhook")["metadata"]
    assert leaf["dnsNames"] == [f"{service['name']}.{service['namespace']}.svc"]
    assert leaf["secretName"] == "tfadmit-webhook-tls"
    assert (leaf["duration"], leaf["renewBefore"]) == ("168h", "56h")
    assert leaf["privateKey"] == {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"}
    assert leaf["usages"] == ["digital signature", "server auth"]
    assert leaf["issuerRef"]["name"] == "tfadmit-ca"


def test_cainjector_writes_the_ca_into_both_configurations(cert_manager):
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        annotations = shipped.one(cert_manager, kind)["metadata"]["annotations"]
        assert annotations == {"cert-manager.io/inject-ca-from": "tfadmit-system/tfadmit-webhook"}


def test_cert_managers_objects_are_valid_for_its_crds(cert_manager):
    for item in certificates(cert_manager):
        plural = item["kind"].lower() + "s"
        schema = crd_schema.load(addons.crds() / f"cert-manager.io_{plural}.yaml", version="v1")
        jsonschema.validate(item, schema)
        wrong = {**item, "spec": {**item["spec"], "durration": "1h"}}
        with pytest.raises(jsonschema.ValidationError, match="durration"):
            jsonschema.validate(wrong, schema)
