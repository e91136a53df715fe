"""Files, directories and standard input to objects, and every way in which that fails."""

import io
import json
import sys

import pytest

from tfadmit_client import fault
from tfadmit_client.files import manifest

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n"


@pytest.fixture(autouse=True)
def inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(*paths, namespace="default"):
    return manifest.read(paths, namespace=namespace)


def faults(*paths):
    with pytest.raises(fault.ClientError) as caught:
        read(*paths)
    return str(caught.value).splitlines()


def test_objects_know_their_file_and_line(inside):
    (inside / "x.yaml").write_text(f"# comment\n{POD}---\n{POD.replace('a}', 'b}')}")
    assert [item.source for item in read("x.yaml")] == ["x.yaml:2", "x.yaml:6"]


def test_a_directory_gives_its_yaml_and_json_files_in_order(inside):
    (inside / "d").mkdir()
    (inside / "d/b.yml").write_text(POD)
    (inside / "d/a.json").write_text(json.dumps({"apiVersion": "v1", "kind": "Pod"}))
    (inside / "d/notes.txt").write_text("not yaml: [")
    assert [item.source for item in read("d")] == ["d/a.json:1", "d/b.yml:1"]


def test_standard_input_is_read_for_a_dash(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(POD.encode())

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert [item.source for item in read("-")] == ["standard input:1"]


def test_the_object_s_namespace_wins_over_the_command_s(inside):
    (inside / "x.yaml").write_text(POD + "---\n" + POD.replace("name: a", "name: a, namespace: b"))
    assert [item.namespace for item in read("x.yaml", namespace="team")] == ["team", "b"]


def test_labels_name_the_object_and_cluster_wide_ones_without_namespace(inside):
    runtime = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: ClusterTrainingRuntime\n"
    (inside / "x.yaml").write_text(f"{POD}---\n{runtime}metadata: {{name: tf}}\n")
    assert [item.label for item in read("x.yaml")] == [
        "Pod default/a",
        "ClusterTrainingRuntime tf",
    ]


def test_json_may_be_indented_by_tabs_and_hold_a_list(inside):
    items = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}} for name in "ab"]
    content = {"apiVersion": "v1", "kind": "List", "items": items}
    (inside / "x.json").write_text(json.dumps(content, indent="\t"))
    assert [item.name for item in read("x.json")] == ["a", "b"]


def test_yaml_in_braces_is_read_as_yaml(inside):
    (inside / "x.yaml").write_text("{apiVersion: v1, kind: Pod}\n---\n" + POD)
    assert len(read("x.yaml")) == 2


def test_a_byte_order_mark_is_no_fault(inside):
    (inside / "x.yaml").write_bytes(b"\xef\xbb\xbf" + POD.encode())
    assert len(read("x.yaml")) == 1


def test_the_same_object_given_twice_counts_once(inside):
    (inside / "x.yaml").write_text(POD)
    (inside / "y.yaml").write_text(POD)
    assert len(read("x.yaml", "x.yaml", "y.yaml")) == 1


def test_two_versions_of_one_object_are_refused_with_both_places(inside):
    (inside / "x.yaml").write_text(POD)
    (inside / "y.yaml").write_text(POD + "spec: {}\n")
    assert faults("x.yaml", "y.yaml") == [
        (
            "y.yaml:1: Pod default/a is also in x.yaml:1, with other content: "
            "name only one of the two with -f"
        )
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a\n", "x.yaml:1: a list, not a Kubernetes object"),
        ("hello\n", "x.yaml:1: a str, not a Kubernetes object"),
        ("a: 1\n", "x.yaml:1: not a Kubernetes object, it has no apiVersion and no kind"),
        ("apiVersion: v1\n", "x.yaml:1: not a Kubernetes object, it has no kind"),
        ("kind: Pod\nkind: Job\n", "x.yaml:2: key 'kind' is there twice, first in line 1"),
        ("# nothing\n", "no Kubernetes object in x.yaml"),
    ],
)
def test_what_is_no_object_is_named_with_its_place(inside, text, words):
    (inside / "x.yaml").write_text(text)
    (line,) = faults("x.yaml")
    assert line.startswith(words)


def test_all_faults_of_all_files_come_at_once(inside):
    (inside / "x.yaml").write_text("a: [\n")
    (inside / "y.yaml").write_bytes(b"a: \xff\n")
    (inside / "d").mkdir()
    found = faults("x.yaml", "y.yaml", "missing.yaml", "d")
    assert found == [
        (
            "x.yaml:2: while parsing a flow node, expected the node content, "
            "but found '<stream end>'"
        ),
        "y.yaml: is not UTF-8 text (byte 3)",
        "missing.yaml: cannot be read: No such file or directory",
        "d: no file in this directory ends in .yaml, .yml, .json",
    ]


def test_broken_json_is_reported_by_json_s_own_rules(inside):
    (inside / "x.json").write_text('{\n "kind": "Pod",\n}')
    (line,) = faults("x.json")
    assert line.startswith("x.json:")
    assert "no valid JSON" in line


def test_a_double_key_in_json_has_its_line(inside):
    (inside / "x.json").write_text('{"kind": "Pod",\n "kind": "Job"}')
    assert faults("x.json") == ["x.json:2: key 'kind' is there twice, first in line 1"]


def test_a_helm_template_gets_a_hint(inside):
    (inside / "x.yaml").write_text("metadata:\n  name: {{ .Values.name }}\n")
    assert "helm template" in faults("x.yaml")[-1]
