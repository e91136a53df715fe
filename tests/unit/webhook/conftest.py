"""What tests of the real server share."""

import json

import pytest

from unit.webhook import fake_api


@pytest.fixture
def fake_cluster(tmp_path):
    """A small API server, and the kubeconfig for it."""
    api = fake_api.FakeApi()
    api.start()
    api.kubeconfig = tmp_path / "kubeconfig"
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": api.url}}],
    }
    api.kubeconfig.write_text(json.dumps(config))
    yield api
    api.stop()
