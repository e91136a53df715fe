"""From any state, through any crash: the certificates come right, and no call fails on the way."""

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from tfadmit_certs import bundle, kube, plan
from unit.certs import builders, world

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
NOW = builders.NOW

# Made once: generated states choose among them.
CAS = [
    builders.make_ca(now=NOW - 10 * DAY, lifetime=375 * DAY),
    builders.make_ca(now=NOW - 300 * DAY, lifetime=365 * DAY),  # due
    builders.make_ca(now=NOW - 400 * DAY, lifetime=365 * DAY),  # expired
    builders.make_ca(now=NOW + 5 * HOUR, lifetime=365 * DAY),  # from the future
    builders.make_ca(now=NOW - 20 * DAY, lifetime=365 * DAY),
]
GARBAGE = [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
NOT_A_CA = builders.make_leaf(CAS[0])


def leaf_of(ca, *, now, lifetime):
    start = builders.parsed(ca).not_valid_before_utc
    moment = max(now, start + timedelta(minutes=10))
    end = builders.parsed(ca).not_valid_after_utc
    return builders.make_leaf(
        ca, names=world.WISH.names, now=min(moment, end - HOUR), lifetime=lifetime
    )


LEAVES = [
    leaf_of(ca, now=now, lifetime=lifetime)
    for ca in CAS
    for now, lifetime in (
        (NOW - DAY, 7 * DAY),
        (NOW - 6 * DAY, 7 * DAY),  # due
        (NOW - 9 * DAY, 7 * DAY),  # expired
    )
]
cas = st.sampled_from(CAS)
pems = st.one_of(
    cas.map(lambda ca: ca.certificate), st.sampled_from([*GARBAGE, NOT_A_CA.certificate])
)
keys = st.one_of(cas.map(lambda ca: ca.key), st.sampled_from(GARBAGE))
bundles = st.none() | st.lists(pems, max_size=3).map(b"".join)
moments = st.integers(-40, 400).map(lambda days: world.moment(NOW + days * DAY))


@st.composite
def signers(draw, crt, key):
    """A pair that fits, most of the time."""
    ca = draw(cas)
    return draw(
        st.sampled_from(
            [
                {crt: ca.certificate, key: ca.key},
                {crt: ca.certificate, key: ca.key},
                {crt: ca.certificate, key: ca.key},
                {crt: ca.certificate},
                {crt: draw(pems), key: draw(keys)},
                {},
            ]
        )
    )


def sometimes(strategy, *, of=2):
    """Drawn in all but one of so many cases; None otherwise."""
    return st.integers(1, of).flatmap(lambda n: strategy if n < of or of == 1 else st.none())


@st.composite
def authorities(draw):
    data = draw(signers("ca.crt", "ca.key")) | (
        draw(sometimes(signers("next.crt", "next.key"))) or {}
    )
    retired = draw(sometimes(st.lists(pems, max_size=2)))
    until = draw(sometimes(moments | st.just("nonsense")))
    asked = draw(sometimes(st.sampled_from(["ca", "leaf", ""])))
    return (
        data | ({} if retired is None else {"retired.crt": b"".join(retired)}),
        {"tfadmit.dev/retired-until": until, "tfadmit.dev/rotate": asked},
    )


@st.composite
def leaves(draw):
    leaf = draw(st.sampled_from(LEAVES))
    key = draw(st.none() | st.none() | keys)
    copy = draw(sometimes(st.lists(pems, max_size=3)))
    return (
        {
            "tls.crt": leaf.certificate,
            "tls.key": leaf.key if key is None else key,
            **({} if copy is None else {"ca.crt": b"".join(copy)}),
        },
        {
            "tfadmit.dev/alive-until": draw(sometimes(moments)),
            "tfadmit.dev/rotate": draw(sometimes(st.just("leaf"))),
        },
    )


@st.composite
def worlds(draw):
    made = world.World()
    for which, strategy in (("ca", authorities()), ("leaf", leaves())):
        if found := draw(sometimes(strategy, of=5)):
            data, annotations = found
            stated = {name: value for name, value in annotations.items() if value is not None}
            made.put(which, data, stated)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        found = draw(sometimes(st.lists(bundles, min_size=1, max_size=2), of=4))
        if found is not None:
            made.configure(kind, *found)
    made.begin()
    return made


def assert_right(made):
    authority, leaf = made.authority, made.leaf
    certificate = leaf.certificate
    assert bundle.is_issuer(authority.current.certificate, certificate)
    assert authority.current.certificate.not_valid_before_utc <= made.now
    assert certificate.not_valid_before_utc <= made.now < certificate.not_valid_after_utc
    assert authority.next is None
    for pem in made.bundles().values():
        assert pem == authority.pem
    assert leaf.copy == authority.pem
    assert isinstance(made.decide(), plan.Wait)


@given(made=worlds())
@settings(max_examples=60)
def test_any_state_comes_right_and_no_call_fails_on_the_way(made):
    made.settle()
    assert not made.violations
    assert_right(made)


@given(made=worlds(), data=st.data())
@settings(max_examples=60)
def test_it_does_so_through_any_crashes(made, data):
    """A crash loses what the process remembers: after any number of writes, several times."""
    for _ in range(data.draw(st.integers(1, 3))):
        process = made.controller()
        for _ in range(data.draw(st.integers(0, 8))):
            made.pass_time(process.round() or 0.01)
    made.settle()
    assert not made.violations
    assert_right(made)


@given(made=worlds())
@settings(max_examples=25)
def test_nothing_is_written_once_all_is_right(made):
    process = made.settle()
    before = len(made.writes)
    for _ in range(5):
        assert process.round() > 0
    assert made.controller().round() > 0
    assert len(made.writes) == before


@given(made=worlds(), which=st.sets(st.sampled_from(["ca", "leaf"]), min_size=1), data=st.data())
@settings(max_examples=50)
def test_secrets_that_are_deleted_at_any_time_come_back(made, which, data):
    process = made.controller()
    for _ in range(data.draw(st.integers(0, 12))):
        made.pass_time(process.round() or 0.01)
    for name in which:
        made.secrets.pop(name, None)
    made.settle(process=process)
    assert not made.violations
    assert_right(made)


@given(days=st.lists(st.integers(1, 60), min_size=1, max_size=8))
@settings(max_examples=6)
def test_over_years_every_leaf_is_trusted_to_its_end(days):
    """Renewals, rotations and retirements by the calendar, however long the process slept."""
    made = world.World()
    made.configure("MutatingWebhookConfiguration", None, None)
    made.begin()
    made.settle()
    for gap in days * 3:
        made.pass_time(gap * DAY / timedelta(seconds=1))
        made.settle()
        assert not made.violations
        assert_right(made)


@given(made=worlds(), data=st.data())
@settings(max_examples=40)
def test_two_that_both_believe_they_lead_do_no_harm(made, data):
    """The Lease may fail: one acts on what it read before the other changed it."""
    one, other = made.controller(), made.controller()
    steps = st.integers(0, 3).flatmap(lambda many: st.just(many) if many < 3 else st.just(0))
    inside: list[bool] = []

    def meanwhile():
        if inside:
            return
        inside.append(True)
        for _ in range(data.draw(steps)):
            made.pass_time(rounded(other) or 0.01)
        inside.clear()

    def rounded(process):
        try:
            return process.round()
        except kube.ConflictError:
            return 0

    made.before_request = meanwhile
    for _ in range(8):
        made.pass_time(rounded(one) or 0.01)
    made.before_request = lambda: None
    made.settle(process=one)
    assert not made.violations
    assert_right(made)
