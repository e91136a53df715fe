"""From the text of the settings file to settings, or to all that is wrong with it."""

import json
import pathlib

import jsonschema
import pytest
import yaml

from tfadmit_webhook import settings_file
from tfadmit_webhook.settings import Exemption, NetworkProfile, Settings

ROOT = pathlib.Path(__file__).parents[3]

RULES = ("TFA001", "TFA002", "TFA008")


def faults(text):
    found = settings_file.load(text, rules=RULES)
    assert isinstance(found, list), "these settings were accepted"
    return [str(fault) for fault in found]


def loaded(text):
    found = settings_file.load(text, rules=RULES)
    assert isinstance(found, Settings), [str(fault) for fault in found]
    return found


@pytest.mark.parametrize("text", ["", "\n# nothing\n", "---\n", "null", "server:\n", "{}"])
def test_what_is_not_stated_keeps_its_default(text):
    assert loaded(text) == Settings()


def test_every_setting_can_be_stated():
    settings = loaded(
        """
        clusterDomain: corp.example
        defaultPort: 2222
        maxInlineBytes: 65536
        networkProfiles:
          - {name: roce, resources: [rdma/roce], attach: roce-net, env: {NCCL_IB_GID_INDEX: "3"}}
        policies: {TFA001: warn, TFA002: off}
        exemptions:
          - {rule: TFA001, name: old-*, kind: TrainJob, namespace: a, reason: moves in May}
          - {rule: TFA002, name: x, kind: null, reason: y}
        server: {threads: 4, maxInFlight: 9, maxBodyBytes: 1048576, keepAliveSeconds: 100,
                 defaultTimeoutSeconds: 3}
        """
    )
    assert settings.cluster_domain == "corp.example"
    assert settings.network_profiles == (
        NetworkProfile(
            name="roce",
            resources=("rdma/roce",),
            attach="roce-net",
            env={"NCCL_IB_GID_INDEX": "3"},
        ),
    )
    assert settings.policies == {"TFA001": "warn", "TFA002": "off"}
    assert settings.exemptions == (
        Exemption(
            rule="TFA001", name="old-*", kind="TrainJob", namespace="a", reason="moves in May"
        ),
        Exemption(rule="TFA002", name="x", reason="y"),
    )
    assert (settings.server.threads, settings.server.default_timeout_seconds) == (4, 3)


def test_the_shipped_settings_are_the_defaults():
    text = (ROOT / "deploy/base/settings.yaml").read_text()
    shipped, default = loaded(text), Settings()
    assert shipped == Settings(policies=shipped.policies)
    assert shipped.server == default.server


def test_all_faults_come_at_once_each_with_its_path():
    found = faults(
        """
        clusterDomian: x
        defaultPort: 0
        networkProfiles:
          - {name: a, resources: [], env: {NCCL_DEBUG: 1}}
          - {name: a}
          - 3
        policies: {TFA001: never}
        server: {threads: many}
        """
    )
    assert [line.partition(":")[0] for line in found] == [
        "clusterDomian",
        "defaultPort",
        "networkProfiles[0].env.NCCL_DEBUG",
        "networkProfiles[0].name",
        "networkProfiles[0].resources",
        "networkProfiles[1].name",
        "networkProfiles[1].resources",
        "networkProfiles[2]",
        "policies.TFA001",
        "server.threads",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("clusterDomian: x", "clusterDomian: there is no such setting: did you mean clusterDomain"),
        ("server: {max_body_bytes: 1}", "did you mean maxBodyBytes?"),
        ("nonsense: 1", "nonsense: there is no such setting"),
        ("defaultPort: '80'", 'defaultPort: must be a whole number, not "80"'),
        ("defaultPort: 70000", "defaultPort: is 70000, must be from 1 to 65535"),
        ("defaultPort: true", "defaultPort: must be a whole number, not true"),
        ("maxInlineBytes: 131062", "131061: Linux refuses an environment string of 128 KiB (MAX_A"),
        ("server: {keepAliveSeconds: 60}", "keeps idle connections for 90 s"),
        ("server: {threads: 0}", "server.threads: is 0, must be from 1 to 1024"),
        ("server: {defaultTimeoutSeconds: 31}", "the API server waits 30 s at most"),
        ("server: 3", "server: must be a mapping of names to values, not 3"),
        ("clusterDomain: .local", "which is no DNS domain such as cluster.local"),
        ("networkProfiles: {a: 1}", "networkProfiles: must be a list"),
        ("networkProfiles: [{name: '', resources: [x]}]", "networkProfiles[0].name: is empty"),
        ("networkProfiles: [{name: a, resources: ['']}]", "resources[0]: is empty"),
        ("networkProfiles: [{name: a, resources: [x], attach: ''}]", "attach: is empty"),
        ("policies: {TFA001: no}", "policies.TFA001: is \"no\": use 'deny', 'warn' or 'off'"),
        ("- a", "the settings must be a mapping of names to values"),
        ("a: [1", "no readable YAML: expected ',' or ']', but got '<stream end>' in line 1"),
        ("a: 1\n---\nb: 2", "no readable YAML: but found another document"),
        ("a: \x00", "no readable YAML"),
        ("a: &a [*a]", "its aliases stand for more than 100,000 values"),
        ("[" * 3000, "is nested too deep"),
        (f"defaultPort: {'9' * 5000}", "no readable YAML: Exceeds the limit"),
        ("clusterDomain: !!binary aGk=", "has the tag tag:yaml.org,2002:binary"),
        ("1: x", "the key in line 1 must be text: write it in quotes"),
    ],
)
def test_a_fault_says_what_is_wrong_and_what_to_write(text, expected):
    assert any(expected in line for line in faults(text)), faults(text)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 'is 0, which is no text in YAML: quote it, "0"'),
        ("1.5", 'is 1.5, which is no text in YAML: quote it, "1.5"'),
        ("true", 'is true, which is no text in YAML: quote it, "true"'),
        ("", 'has no value: write one, "" for the empty text'),
        ("[a]", 'must be a text, not ["a"]'),
    ],
)
def test_an_environment_value_must_be_text(value, expected):
    text = f"networkProfiles:\n- name: a\n  resources: [x]\n  env:\n    NCCL_X: {value}\n"
    assert faults(text) == [f"networkProfiles[0].env.NCCL_X: {expected}"]


@pytest.mark.parametrize("value", ["off", "no", "010", "12:30", "2026-01-01", ".inf", "1e", "0x1F"])
def test_what_yaml_1_1_misreads_is_text(value):
    text = f"networkProfiles: [{{name: a, resources: [x], env: {{NCCL_X: {value}}}}}]"
    assert loaded(text).network_profiles[0].env == {"NCCL_X": value}


@pytest.mark.parametrize("name", ["TF_CONFIG", "TF_TASK_INDEX", "TFADMIT_CLUSTER"])
def test_a_profile_cannot_set_what_is_computed_for_each_pod(name):
    text = f"networkProfiles: [{{name: a, resources: [x], env: {{{name}: x}}}}]"
    assert "is computed for each pod" in faults(text)[0]


def test_doubled_keys_are_refused_with_both_lines():
    found = faults("server:\n  threads: 1\n  threads: 2\ndefaultPort: 1\ndefaultPort: 2\n")
    assert found == [
        "server.threads: stands twice, in lines 2 and 3: keep one",
        "defaultPort: stands twice, in lines 4 and 5: keep one",
    ]


def test_the_published_schema_is_the_generated_one():
    """Regenerate it with the command in docs/settings.md."""
    published = json.loads((ROOT / "docs/settings.schema.json").read_text())
    assert published == settings_file.json_schema()


def test_the_schema_takes_the_shipped_settings_and_refuses_what_we_refuse():
    schema = settings_file.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    assert check.is_valid(yaml.safe_load((ROOT / "deploy/base/settings.yaml").read_text()))
    for wrong in (
        {"nonsense": 1},
        {"defaultPort": 0},
        {"server": {"threads": 0}},
        {"policies": {"TFA001": "never"}},
        {"networkProfiles": [{"name": "a"}]},
        {"exemptions": [{"rule": "TFA001", "name": "a"}]},
        {"exemptions": [{"rule": "TFA001", "name": "a", "reason": " "}]},
    ):
        assert not check.is_valid(wrong), wrong


def test_every_setting_is_described_in_the_schema():
    schema = settings_file.json_schema()
    owners = [schema, *schema["$defs"].values()]
    fields = [field for owner in owners for field in owner["properties"].values()]
    assert all("description" in field or "$ref" in field for field in fields)


def test_the_example_of_the_documentation_is_valid():
    page = (ROOT / "docs/settings.md").read_text()
    examples = [part.partition("```")[0] for part in page.split("```yaml\n")[1:]]
    assert examples
    for example in examples:
        loaded(example)


def test_a_rule_that_does_not_exist_is_told_with_all_other_faults():
    found = settings_file.load("policies: {TFA001: nope, TFA999: deny}", rules=RULES)
    assert isinstance(found, list)
    assert [
        (item.path, "no such rule: use TFA001, TFA002, TFA008" in item.message) for item in found
    ] == [
        ("policies.TFA001", False),
        ("policies.TFA999", True),
    ]


def test_fewer_reviews_in_flight_than_threads_are_refused():
    found = settings_file.load("server: {threads: 64, maxInFlight: 63}", rules=RULES)
    assert isinstance(found, list)
    assert [item.path for item in found] == ["server.maxInFlight"]
    assert "fewer than the 64 threads" in found[0].message


def test_all_faults_of_exemptions_come_at_once_each_with_its_path():
    found = faults(
        """
        exemptions:
          - {rule: TFA001, name: a}
          - {rule: TFA999, name: "", reason: " "}
          - {rule: TFA001, name: a, reason: x, kind: Pod, namespace: ""}
          - {rule: TFA001, name: a, reason: x, kind: ClusterTrainingRuntime, namespace: b}
          - {rule: TFA001, name: a, reasons: x, reason: null}
          - 3
        """
    )
    assert [line.replace(": use TFA001, TFA002, TFA008", "") for line in found] == [
        "exemptions[0].reason: is missing",
        "exemptions[1].name: is empty: write the name of the objects, * for all",
        "exemptions[1].reason: is empty: say why, for those who find the exemption later",
        "exemptions[1].rule: there is no rule 'TFA999'",
        (
            'exemptions[2].kind: is "Pod": use '
            "'ClusterTrainingRuntime', 'TrainingRuntime' or 'TrainJob'"
        ),
        "exemptions[2].namespace: is empty: leave it out to mean all",
        (
            "exemptions[3].namespace: a ClusterTrainingRuntime has none, so that nothing is meant: "
            "leave it out"
        ),
        "exemptions[4].reason: is missing",
        "exemptions[4].reasons: there is no such setting: did you mean reason?",
        "exemptions[5]: must be a mapping of names to values, not 3",
    ]


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        ("{leafLifetime: 7d}", "leafLifetime: is '7d', which is no duration such as 8760h, 1h30m"),
        ("{leafLifetime: ''}", "leafLifetime: is '', which is no duration such as 8760h"),
        ("{leafLifetime: 1m}", "leafLifetime: is 1m, must be from 10m to 9528h"),
        ("{settle: 2h}", "settle: is 2h, must be from 1s to 1h: API servers hear of a new"),
        ("{clockSkew: 9999999999999999999h}", "clockSkew: is 9999999999999999999h, must be from"),
        ("{leafLifetime: 10h}", "leafRenewBefore: is over nine tenths of leafLifetime"),
        ("{caRenewBefore: 8000h}", "caRenewBefore: is over nine tenths of caLifetime"),
        ("{caRenewBefore: 100h}", "caRenewBefore: is shorter than leafLifetime and settle"),
        ("{leaf: 1h}", "leaf: there is no such setting"),
    ],
)
def test_lifetimes_that_would_not_work_are_faults(section, fault):
    (found,) = faults(f"certificates: {section}")
    assert found.startswith(f"certificates.{fault}")


def test_lifetimes_can_be_stated_in_part():
    found = loaded("certificates: {leafLifetime: 24h, leafRenewBefore: 8h, settle: null}")
    assert found.certificates.leaf_lifetime == "24h"
    assert found.certificates.settle == "60s"


def test_overrides_select_namespaces_as_kubernetes_does():
    settings = loaded(
        """
        overrides:
          - namespaceSelector:
              matchLabels: {tier: sandbox}
              matchExpressions:
                - {key: example.com/team, operator: In, values: [a, b]}
                - {key: frozen, operator: DoesNotExist}
            policies: {TFA001: warn, TFA002: off}
          - {namespaceSelector: {}, policies: {TFA008: deny}}
        """
    )
    first, second = settings.overrides
    assert dict(first.policies) == {"TFA001": "warn", "TFA002": "off"}
    good = {"tier": "sandbox", "example.com/team": "b"}
    assert first.namespace_selector.matches(good)
    assert not first.namespace_selector.matches({**good, "frozen": ""})
    assert not first.namespace_selector.matches({**good, "tier": "prod"})
    assert not first.namespace_selector.matches({"tier": "sandbox"})
    assert second.namespace_selector.matches({})


def test_all_faults_of_overrides_come_at_once_each_with_its_path():
    found = faults(
        """
        overrides:
          - {namespaceSelector: {matchLabels: {"a b": x, c: "-"}}, policies: {}}
          - policies: {TFA999: warn}
          - namespaceSelector:
              matchExpressions:
                - {key: a, operator: In}
                - {key: a, operator: Exists, values: [b]}
                - {key: "", operator: NotIn, values: ["a b"]}
                - {key: a, operator: Equals, values: [b]}
            policies: {TFA001: loud}
          - {selector: {}, namespaceSelector: null, policies: {TFA001: warn}}
        """
    )
    selector = "overrides[0].namespaceSelector.matchLabels"
    expressions = "overrides[2].namespaceSelector.matchExpressions"
    assert found == [
        f"{selector}.c: is '-', which no label can be",
        f"{selector}[a b]: is no name of a label",
        "overrides[0].policies: is empty: write the level of a rule, e.g. `TFA001: warn`",
        "overrides[1].namespaceSelector: is missing",
        "overrides[1].policies.TFA999: no such rule: use TFA001, TFA002, TFA008",
        f"{expressions}[0].values: is missing: In compares with one or more",
        f"{expressions}[1].values: must be left out: Exists looks at the key only",
        f"{expressions}[2].key: is '', which is no name of a label",
        f"{expressions}[2].values[0]: is 'a b', which no label can be",
        (
            f'{expressions}[3].operator: is "Equals": use '
            "'In', 'NotIn', 'Exists' or 'DoesNotExist'"
        ),
        """overrides[2].policies.TFA001: is "loud": use 'deny', 'warn' or 'off'""",
        "overrides[3].namespaceSelector: is missing",
        "overrides[3].selector: there is no such setting: did you mean namespaceSelector?",
    ]


def test_aliases_that_multiply_are_refused_at_once():
    nine = [", ".join([f"*a{number}"] * 9) for number in range(40)]
    lines = [f"a{number}: &a{number} [{nine[number - 1]}]" for number in range(1, 40)]
    (found,) = faults("\n".join(["a0: &a0 [x]", *lines]))
    assert "aliases stand for more than 100,000 values" in found
