import copy

import jsonpatch
import pytest

from tfadmit_webhook import patch


def apply(document, operations):
    return jsonpatch.apply_patch(copy.deepcopy(document), operations)


def test_slashes_and_tildes_in_keys_are_escaped():
    assert patch.pointer(("metadata", "annotations", "a/b~c~1")) == (
        "/metadata/annotations/a~1b~0c~01"
    )


@pytest.mark.parametrize(
    "document",
    [{}, {"metadata": None}, {"metadata": {}}, {"metadata": {"annotations": None}}],
)
def test_absent_and_null_parents_are_created(document):
    operations = patch.set_entries(document, ("metadata", "annotations"), {"a/b": "1", "c": "2"})
    assert len(operations) == 1
    assert apply(document, operations) == {"metadata": {"annotations": {"a/b": "1", "c": "2"}}}


def test_an_existing_map_is_never_replaced():
    document = {"metadata": {"annotations": {"mine": "x", "ours": "old"}, "name": "n"}}
    operations = patch.set_entries(document, ("metadata", "annotations"), {"ours": "new"})
    assert operations == [{"op": "replace", "path": "/metadata/annotations/ours", "value": "new"}]


def test_what_is_already_there_needs_no_operation():
    assert patch.set_entries({"m": {"a": "1"}}, ("m",), {"a": "1"}) == []
    assert patch.set_entries({}, ("m",), {}) == []
    assert patch.prepend({}, ("l",), []) == []


@pytest.mark.parametrize("document", [{}, {"env": None}, {"env": []}, {"env": [3, 4]}])
def test_items_are_put_first_in_their_order(document):
    after = apply(document, patch.prepend(document, ("env",), [1, 2]))
    assert after == {"env": [1, 2, *(document.get("env") or [])]}


@pytest.mark.parametrize(
    "document", [{"metadata": []}, {"metadata": "x"}, {"metadata": {"annotations": [1]}}]
)
def test_nothing_is_added_to_a_value_of_another_type(document):
    assert patch.set_entries(document, ("metadata", "annotations"), {"a": "1"}) == []
    assert patch.prepend({"env": "x"}, ("env",), [1]) == []
