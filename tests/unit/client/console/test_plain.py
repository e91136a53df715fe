"""No text of others reaches the terminal as a command to it."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfadmit_client import cli, fault
from tfadmit_client.console import plain, terminal
from tfadmit_client.jobs import output, read

OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
ATTACK = "loss\x1b[2J\x1b]0;title\x07\r\x9b31mred \u202ereversed"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("50 %\r100 %", r"50 %\x0d100 %"),
        ("\x9b2J", r"\x9b2J"),
        ("a\u202eb", r"a\u202eb"),
        ("Zürich: 训练 👩‍🔬", "Zürich: 训练 👩‍🔬"),
        ("one\n\ttwo", "one\n\ttwo"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(said, shown):
    assert plain.text(said) == shown


def test_a_cell_of_a_table_is_one_line():
    assert plain.cell("one\ntwo\x1b[A") == r"one two\x1b[A"


@given(st.text())
def test_nothing_that_is_obeyed_is_left(said):
    assert not OBEYED.search(plain.text(said))
    assert not OBEYED.search(plain.cell(said))


@given(st.dictionaries(st.text(), st.text()))
def test_json_says_the_same(data):
    document = output.dumped(data, form="json")
    assert not OBEYED.search(document)
    assert json.loads(document) == data


def test_what_is_told_beside_the_output_is_written_out(capsys):
    terminal.say(ATTACK)
    terminal.tell(ATTACK)
    assert not OBEYED.search(capsys.readouterr().err)


def test_an_answer_of_the_cluster_is_written_out_when_it_ends_a_command(capsys, monkeypatch):
    def refused(*_, **__):
        raise fault.ClientError(ATTACK)

    monkeypatch.setattr(read, "everything", refused)
    monkeypatch.setattr("tfadmit_client.jobs.option.connected", lambda *_: (None, "team"))
    assert cli.main(["ps"]) == 2
    captured = capsys.readouterr()
    assert r"loss\x1b[2J\x1b]0;title" in captured.err
    assert not OBEYED.search(captured.err)


@pytest.mark.parametrize("command", ["lint", "preview", "migrate"])
def test_names_in_files_are_written_out(command, capsys, tmp_path):
    """YAML may escape what no editor would show."""
    file = tmp_path / "odd.yaml"
    file.write_text(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainingRuntime\n"
        'metadata: {name: "l\\e[2J\\x9b", labels: {trainer.kubeflow.org/framework: tensorflow}}\n'
        "spec: {template: {spec: {replicatedJobs: []}}}\n"
        "---\napiVersion: kubeflow.org/v1\nkind: TFJob\n"
        'metadata: {name: mnist, annotations: {"a\\e[2J": b}}\n'
        "spec: {tfReplicaSpecs: {Worker: {template: {spec: {containers: "
        '[{name: tensorflow, image: a, x: "\\e[2J"}]}}}}}\n'
    )
    cli.main([command, *(["-f"] if command != "lint" else []), str(file)])
    captured = capsys.readouterr()
    assert captured.out + captured.err
    assert not OBEYED.search(captured.out + captured.err)
