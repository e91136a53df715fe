"""What is done in the states that people meet, and in which order."""

import logging
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tfadmit_certs import bundle, kube, plan, state
from unit.certs import builders, world

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOW = builders.NOW
MUTATING, VALIDATING = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"


@pytest.fixture(name="made")
def make_world():
    made = world.World()
    made.configure(MUTATING, None, None)
    made.configure(VALIDATING, None)
    made.begin()
    return made


@pytest.fixture(name="steady")
def make_steady(made):
    made.settle()
    made.monitor.done.clear()
    made.writes.clear()
    return made


def done(made):
    return [name for name, _ in made.monitor.done]


def put_pair(made, which, pair, crt, key, **more):
    made.put(which, {crt: pair.certificate, key: pair.key, **more})


def put_ca(made, ca, **more):
    put_pair(made, "ca", ca, "ca.crt", "ca.key", **more)


def put_leaf(made, leaf, **more):
    put_pair(made, "leaf", leaf, "tls.crt", "tls.key", **more)


def leaf_of(ca, *, now=NOW, lifetime=7 * DAY):
    return builders.make_leaf(ca, names=world.WISH.names, now=now, lifetime=lifetime)


def put_installed(made, ca, leaf):
    put_ca(made, ca)
    put_leaf(made, leaf, **{"ca.crt": ca.certificate})
    made.configure(MUTATING, ca.certificate, ca.certificate)
    made.configure(VALIDATING, ca.certificate)
    made.begin()


def test_where_nothing_is_everything_is_made_at_once(made):
    made.settle()
    assert done(made) == ["replace-ca", *["publish", "publish", "disown", "disown"], "issue-leaf"]
    assert made.monitor.done[0] == ("replace-ca", "first")
    # Nothing was mended: nothing was there.
    assert made.now - NOW < timedelta(minutes=5)
    assert made.authority.retired == ()


def test_a_rotation_goes_by_its_phases(steady):
    old = steady.authority.current
    steady.secrets["ca"]["metadata"]["annotations"] = {"tfadmit.dev/rotate": "ca"}
    steady.settle()
    assert steady.monitor.done[0] == ("add-next", "asked")
    assert done(steady) == [
        "add-next",
        *["publish", "publish", "disown", "disown"],
        *["copy-bundle", "promote", "issue-leaf"],
    ]
    assert steady.authority.retired == old.certificates
    assert steady.secrets["ca"]["metadata"]["annotations"] == {
        "tfadmit.dev/retired-until": state.show_moment(builders.SECOND + 7 * DAY)
    }


def test_a_retired_ca_leaves_when_its_last_leaf_has_ended_by_any_clock(steady):
    steady.secrets["ca"]["metadata"]["annotations"] = {"tfadmit.dev/rotate": "ca"}
    steady.settle()
    steady.pass_time((7 * DAY - 10 * HOUR) / timedelta(seconds=1))
    steady.settle()
    assert len(steady.authority.retired) == 1
    steady.pass_time((11 * HOUR) / timedelta(seconds=1))
    steady.settle()
    assert steady.authority.retired == ()
    assert set(steady.bundles().values()) == {bundle.render(steady.authority.current.certificates)}
    assert steady.secrets["ca"]["metadata"]["annotations"] == {}


def test_a_leaf_that_was_asked_for_is_made_once(steady):
    before = steady.leaf.certificate
    steady.secrets["leaf"]["metadata"]["annotations"]["tfadmit.dev/rotate"] = "leaf"
    steady.settle()
    assert done(steady) == ["issue-leaf"]
    assert steady.leaf.certificate != before
    assert "tfadmit.dev/rotate" not in steady.secrets["leaf"]["metadata"]["annotations"]


def test_foreign_webhooks_and_foreign_keys_are_left_alone(made):
    made.put("ca", {"note": b"mine"}, {"example.com/owner": "me"}, type="Opaque")
    made.settle()
    for item in made.configurations.values():
        assert item["webhooks"][-1]["clientConfig"]["caBundle"] == "Zm9yZWlnbg=="
    assert made.secrets["ca"]["data"]["note"] == "bWluZQ=="
    assert made.secrets["ca"]["metadata"]["annotations"]["example.com/owner"] == "me"


def test_a_wiped_bundle_is_put_back_and_counted(steady):
    process = steady.settle()
    steady.configure(VALIDATING, None)
    steady.settle(process=process)
    assert done(steady) == ["publish", "disown"]
    assert steady.monitor.healed == [VALIDATING]


def test_what_somebody_wrote_into_a_bundle_is_not_believed(steady):
    foreign = builders.make_ca().certificate
    steady.configure(MUTATING, foreign, steady.authority.pem + foreign)
    steady.settle()
    assert len(steady.authority.trusted) == 1
    assert set(steady.bundles().values()) == {steady.authority.pem}


def test_an_expired_ca_is_replaced_without_a_person(made, caplog):
    ca = builders.make_ca(now=NOW - 400 * DAY, lifetime=365 * DAY)
    put_installed(made, ca, leaf_of(ca, now=NOW - 40 * DAY))
    with caplog.at_level(logging.INFO, "tfadmit.certs"):
        made.settle()
    assert made.monitor.done[0] == ("replace-ca", "expired")
    assert made.authority.retired == ()
    (line, *_) = caplog.records
    assert (line.levelname, line.getMessage()) == ("WARNING", "step")
    assert line.fields["text"].startswith("the CA expired on 2029-")


def test_no_leaf_waits_when_none_is_in_use(made):
    """An expired leaf is nobody's: the new one is there in moments."""
    ca = builders.make_ca(now=NOW - 400 * DAY, lifetime=365 * DAY)
    put_installed(made, ca, leaf_of(ca, now=NOW - 40 * DAY))
    process = made.controller()
    for _ in range(6):
        assert process.round() == 0
    assert done(made)[-1] == "issue-leaf"


@pytest.mark.parametrize("broken", [b"", b"garbage"])
@pytest.mark.parametrize("name", ["ca.crt", "ca.key"])
def test_a_broken_ca_is_replaced_while_servers_stay_trusted(made, name, broken):
    ca = builders.make_ca()
    leaf = leaf_of(ca)
    put_installed(made, ca, leaf)
    made.put("ca", {"ca.crt": ca.certificate, "ca.key": ca.key, name: broken})
    made.settle()
    assert made.monitor.done[0][0] == "replace-ca"
    assert made.authority.retired == bundle.parse(ca.certificate)
    assert not made.violations


def test_a_next_ca_is_used_when_the_current_one_breaks(made):
    ca, following = builders.make_ca(), builders.make_ca()
    put_installed(made, ca, leaf_of(ca))
    made.put(
        "ca",
        {
            "ca.crt": ca.certificate,
            "ca.key": b"",
            "next.crt": following.certificate,
            "next.key": following.key,
        },
    )
    made.settle()
    assert made.authority.current.certificates == bundle.parse(following.certificate)


def test_a_key_of_another_ca_is_told_apart(made):
    ca, other = builders.make_ca(), builders.make_ca()
    put_installed(made, ca, leaf_of(ca))
    made.put("ca", {"ca.crt": ca.certificate, "ca.key": other.key})
    made.settle()
    assert made.monitor.done[0] == ("replace-ca", "mismatched")


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_one_hour_off_changes_nothing(steady, hours):
    steady.now += hours * HOUR
    assert isinstance(steady.decide(), plan.Wait)
    steady.settle()
    assert done(steady) == []


def test_certificates_from_the_future_are_replaced_by_way_of_a_rotation(made):
    """The clock that made them was ahead, or this one is behind: the servers may be right."""
    ca = builders.make_ca(now=NOW + 3 * HOUR)
    put_installed(made, ca, leaf_of(ca, now=NOW + 4 * HOUR))
    made.settle()
    assert made.monitor.done[0] == ("add-next", "early")
    assert made.authority.current.certificate.not_valid_before_utc <= NOW
    assert made.leaf.certificate.not_valid_before_utc <= made.now
    assert made.authority.retired == bundle.parse(ca.certificate)
    assert not made.violations


def test_a_ca_of_ones_own_signs_until_it_is_due(made):
    ca = builders.make_ca(lifetime=3650 * DAY)
    put_ca(made, ca)
    made.settle()
    assert "replace-ca" not in done(made)
    assert made.authority.pem == ca.certificate
    assert bundle.is_issuer(builders.parsed(ca), made.leaf.certificate)


def test_a_ca_put_in_place_of_ours_is_introduced_before_it_signs(steady):
    old, own = steady.authority.current, builders.make_ca(lifetime=3650 * DAY)
    put_ca(steady, own)
    began = steady.monotonic
    steady.settle()
    assert steady.monitor.done[0] == ("adopt", "orphan")
    assert steady.authority.retired == old.certificates
    assert bundle.is_issuer(builders.parsed(own), steady.leaf.certificate)
    assert steady.monotonic - began >= 60
    assert not steady.violations


def test_a_leaf_for_other_names_is_replaced(made):
    ca = builders.make_ca()
    leaf = builders.make_leaf(ca, names=builders.make_names(dns=["other.team.svc"]))
    put_installed(made, ca, leaf)
    made.settle()
    assert ("issue-leaf", "names") in made.monitor.done


def test_a_leaf_that_ends_with_its_ca_is_not_made_again_and_again(made):
    """The CA ends in 10 hours and a leaf is due 56 hours before its end."""
    ca = builders.make_ca(now=NOW - 20 * DAY, lifetime=20 * DAY + 10 * HOUR)
    put_installed(made, ca, leaf_of(ca))
    made.settle()
    assert done(made).count("issue-leaf") == 1  # of the next CA
    assert made.monitor.done[0] == ("add-next", "due")


def test_deleting_retired_cas_drops_them_at_once(steady):
    """What a person does whose old CA is not to be trusted any more."""
    steady.secrets["ca"]["metadata"]["annotations"] = {"tfadmit.dev/rotate": "ca"}
    steady.settle()
    del steady.secrets["ca"]["data"]["retired.crt"]
    steady.settle()
    assert set(steady.bundles().values()) == {bundle.render(steady.authority.current.certificates)}


def test_an_encrypted_key_is_refused_because_only_a_person_can_have_made_it(made, caplog):
    ca = builders.make_ca()
    put_ca(made, ca)
    made.put("ca", {"ca.crt": ca.certificate, "ca.key": encrypted(ca.key)})
    assert_refused(made, caplog, "is encrypted. Decrypt it first: openssl pkey -in FILE -out FILE")


def test_a_ca_under_other_names_is_refused(made, caplog):
    ca = builders.make_ca()
    made.put("ca", {"tls.crt": ca.certificate, "tls.key": ca.key})
    assert_refused(made, caplog, "create secret generic hook-ca --from-file=ca.crt=FILE")


def test_a_secret_of_cert_manager_is_refused(made, caplog):
    leaf = leaf_of(builders.make_ca())
    annotations = {"cert-manager.io/certificate-name": "hook"}
    made.put("leaf", {"tls.crt": leaf.certificate, "tls.key": b""}, annotations)
    assert_refused(made, caplog, "Secret team/hook-tls is written by cert-manager: delete its")
    assert "issue-leaf" not in done(made)


def test_an_immutable_secret_is_refused(made, caplog):
    made.put("ca", {}, immutable=True)
    assert_refused(made, caplog, "Secret team/hook-ca is immutable: kubectl -n team delete secret")


def assert_refused(made, caplog, words):
    process = made.controller()
    with caplog.at_level(logging.ERROR, "tfadmit.certs"):
        for _ in range(8):
            process.round()
    # Said once, not with every look.
    (line,) = caplog.records
    assert line.getMessage() == "refused"
    assert words in line.fields["text"]
    assert made.monitor.refused


def encrypted(key):
    loaded = serialization.load_pem_private_key(key, password=None)
    return loaded.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


def test_a_replica_that_stands_by_writes_nothing(made):
    made.leading = False
    assert made.controller().round() > 0
    assert made.writes == []


def test_errors_are_waited_out_longer_and_longer(made):
    def refuse():
        raise kube.ApiError("no", status=500)

    process = made.controller()
    made.before_request = refuse
    pauses = [process._guarded_round() for _ in range(8)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (pytest.approx(0.15), pytest.approx(7.5))
    assert process.trouble() == "no"
    made.before_request = lambda: None
    assert process._guarded_round() == 0
    assert process.trouble() == ""


def test_a_conflict_is_another_look_and_no_failure(made):
    process = made.controller()
    process._guarded_round()
    # Between look and write somebody else writes.
    made.before_request = iter_once(lambda: made.configure(MUTATING, b"x"), skip=4)
    process._guarded_round()
    assert made.monitor.failures == ["conflict"]
    assert process.trouble() == ""
    made.before_request = lambda: None
    made.settle(process=process)


def iter_once(action, *, skip):
    left = [skip]

    def run():
        left[0] -= 1
        if left[0] == -1:
            action()

    return run


def test_serials_are_random_and_keys_are_p256(made):
    made.settle()
    first = made.leaf.certificate
    made.secrets["leaf"]["metadata"]["annotations"]["tfadmit.dev/rotate"] = "leaf"
    made.settle()
    second = made.leaf.certificate
    assert first.serial_number != second.serial_number
    assert min(first.serial_number, second.serial_number).bit_length() > 64
    for certificate in (first, made.authority.current.certificate):
        assert isinstance(certificate.public_key().curve, ec.SECP256R1)
        assert certificate.not_valid_before_utc == builders.SECOND - HOUR


@pytest.mark.parametrize("request_number", [0, 1, 2, 3, 4])
def test_who_acts_on_what_was_replaced_meanwhile_does_no_harm(steady, request_number):
    """A whole rotation by another between two of the requests of one look; the Lease has failed."""
    one, other = steady.settle(), steady.controller()

    def rotate():
        steady.before_request = lambda: None
        steady.secrets["ca"]["metadata"]["annotations"] = {"tfadmit.dev/rotate": "ca"}
        steady.settle(process=other)

    steady.before_request = iter_once(rotate, skip=request_number)
    for _ in range(3):
        one._guarded_round()
    assert steady.violations == []
    steady.settle(process=one)
    assert steady.violations == []


def test_a_date_that_is_too_early_for_the_leaf_in_use_is_mended(made):
    old, new = builders.make_ca(), builders.make_ca()
    put_installed(made, old, leaf_of(old))
    soon = {"tfadmit.dev/retired-until": world.moment(NOW - DAY)}
    made.put(
        "ca",
        {"ca.crt": new.certificate, "ca.key": new.key, "retired.crt": old.certificate},
        soon,
    )
    made.settle()
    assert made.monitor.done[0] == ("adopt", "orphan")
    assert made.authority.retired == bundle.parse(old.certificate)
    assert not made.violations


def test_the_copy_beside_the_leaf_tells_what_a_lost_ca_was(steady):
    """The Secret of the CA and every caBundle are gone: servers live by this leaf or the last."""
    steady.secrets["ca"]["metadata"]["annotations"] = {"tfadmit.dev/rotate": "ca"}
    steady.settle()
    steady.monitor.done.clear()
    old = steady.authority.trusted
    assert len(old) == 2
    del steady.secrets["ca"]
    steady.configure(MUTATING, None)
    steady.configure(VALIDATING, None)
    steady.settle()
    assert set(steady.authority.retired) == set(old)
    assert steady.monitor.done[0] == ("replace-ca", "missing")


def test_the_bundles_tell_it_when_both_secrets_are_lost(steady):
    old = steady.authority.current.certificates
    steady.secrets.clear()
    steady.settle()
    assert steady.authority.retired == old
    assert not steady.violations
