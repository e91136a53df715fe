"""Exemptions at `kubectl apply`: the named object passes in silence, all others are judged."""

import pytest

from cluster import support

EXEMPTIONS = """
exemptions:
  - {rule: TFA001, kind: TrainingRuntime, name: legacy-*, namespace: test-*, reason: moves in May}
"""


@pytest.fixture
def exempting(cluster, tfadmit):
    """The server with an exemption, and afterwards as shipped."""
    file = cluster.directory / "tfadmit" / "settings.yaml"
    shipped = file.read_text()
    try:
        with tfadmit.stopped():
            file.write_text(shipped + EXEMPTIONS)
        tfadmit.wait_until_called()
        yield
    finally:
        with tfadmit.stopped():
            file.write_text(shipped)
        tfadmit.wait_until_called()


@pytest.mark.usefixtures("exempting")
def test_only_the_exempted_object_and_rule_pass(cluster, namespace):
    def apply(name, network):
        runtime = support.shipped_runtime(name=name, namespace=namespace)
        return support.applied(cluster, support.network(runtime, network))

    result = apply("legacy-a", {})
    assert (result.returncode, result.stderr) == (0, "")
    assert "TFA001" in apply("other", {}).stderr
    result = apply("legacy-b", {"enableDNSHostnames": False})
    assert result.returncode == 1
    assert "TFA002" in result.stderr
    assert "TFA001" not in result.stderr
