"""`tfadmit certs` as it is put together, with the settings file of the webhook."""

from datetime import timedelta

import pytest

from tfadmit_certs.lifetimes import Lifetimes
from tfadmit_client import fault
from tfadmit_client.commands import certs


def test_without_a_file_the_defaults_of_both_components_agree():
    assert certs._load(None).lifetimes == Lifetimes()
    assert certs._load(None).cluster_domain == "cluster.local"


def test_the_section_of_the_settings_file_is_used(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text(
        "clusterDomain: corp.example\n"
        "certificates: {caLifetime: 100h, caRenewBefore: 40h, leafLifetime: 10h30m,\n"
        "  leafRenewBefore: 90m, clockSkew: 30s, settle: 1.5s}\n"
    )
    settings = certs._load(file)
    assert settings.cluster_domain == "corp.example"
    assert settings.lifetimes.ca == timedelta(hours=100)
    assert settings.lifetimes.ca_renew_before == timedelta(hours=40)
    assert settings.lifetimes.leaf == timedelta(hours=10, minutes=30)
    assert settings.lifetimes.leaf_renew_before == timedelta(minutes=90)
    assert settings.lifetimes.clock_skew == timedelta(seconds=30)
    assert settings.lifetimes.settle == timedelta(seconds=1.5)


def test_faults_of_the_file_are_told_with_their_path(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("certificates: {settle: 5, leafLifetime: week}\n")
    with pytest.raises(fault.ClientError) as caught:
        certs._load(file)
    assert "certificates.leafLifetime: is 'week', which is no duration such as" in str(caught.value)
    assert 'certificates.settle: is 5, which is no text in YAML: quote it, "5"' in str(caught.value)


@pytest.mark.parametrize("argv", [["run", "--in-cluster"], ["status", "--in-cluster"]])
def test_outside_of_a_cluster_that_is_said(argv, capsys, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert certs.main(argv) == 2
    assert "--in-cluster works only in a pod" in capsys.readouterr().err


def test_a_kubeconfig_that_is_not_there_is_said(capsys, tmp_path):
    assert certs.main(["status", "--kubeconfig", str(tmp_path / "none")]) == 2
    assert "there is no such kubeconfig" in capsys.readouterr().err


def test_a_url_must_be_one(capsys):
    assert certs.main(["status", "--url", "http://x"]) == 2
    assert "is not the start of an https:// URL" in capsys.readouterr().err
