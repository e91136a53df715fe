"""Alerts and dashboard: their metrics exist, every alert has its page, and the rules work."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import jsonschema
import prometheus_client
import pytest
import yaml

from harness import addons
from manifests import crd_schema, shipped
from tfadmit_certs import metrics
from tfadmit_webhook import observe

FOLDER = shipped.DEPLOY / "monitoring"
RUNBOOKS = shipped.ROOT / "docs/runbooks.md"
# Those of kube-apiserver and kube-state-metrics.
FOREIGN = {
    "apiserver_admission_webhook_admission_duration_seconds_bucket",
    "apiserver_admission_webhook_fail_open_count",
    "apiserver_admission_webhook_rejection_count",
    "kube_deployment_spec_replicas",
    "kube_deployment_status_replicas_available",
}
# What Prometheus adds to each series of a target.
OF_TARGETS = {"pod", "job", "namespace", "le"}
METRIC = re.compile(r"\b(?:tfadmit|apiserver|kube)_\w+")


@pytest.fixture(scope="module")
def monitoring():
    rendering = shipped.kustomize(FOLDER)
    assert (rendering.returncode, rendering.stderr) == (0, "")
    return shipped.parse(rendering.stdout)


@pytest.fixture(scope="module")
def alerts(monitoring):
    groups = shipped.one(monitoring, "PrometheusRule")["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


@pytest.fixture(scope="module")
def dashboard(monitoring):
    (text,) = shipped.one(monitoring, "ConfigMap")["data"].values()
    return json.loads(text)


@pytest.fixture(scope="module")
def expressions(alerts, dashboard):
    targets = [t for panel in dashboard["panels"] for t in panel.get("targets", [])]
    return [*(alert["expr"] for alert in alerts), *(target["expr"] for target in targets)]


@pytest.fixture(scope="module")
def exported():
    """The labels of every series that our two processes export, by its name."""
    server = prometheus_client.CollectorRegistry()
    observe.Observer(server)
    return {
        name: set(vars(collector)["_labelnames"])
        for registry in (server, metrics.Metrics().registry)
        for name, collector in registry._names_to_collectors.items()
    }


def test_the_folder_holds_exactly_these_objects(monitoring):
    assert sorted((i["kind"], i["metadata"]["name"]) for i in monitoring) == [
        ("ConfigMap", "tfadmit-dashboard"),
        ("PrometheusRule", "tfadmit"),
        ("ServiceMonitor", "tfadmit-certs"),
        ("ServiceMonitor", "tfadmit-webhook"),
    ]
    assert {item["metadata"]["namespace"] for item in monitoring} == {"tfadmit-system"}


def test_the_overlays_stay_without_it(overlay):
    """Its kinds are unknown where there is no Prometheus Operator."""
    assert not any(item["apiVersion"].startswith("monitoring.") for item in overlay)


def test_the_objects_are_valid_for_the_operators_crds(monitoring):
    for item in monitoring:
        if item["kind"] == "ConfigMap":
            continue
        file = f"monitoring.coreos.com_{item['kind'].lower()}s.yaml"
        schema = crd_schema.load(addons.crds() / file, version="v1")
        jsonschema.validate(item, schema)
        with pytest.raises(jsonschema.ValidationError, match="grupos"):
            jsonschema.validate({**item, "spec": {**item["spec"], "grupos": []}}, schema)


def test_each_process_is_scraped_at_the_port_of_its_service(monitoring, self_managed):
    for item in (item for item in monitoring if item["kind"] == "ServiceMonitor"):
        selected = [
            other
            for other in self_managed
            if other["kind"] == "Service"
            and item["spec"]["selector"]["matchLabels"].items()
            <= other["metadata"]["labels"].items()
        ]
        (service,) = selected
        # The alerts say job="tfadmit-webhook": the name of the Service.
        assert service["metadata"]["name"] == item["metadata"]["name"]
        (endpoint,) = item["spec"]["endpoints"]
        assert endpoint["port"] in {port["name"] for port in service["spec"]["ports"]}


def test_every_metric_is_exported_by_us_or_known_of_others(expressions, exported):
    used = {name for expression in expressions for name in METRIC.findall(expression)}
    assert used - FOREIGN - set(exported) == set()
    # What nobody uses any more would hide the next mistake.
    assert used >= FOREIGN


def test_every_label_is_one_of_its_metric(expressions, exported):
    for expression in expressions:
        for name, matchers in re.findall(r"\b(tfadmit_\w+)\{([^}]*)\}", expression):
            labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers))
            assert labels <= exported[name] | OF_TARGETS, expression
        ours = [exported[name] for name in METRIC.findall(expression) if name in exported]
        for grouped in re.findall(r"\bby \(([^)]*)\)", expression) if ours else ():
            labels = {label.strip() for label in grouped.split(",")}
            assert labels <= set.union(*ours) | OF_TARGETS, expression


def test_every_alert_says_how_bad_it_is_and_where_to_read_on(alerts):
    anchors = {
        re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^##+ (.*)$", RUNBOOKS.read_text(), flags=re.MULTILINE)
    }
    for alert in alerts:
        assert alert["labels"]["severity"] in {"critical", "warning"}
        file, anchor = alert["annotations"]["runbook_url"].split("#")
        assert file == "docs/runbooks.md"
        assert anchor == alert["alert"].lower()
        assert anchor in anchors
        assert alert["annotations"]["summary"].endswith(".")


def test_every_entry_of_the_runbooks_belongs_to_an_alert_and_says_the_same_four_things(alerts):
    text = RUNBOOKS.read_text()
    sections = dict(
        re.findall(r"^### (Tfadmit\w+)\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE)
    )
    assert list(sections) == [alert["alert"] for alert in alerts]
    for section in sections.values():
        found = re.findall(r"^\*\*(.*?)\*\*", section, flags=re.MULTILINE)
        assert found == ["Means.", "Users see.", "Look.", "Do."]


def test_every_panel_of_the_dashboard_asks_something_of_a_source_that_can_be_chosen(dashboard):
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    assert len({panel["title"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["targets"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24


def test_every_alert_fires_in_a_unit_test(alerts):
    tests = yaml.safe_load((FOLDER / "tests/rules_test.yaml").read_text())["tests"]
    fired = {
        name
        for test in tests
        for question in test.get("promql_expr_test", [])
        for sample in question["exp_samples"]
        for name in re.findall(r'alertname="(\w+)"', sample["labels"])
    }
    assert fired == {alert["alert"] for alert in alerts}


def test_prometheus_evaluates_the_rules_as_meant(monitoring, tmp_path):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on PATH: building it takes Go minutes and 100 modules")
    spec = shipped.one(monitoring, "PrometheusRule")["spec"]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(spec))
    shutil.copy(FOLDER / "tests/rules_test.yaml", tmp_path)
    for arguments in (["check", "rules", "rules.yaml"], ["test", "rules", "rules_test.yaml"]):
        done = subprocess.run(
            [promtool, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
