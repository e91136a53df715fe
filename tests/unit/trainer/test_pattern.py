import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfadmit_trainer import pattern


def test_a_range_stands_for_both_of_its_ends():
    assert list(pattern.expand(["h-{0..2}.s:1"])) == ["h-0.s:1", "h-1.s:1", "h-2.s:1"]


def test_two_ranges_expand_like_nested_loops():
    assert list(pattern.expand(["h-{0..1}-{0..1}.s:1"])) == [
        "h-0-0.s:1",
        "h-0-1.s:1",
        "h-1-0.s:1",
        "h-1-1.s:1",
    ]


def test_a_single_task_is_written_without_a_range():
    assert pattern.numbers(1) == "0"
    assert pattern.numbers(4096) == "{0..4095}"


def test_ten_thousand_addresses_take_one_short_string():
    patterns = ["job-node-0-{0..9999}.job.team.svc.cluster.local:12345"]
    assert pattern.size(patterns) == 10_000
    assert pattern.at(patterns, 9_999) == "job-node-0-9999.job.team.svc.cluster.local:12345"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("h-{0..2}", "port"),
        ("h:0", "port"),
        ("h:65536", "port"),
        ("h:http", "port"),
        ("h:١٢", "port"),
        ("h-{0..}:1", "ranges"),
        ("h-{a..b}:1", "ranges"),
        ("h-{00..10}:1", "ranges"),
        ("h-{-1..3}:1", "ranges"),
        ("h_1:1", "ranges"),
        (":1", "ranges"),
        ("h-{3..2}:1", "backwards"),
        ("h-{0..100000}:1", "100,000"),
        ("h-{0..999}-{0..999}:1", "100,000"),
        # thousands of digits, for which int() has a limit of its own
        (f"h:{'9' * 5000}", "5,002 characters"),
        # more would take whole seconds to count, and stay in memory
        (f"h{'{0..0}' * 86}:1", "519 characters"),
    ],
)
def test_what_is_no_pattern_is_refused_with_the_reason(text, why):
    with pytest.raises(pattern.PatternError, match=why):
        pattern.parse(text)


def test_there_is_no_task_beyond_the_last():
    with pytest.raises(IndexError, match="no task 3 among 3"):
        pattern.at(["h-{0..2}:1"], 3)
    with pytest.raises(IndexError):
        pattern.at(["h-{0..2}:1"], -1)


ranges = st.tuples(st.integers(0, 120), st.integers(0, 15)).map(
    lambda pair: f"{{{pair[0]}..{pair[0] + pair[1]}}}"
)
patterns = st.lists(
    st.lists(ranges, max_size=2).map(lambda words: f"h{''.join('-' + w for w in words)}.s:2222"),
    max_size=3,
)


@given(patterns)
def test_size_length_and_single_addresses_agree_with_the_expansion(given_patterns):
    addresses = list(pattern.expand(given_patterns))
    assert pattern.size(given_patterns) == len(addresses)
    assert pattern.length(given_patterns) == sum(map(len, addresses))
    assert [pattern.at(given_patterns, i) for i in range(len(addresses))] == addresses


_PIECE = st.sampled_from(["h", "h-", "-x-", ".s", "a.b-", "7", "-7"])
_NUMBERS = st.tuples(st.integers(0, 12), st.integers(0, 5)).map(
    lambda n: f"{{{n[0]}..{n[0] + n[1]}}}"
)
_PATTERN = st.lists(st.one_of(_PIECE, _NUMBERS), max_size=5).map(
    lambda pieces: f"h{''.join(pieces)}0:1"
)


@given(st.lists(_PATTERN, min_size=1, max_size=3), st.data())
def test_a_host_is_found_where_a_search_through_all_addresses_finds_it(patterns, data):
    names = [item.partition(":")[0].partition(".")[0] for item in pattern.expand(patterns)]
    host = data.draw(st.sampled_from(names) | st.from_regex(r"h[-0-9hx]{0,6}", fullmatch=True))
    assert pattern.find(patterns, host) == (names.index(host) if host in names else None)


def test_a_host_among_ten_thousand_is_found_without_expanding_them(monkeypatch):
    patterns = ["job-node-0-{0..9999}.job.team.svc.cluster.local:12345"]
    monkeypatch.setattr(pattern, "expand", None)
    assert pattern.find(patterns, "job-node-0-9999") == 9_999
    assert pattern.find(patterns, "job-node-0-10000") is None
    assert pattern.find(patterns, "job-node-0-007") is None
