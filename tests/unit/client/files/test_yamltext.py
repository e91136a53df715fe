"""YAML as kubectl reads it; the expectations are those of go.yaml.in/yaml/v2."""

import pytest

from tfadmit_client.files import yamltext


def read(text):
    return [document.content for document in yamltext.documents(text)]


def lines(text):
    return [document.line for document in yamltext.documents(text)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("On", True),
        ("y", True),
        ("n", False),
        ("off", False),
        ("FALSE", False),
        ("Yep", "Yep"),
        ("~", None),
        ("Null", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("1_000", 1000),
        ("0777", 511),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b101", 5),
        ("08", 8),
        ("1e3", 1000),
        ("0.5", 0.5),
        (".5", 0.5),
        ("2026-11-30", "2026-11-30"),
        ("12:30:45", "12:30:45"),
        ('"12"', "12"),
        ("'yes'", "yes"),
        ("!!str 12", "12"),
        ("1.15.0", "1.15.0"),
        ("=", "="),
    ],
)
def test_a_plain_value_is_read_as_kubectl_reads_it(text, value):
    (content,) = read(f"key: {text}")
    assert content == {"key": value}
    assert type(content["key"]) is type(value)


def test_keys_are_text():
    assert read("1: a\nyes: b\n") == [{"1": "a", "true": "b"}]


def test_documents_are_numbered_by_line_and_empty_ones_are_left_out():
    text = "# only a comment\n---\nkind: A\n---\n---\n\nkind: B\n"
    assert read(text) == [{"kind": "A"}, {"kind": "B"}]
    assert lines(text) == [3, 7]


def test_the_items_of_a_list_have_lines_of_their_own():
    text = "kind: List\nitems:\n- kind: A\n- kind: PodList\n  items:\n  - kind: B\n"
    assert read(text) == [{"kind": "A"}, {"kind": "B"}]
    assert lines(text) == [3, 6]


def test_anchors_and_merge_keys_work():
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {y: 4, <<: [*a, {z: 5, x: 6}]}\n"
    (content,) = read(text.replace("y:", "why:"))
    assert content["b"] == {"x": 1, "why": 3}
    assert content["c"] == {"x": 1, "why": 4, "z": 5}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "key 'a' is there twice, first in line 1"),
        ("a:\n\tb: 1\n", 2, "indent with spaces, not with tabs"),
        ("a: [1, 2\nb: 3\n", 2, "expected ',' or ']'"),
        ("a: b: c\n", 1, "mapping values are not allowed here"),
        ("ok: 1\n---\nx: !secret y\n", 3, "unknown tag !secret"),
        ("? [a]\n: 1\n", 1, "a key must be a word"),
        ("~: 1\n", 1, "a key is empty"),
        ("a: &a [*a]\n", 1, "an alias that contains itself"),
        (
            "ok: 1\n---\na0: &a0 [x]\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 15)),
            3,
            "aliases that stand for more than 2,000,000 values",
        ),
        ("[" * 3000, 1, "nested too deep"),
        (f"a: 1\nb: {'9' * 5000}\n", 2, "a number of too many digits"),
        ("a: *missing\n", 1, "undefined alias"),
        ("x: 1\na: {<<: 3}\n", 2, "<< must name a map"),
        ("a: 1\nb: \x07\n", 2, "is not allowed"),
    ],
)
def test_a_fault_has_its_line_and_reason(text, line, words):
    with pytest.raises(yamltext.TextError) as caught:
        read(text)
    assert caught.value.line == line
    assert words in str(caught.value)


def test_many_fields_are_found_in_one_reading():
    text = "a: 1\nb:\n  - c: 2\n  - d: 3\n"
    locate = yamltext.locator(text, yamltext.Place())
    found = [locate(path).line for path in (("a",), ("b", 1, "d"), ("b", 1, "absent"))]
    assert found == [1, 4, 4]


@pytest.mark.parametrize("word", ["y", "Off", "08", "0x1F", "1e3", "~", "null", "", "<<"])
def test_words_that_kubectl_would_not_take_for_text_are_known(word):
    assert not yamltext.is_text(word)


@pytest.mark.parametrize("word", ["yep", "12:30:45", "1.2.3", "a", "v1", "2026-11-30"])
def test_other_words_are_text(word):
    assert yamltext.is_text(word)
    assert read(f"[{word}]") == [[word]]


def nested(levels):
    """Each level holds the one below nine times."""
    text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    for level in range(1, levels):
        text += f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n"
    return text


def test_aliases_that_multiply_without_end_are_refused():
    assert read(nested(4))
    with pytest.raises(yamltext.TextError, match="aliases that stand for more than") as caught:
        read(nested(30))
    assert caught.value.line == 1
