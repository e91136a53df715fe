"""The patch applier beside the independent one of `jsonpatch`."""

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfadmit_client.expand import apply
from tfadmit_webhook.decision import Operation


def add(path: str, value: Any) -> Operation:
    return {"op": "add", "path": path, "value": value}


DOCUMENT = {"a": {"b/c": [1, {"x": 1}, 3], "~t": {}}, "l": []}


@pytest.mark.parametrize(
    "patch",
    [
        [{"op": "add", "path": "/a/~0t/k", "value": "v"}],
        [{"op": "replace", "path": "/a/b~1c/0", "value": 9}],
        [{"op": "add", "path": "/a/b~1c/0", "value": 0}, {"op": "add", "path": "/l/-", "value": 1}],
        [
            {"op": "add", "path": "/n", "value": {"m": {}}},
            {"op": "add", "path": "/n/m/o", "value": 1},
        ],
        [{"op": "add", "path": "/a/b~1c/1/x", "value": 2}],
        [{"op": "remove", "path": "/a/b~1c/2"}, {"op": "remove", "path": "/a/b~1c/0"}],
        [{"op": "remove", "path": "/a/b~1c/1/x"}, {"op": "remove", "path": "/a/~0t"}],
        [],
    ],
)
def test_it_gives_what_jsonpatch_gives_and_changes_nothing(patch):
    before = copy.deepcopy((DOCUMENT, patch))
    assert apply.apply(DOCUMENT, patch) == jsonpatch.apply_patch(DOCUMENT, patch)
    assert (DOCUMENT, patch) == before


@given(st.lists(st.integers(0, 3), max_size=6))
def test_insertions_into_one_list_agree_with_jsonpatch(places):
    patch = [add(f"/a/b~1c/{place}", {"n": number}) for number, place in enumerate(places)]
    assert apply.apply(DOCUMENT, patch) == jsonpatch.apply_patch(DOCUMENT, patch)


def test_what_no_operation_touches_is_shared():
    result = apply.apply(DOCUMENT, [add("/l/0", 1)])
    assert result["a"] is DOCUMENT["a"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("a", "does not name a place"),
        ("/nope/x", "there is no 'nope'"),
        ("/a/b~1c/7/x", "there is no '7'"),
        ("/a/b~1c/0/x", "'0' holds neither a map nor a list"),
        ("/l/5", "a list of 0 items, without a place '5'"),
        ("/l/labels", "a list of 0 items, without a place 'labels'"),
    ],
)
def test_an_operation_that_leads_nowhere_is_a_fault(path, words):
    with pytest.raises(apply.MismatchError, match=words):
        apply.apply(DOCUMENT, [add(path, 1)])


@pytest.mark.parametrize("path", ["/nope", "/l/0", "/a/b~1c/3"])
def test_what_is_not_there_cannot_be_removed(path):
    with pytest.raises(apply.MismatchError, match="there is no"):
        apply.apply(DOCUMENT, [{"op": "remove", "path": path}])
