"""The plain port of `tfadmit certs run`: metrics and probes."""

import contextlib

import pytest
import urllib3

from tfadmit_certs import metrics, plan
from unit.certs import world


@pytest.fixture(name="counted")
def make_metrics():
    return metrics.Metrics()


@contextlib.contextmanager
def served(counted, *, alive="", ready=""):
    port = metrics.Port(
        host="127.0.0.1",
        port=0,
        registry=counted.registry,
        alive=lambda: alive,
        ready=lambda: ready,
    )
    port.start()
    try:
        with urllib3.PoolManager() as pool:
            yield lambda path: pool.request("GET", f"http://127.0.0.1:{port.port}{path}")
    finally:
        port.stop()


def test_probes_tell_why_not(counted):
    with served(counted, alive="no round since 200 s", ready="the API server is silent") as get:
        assert (get("/healthz").status, get("/healthz").data) == (503, b"no round since 200 s\n")
        assert (get("/readyz").status, get("/readyz").data) == (503, b"the API server is silent\n")
    with served(counted) as get:
        assert (get("/healthz").status, get("/readyz").status) == (200, 200)
        assert get("/secret").status == 404


def test_dates_and_bundles_are_gauges(counted):
    made = world.World()
    made.configure("MutatingWebhookConfiguration", None, None)
    made.settle()
    made.configure("MutatingWebhookConfiguration", None, made.authority.pem)
    counted.saw(made.look(), refused=False, phase="publish")
    counted.leading(True)
    end = made.leaf.certificate.not_valid_after_utc.timestamp()
    value = counted.registry.get_sample_value
    assert value("tfadmit_certs_not_after_timestamp_seconds", {"certificate": "leaf"}) == end
    assert value("tfadmit_certs_not_after_timestamp_seconds", {"certificate": "next"}) == 0
    assert value("tfadmit_certs_bundle_bytes") == len(made.authority.pem)
    assert value("tfadmit_certs_bundle_certificates") == 1
    assert value("tfadmit_certs_webhooks") == 2
    assert value("tfadmit_certs_webhooks_without_bundle") == 1
    assert value("tfadmit_certs_phase", {"phase": "publish"}) == 1
    assert value("tfadmit_certs_phase", {"phase": "steady"}) == 0
    assert value("tfadmit_certs_leader") == 1


def test_what_was_mended_is_counted_by_its_reason(counted):
    step = plan.Step(name="replace-ca", phase="publish", word="expired", text="")
    counted.did(step, healed=False)
    counted.failed("api")
    value = counted.registry.get_sample_value
    assert value("tfadmit_certs_mended_total", {"reason": "expired"}) == 1
    assert value("tfadmit_certs_rotations_total", {"phase": "publish"}) == 1
    labels = {"step": "replace-ca", "reason": "expired"}
    assert value("tfadmit_certs_steps_total", labels) == 1
    assert value("tfadmit_certs_errors_total", {"reason": "api"}) == 1
