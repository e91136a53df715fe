"""Which certificate is shown: the last good one, whatever is offered after it."""

from datetime import datetime, timedelta, timezone

import pytest

from tfadmit_certs import bundle
from tfadmit_webhook import identity, identity_files
from unit.webhook import pairs

NOW = datetime(2026, 7, 1, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


class Observer:
    def __init__(self):
        self.told, self.ends = [], []

    def certificate_read(self, *, trouble=""):
        self.told.append(trouble)

    def certificate_ends(self, *, leaf, ca):
        self.ends.append((leaf, ca))


class Clock:
    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def observer():
    return Observer()


@pytest.fixture
def keeper(observer, clock):
    return identity.Keeper(observer=observer, now=clock)


def make(**fields):
    return pairs.make(**{"now": NOW, "days": 7} | fields)


@pytest.fixture
def good():
    return make()


def test_without_an_offer_there_is_nothing_to_show(keeper):
    assert keeper.context is None
    assert keeper.failing() == ["no certificate to show: none was offered yet"]


def test_a_good_pair_is_shown_and_told_with_its_ends(keeper, observer, good):
    keeper.offer(good.offer())
    assert keeper.context
    assert keeper.failing() == []
    assert observer.told == [""]
    ((leaf, ca),) = observer.ends
    assert leaf == NOW + timedelta(days=7)
    assert ca > leaf


def test_the_same_again_changes_nothing(keeper, observer, good):
    keeper.offer(good.offer())
    context = keeper.context
    keeper.offer(good.offer())
    assert keeper.context is context
    assert observer.told == [""]


def test_a_renewed_pair_takes_its_place(keeper, observer, good):
    keeper.offer(good.offer())
    first = keeper.context
    keeper.offer(make().offer())
    assert keeper.context is not first
    assert observer.told == ["", ""]


def bad_offers(good):
    other = make()
    return {
        "key of another": good.offer(key=other.key),
        "no certificate": good.offer(certificate=b""),
        "no key": good.offer(key=b""),
        "broken": good.offer(certificate=b"-----BEGIN CERTIFICATE-----\nxx\n"),
        "a CA's certificate only": good.offer(certificate=good.ca),
    }


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("key of another", "the key does not belong to the certificate"),
        ("no certificate", "the certificate holds no readable PEM certificate"),
        ("no key", "the key holds no readable PEM private key"),
        ("broken", "the certificate holds no readable PEM certificate"),
        ("a CA's certificate only", "the key does not belong to the certificate"),
    ],
)
def test_what_cannot_be_used_leaves_the_last_good_pair_and_is_told_once(
    keeper, observer, good, how, words
):
    keeper.offer(good.offer())
    held = keeper.context
    for _ in range(3):
        keeper.offer(bad_offers(good)[how])
        keeper.look()
    assert keeper.context is held
    assert keeper.failing() == []
    assert len(observer.told) == 2
    assert words in observer.told[1]
    assert identity.check(bad_offers(good)[how])


def test_an_expired_pair_is_never_shown_and_says_when_it_ended(keeper, observer):
    keeper.offer(make(now=NOW - timedelta(days=8)).offer())
    assert keeper.context is None
    sentence = "the certificate: the certificate expired on 2026-06-30 12:00:00 UTC"
    assert observer.told == [sentence]
    assert keeper.failing() == [f"no certificate to show: {sentence}"]


def test_an_expired_pair_does_not_replace_a_good_one(keeper, good):
    keeper.offer(good.offer())
    held = keeper.context
    keeper.offer(make(now=NOW - timedelta(days=8)).offer())
    assert keeper.context is held
    assert keeper.failing() == []


def test_a_pair_of_the_future_is_taken_when_its_time_has_come(keeper, observer, clock, good):
    keeper.offer(good.offer())
    held = keeper.context
    keeper.offer(pairs.make_starting(NOW + 2 * HOUR).offer())
    keeper.look()
    assert keeper.context is held
    assert len(observer.told) == 2
    assert "is not valid before 2026-07-01 14:00:00 UTC" in observer.told[1]
    clock.now += 2 * HOUR
    keeper.look()
    assert keeper.context is not held
    assert observer.told[2:] == [""]


def test_a_little_out_of_date_is_better_than_none_and_worse_than_one_in_date(keeper, clock):
    soon = pairs.make_starting(NOW + timedelta(seconds=30))
    keeper.offer(soon.offer())
    taken = keeper.context
    assert taken
    assert keeper.failing() == []
    other = make(now=NOW)
    keeper.offer(other.offer())
    assert keeper.context is not taken
    keeper.offer(soon.offer())
    clock.now += timedelta(seconds=29)
    keeper.look()
    assert keeper.failing() == []


def test_a_pair_that_ends_while_it_is_shown_stays_and_is_told_by_readiness(keeper, clock, good):
    """Whoever calls judges by a clock of his own; without a certificate nobody could."""
    keeper.offer(good.offer())
    clock.now += timedelta(days=7, minutes=2)
    (line,) = keeper.failing()
    assert line == (
        "the certificate expired on 2026-07-08 12:00:00 UTC; now it is 2026-07-08 12:02:00 UTC"
    )
    assert keeper.context
    keeper.refuse("Secret a/b does not exist")
    assert keeper.failing()[0].endswith("; Secret a/b does not exist")
    keeper.offer(make(now=clock.now).offer())
    assert keeper.failing() == []


def test_a_source_that_has_nothing_is_told_once(keeper, observer, good):
    keeper.offer(good.offer())
    for _ in range(3):
        keeper.refuse("Secret a/b does not exist")
    assert observer.told == ["", "Secret a/b does not exist"]
    keeper.offer(good.offer())
    keeper.refuse("Secret a/b does not exist")
    assert observer.told == ["", "Secret a/b does not exist", "Secret a/b does not exist"]


def test_the_end_of_the_ca_is_that_of_the_one_that_signed(keeper, observer):
    old, new = make(), make()
    both = old.ca + new.ca
    keeper.offer(new.offer(ca=both))
    keeper.offer(old.offer(ca=both))
    end = bundle.describe(bundle.parse(new.ca)[0]).not_after
    assert observer.ends[0][1] == end
    keeper.offer(old.offer(ca=new.ca))
    assert observer.ends[2] == (old.facts.not_after, None)
    keeper.offer(old.offer(ca=b"broken"))
    assert observer.ends[3] == (old.facts.not_after, None)


def test_without_cas_from_the_source_those_of_the_configurations_are_looked_at(
    keeper, observer, good
):
    keeper.offer(good.offer(ca=b""))
    keeper.authorities(good.ca)
    keeper.authorities(good.ca)
    assert [bool(ca) for _, ca in observer.ends] == [False, True]


def test_other_cas_of_clients_are_taken_and_broken_ones_are_not(keeper, observer, good):
    keeper.offer(good.offer())
    before = keeper.context
    keeper.trust_clients(make().ca)
    taken = keeper.context
    assert taken is not before
    for _ in range(2):
        keeper.trust_clients(b"broken")
        keeper.distrust("--client-ca gone: No such file or directory")
    assert keeper.context is taken
    assert observer.told[:2] == ["", ""]
    assert "--client-ca holds no readable PEM certificate" in observer.told[2]


def test_no_sentence_and_no_repr_has_the_key(keeper, observer, good):
    keeper.offer(good.offer(certificate=b"broken"))
    body = good.key.splitlines()[1].decode()
    assert body not in repr(good.offer()) + "".join(observer.told)


# --- files --------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, good):
    (tmp_path / "tls.crt").write_bytes(good.certificate)
    (tmp_path / "tls.key").write_bytes(good.key)
    return identity_files.Pair(certificate=tmp_path / "tls.crt", key=tmp_path / "tls.key")


def test_files_are_taken_when_both_fit_whatever_their_times_say(files, keeper, observer, good):
    following = identity_files.Follower(files, keeper)
    following.start()
    first, other = keeper.context, make()
    times = files.certificate.stat()
    files.certificate.write_bytes(other.certificate)  # and the key a moment later
    following.look()
    assert keeper.context is first
    files.key.write_bytes(other.key)
    pairs.set_times(files.certificate, times)
    following.look()
    assert keeper.context is not first
    assert observer.told[0] == observer.told[2] == ""
    assert f"--tls-key {files.key} does not belong to --tls-cert" in observer.told[1]


def test_a_file_that_is_gone_is_named_with_its_option(files, keeper, observer):
    following = identity_files.Follower(files, keeper)
    files.key.unlink()
    following.look()
    assert observer.told == [f"--tls-key {files.key}: No such file or directory"]


def test_an_empty_file_of_client_cas_lets_nobody_in(tmp_path, keeper, observer, good):
    keeper.offer(good.offer())
    path = tmp_path / "ca.crt"
    path.write_bytes(b"\n")
    held = keeper.context
    identity_files.ClientCa(path=path).look(keeper)
    assert keeper.context is held
    assert observer.told == ["", f"--client-ca {path}: is empty"]
