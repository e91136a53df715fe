"""Golden admissions: a folder per case, what the API server sends and what it gets back.

`review.json` is an AdmissionReview, `objects.json` what a look-up finds, `expected.json` the answer
(its patch decoded) and the object after it. `--update-golden` writes `expected.json` anew.
"""

import base64
import copy
import json
import pathlib

import jsonpatch
import pytest

import admission
from tfadmit_webhook import handler, review

CASES = sorted(
    path.parent for path in pathlib.Path(__file__).parent.glob("admission/*/review.json")
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_answer_is_the_golden_one(case, update_golden):
    content = json.loads((case / "review.json").read_text())
    objects = json.loads((case / "objects.json").read_text())
    actual = answer(content["path"], content["review"], objects)
    golden = case / "expected.json"
    if update_golden:
        golden.write_text(json.dumps(actual, indent=2) + "\n")
    assert actual == json.loads(golden.read_text())


def answer(path, content, objects):
    request = review.parse(json.dumps(content).encode())
    decision = handler.HANDLERS[path](request, admission.context(*objects))
    response = review.render(decision, uid=request.uid)["response"]
    after = copy.deepcopy(content["request"]["object"])
    if "patch" in response:
        response["patch"] = json.loads(base64.b64decode(response["patch"]))
        after = jsonpatch.apply_patch(after, response["patch"])
    return {"response": response, "object": after}


def test_there_are_golden_admissions():
    assert len(CASES) >= 8
