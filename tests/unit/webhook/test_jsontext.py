import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfadmit_webhook import jsontext

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(min_value=-(2**63), max_value=2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
    max_leaves=20,
)


@given(_JSON)
def test_every_text_is_read_as_the_standard_library_reads_it(value):
    assert jsontext.load(json.dumps(value).encode()) == value


@given(_JSON)
def test_what_is_written_is_read_back_by_the_standard_library(value):
    assert json.loads(jsontext.dump(value)) == value


def test_half_a_surrogate_pair_survives_as_the_escape_that_it_was():
    assert jsontext.load(b'{"a":"\\ud800"}') == {"a": "\ud800"}
    assert jsontext.dump({"a": "\ud800", "b": [1]}) == b'{"a":"\\ud800","b":[1]}'


def test_not_a_number_is_read():
    assert math.isnan(jsontext.load(b'{"a":NaN}')["a"])


def test_the_last_of_two_keys_counts():
    assert jsontext.load(b'{"a":1,"a":2}') == {"a": 2}


def test_integers_of_64_bits_are_exact_and_larger_ones_are_floats():
    text = b"[9223372036854775807,18446744073709551615,123456789012345678901234567890]"
    assert jsontext.load(text) == [2**63 - 1, 2**64 - 1, 123456789012345678901234567890.0]


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[" * 2000, b'{"a":1}x'])
def test_what_is_no_json_is_a_value_or_recursion_error(text):
    with pytest.raises((ValueError, RecursionError)):
        jsontext.load(text)


def test_what_json_does_not_know_is_written_as_its_text():
    assert jsontext.dump({"a": ValueError("why"), "b": 2**70}) == (
        b'{"a":"why","b":1180591620717411303424}'
    )
