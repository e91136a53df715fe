"""Whatever stands at a wrong place in a file: a report or a sentence, never a traceback."""

import copy
import json
from pathlib import Path

import pytest

from tfadmit_client import fault
from tfadmit_client.files import manifest, yamltext
from tfadmit_client.preview import previewing, report, table
from tfadmit_webhook.settings import Settings

GOLDEN = Path(__file__).parents[3] / "golden" / "preview"
CASES = sorted(path.name for path in GOLDEN.iterdir() if path.name != "ten-thousand")
# One of each type, as a slip of the indentation or a forgotten quote gives them.
SLIPS: tuple[object, ...] = (None, [], {}, "text", 3, True, [None], {"a": None})


def places(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))


def replaced(value, path, slip):
    if not path:
        return slip
    changed = copy.deepcopy(value)
    parent = changed
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = slip
    return changed


def show(objects: list[object]) -> report.Report | None:
    found = [
        manifest.Manifest(content=item, file="x.yaml", line=at)
        for at, item in enumerate(objects)
        if isinstance(item, dict)
    ]
    try:
        return previewing.preview(found, settings=Settings())
    except fault.ClientError:
        return None


@pytest.mark.parametrize("case", CASES)
def test_a_slip_at_any_place_gives_a_report_or_a_sentence(case):
    text = (GOLDEN / case / "input.yaml").read_text()
    objects = [document.content for document in yamltext.documents(text)]
    shown = 0
    for path in places(objects):
        for slip in SLIPS:
            if len(path) > 1 and (result := show(replaced(objects, path, slip))):
                assert table.render(result)
                assert json.dumps([pod.content for part in result.sections for pod in part.pods])
                shown += 1
    assert shown > 100
