"""Names are checked and normalised at the door."""

import ipaddress

import pytest

from tfadmit_certs import san

LONG_LABEL = "a" * 63
LONGEST = ".".join([LONG_LABEL, LONG_LABEL, LONG_LABEL, "b" * 61])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param("localhost", "localhost", id="single label"),
        pytest.param("Hook.Team.SVC", "hook.team.svc", id="lower case"),
        pytest.param("hook.team.svc.", "hook.team.svc", id="final dot"),
        pytest.param("*.team.svc", "*.team.svc", id="wildcard"),
        pytest.param("3com.example", "3com.example", id="leading digit"),
        pytest.param("a--b.example", "a--b.example", id="inner hyphens"),
        pytest.param(f"{LONG_LABEL}.svc", f"{LONG_LABEL}.svc", id="63 characters in a label"),
        pytest.param(LONGEST, LONGEST, id="253 characters"),
        pytest.param("bücher.example", "xn--bcher-kva.example", id="IDN"),
        pytest.param("cafe\u0301.example", "xn--caf-dma.example", id="decomposed IDN"),
        pytest.param("*.BÜCHER.example", "*.xn--bcher-kva.example", id="IDN with a wildcard"),
        pytest.param("xn--bcher-kva.example", "xn--bcher-kva.example", id="A-label"),
    ],
)
def test_a_good_dns_name_is_normalised(given, expected):
    assert san.check(dns=[given]).dns == (expected,)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        pytest.param("", "empty", id="empty"),
        pytest.param(".", "empty", id="only a dot"),
        pytest.param("a..b", "empty", id="empty label"),
        pytest.param("a.b..", "empty", id="two final dots"),
        pytest.param("my_host.svc", "'my_host' may hold only", id="underscore"),
        pytest.param("-a.svc", "'-a'", id="leading hyphen"),
        pytest.param("a-.svc", "'a-'", id="trailing hyphen"),
        pytest.param("a b", "'a b'", id="space"),
        pytest.param("host\n", r"'host\n'", id="newline"),
        pytest.param("host\0.svc", r"'host\x00'", id="NUL"),
        pytest.param("https://hook.svc", "'https://hook'", id="URL"),
        pytest.param("hook.svc:443", "'svc:443'", id="port"),
        pytest.param("a,b", "'a,b'", id="comma list"),
        pytest.param("a" * 64, "64 characters, 63 fit", id="64 characters in a label"),
        pytest.param(LONGEST + "c", "254 characters are too many", id="254 characters"),
        pytest.param("*", "wildcard must be the first label", id="bare wildcard"),
        pytest.param("*.", "wildcard must be the first label", id="wildcard and a dot"),
        pytest.param("*.svc", "two labels", id="wildcard below a top-level name"),
        pytest.param("a.*.svc", "wildcard must be the first label", id="inner wildcard"),
        pytest.param("*.*.a.svc", "wildcard must be the first label", id="two wildcards"),
        pytest.param("a*.team.svc", "'a*'", id="partial wildcard"),
        pytest.param("10.0.0.1", "--ip", id="IPv4 address"),
        pytest.param("::1", "--ip", id="IPv6 address"),
        pytest.param("10.0.0.256", "broken IP address", id="broken IPv4 address"),
        pytest.param("faß.example", "A-labels", id="IDNA versions differ"),
        pytest.param("a\u3002b", "A-labels", id="foreign dot"),
        pytest.param("\u00fc" * 80, "A-labels", id="IDN too long"),
    ],
)
def test_a_bad_dns_name_is_refused_with_its_reason(given, reason):
    with pytest.raises(san.NamesError) as caught:
        san.check(dns=[given])
    (problem,) = caught.value.problems
    assert problem.startswith(f"DNS name {given!r}: ")
    assert reason in problem


@pytest.mark.parametrize(
    ("given", "expected"),
    [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("2001:DB8:0:0::A", "2001:db8::a")],
)
def test_a_good_address_is_parsed(given, expected):
    assert san.check(ips=[given]).ips == (ipaddress.ip_address(expected),)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("", "neither"),
        ("10.0.0", "neither"),
        ("10.0.0.256", "neither"),
        ("010.0.0.1", "neither"),
        ("localhost", "neither"),
        ("10.0.0.0/8", "not the network"),
        ("[::1]", "brackets"),
        ("fe80::1%eth0", "zone '%eth0'"),
    ],
)
def test_a_bad_address_is_refused_with_its_reason(given, reason):
    with pytest.raises(san.NamesError) as caught:
        san.check(ips=[given])
    (problem,) = caught.value.problems
    assert problem.startswith(f"IP address {given!r}: ")
    assert reason in problem


def test_all_bad_names_are_reported_at_once():
    with pytest.raises(san.NamesError) as caught:
        san.check(dns=["good.svc", "a_b", "c..d"], ips=["::1", "nonsense"])
    assert len(caught.value.problems) == 3
    assert str(caught.value).splitlines()[0] == "3 names cannot stand in a certificate:"


def test_no_name_at_all_is_refused():
    with pytest.raises(san.NamesError, match="needs a name"):
        san.check()


def test_duplicates_collapse_and_the_order_stays():
    names = san.check(dns=["b.svc", "a.svc", "B.svc."], ips=["::1", "0:0::1"])
    assert str(names) == "b.svc, a.svc, ::1"
    assert len(names) == 3
