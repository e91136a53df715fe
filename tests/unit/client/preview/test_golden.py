"""Previews of whole files: input.yaml in, expected.txt (the table) and expected.json out.

expected.json is left out where it would have thousands of pods. `--update-golden` writes both anew.
"""

import json
from pathlib import Path

import pytest

from tfadmit_client import cli

GOLDEN = Path(__file__).parents[3] / "golden" / "preview"
CASES = sorted(GOLDEN.iterdir(), key=lambda path: path.name)
REFUSED = {"refused-pods", "refused-runtime"}
WITHOUT_JSON = {"ten-thousand"}


@pytest.fixture(params=CASES, ids=lambda path: path.name)
def case(request, monkeypatch):
    monkeypatch.chdir(request.param)
    return request.param


def run(capsys, *options):
    code = cli.main(["preview", "-f", "input.yaml", *options])
    return code, capsys.readouterr().out


def test_the_table_is_as_expected(case, capsys, update_golden):
    code, text = run(capsys)
    path = case / "expected.txt"
    if update_golden:
        path.write_text(text)
    assert text == path.read_text()
    assert code == (1 if case.name in REFUSED else 0)


def test_the_data_are_as_expected(case, capsys, update_golden):
    if case.name in WITHOUT_JSON:
        pytest.skip("thousands of pods")
    _, text = run(capsys, "-o", "json")
    path = case / "expected.json"
    if update_golden:
        path.write_text(text)
    assert json.loads(text) == json.loads(path.read_text())
