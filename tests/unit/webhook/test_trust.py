"""Whether the API server can verify us: caBundles against the certificate, by a real handshake."""

import base64
from datetime import datetime, timedelta, timezone

import pytest

from tfadmit_webhook import tls, trust
from unit.webhook import pairs

PATHS = ("/mutate/pods", "/validate/runtimes")
HOST = "tfadmit-webhook.tfadmit-system.svc"


class Observer:
    def __init__(self):
        self.bundles = {}

    def ca_bundle(self, *, configuration, trusted, size):
        self.bundles[configuration] = (trusted, size)


def webhook(ca, *, path="/mutate/pods", url=None, name="pods.tfadmit.dev"):
    service = {"name": "tfadmit-webhook", "namespace": "tfadmit-system", "path": path}
    config: dict[str, object] = {"url": url} if url else {"service": service}
    if ca is not None:
        config["caBundle"] = base64.b64encode(ca).decode()
    return {"name": name, "clientConfig": config}


def configuration(*webhooks):
    return {"webhooks": list(webhooks)}


def context(pair):
    return tls.server_context(certificate=pair.certificate, key=pair.key)


@pytest.fixture(scope="module")
def pair():
    return pairs.make(dns=HOST, ip="10.0.0.7")


@pytest.fixture
def shown(pair):
    return {"context": context(pair)}


@pytest.fixture
def observer():
    return Observer()


@pytest.fixture
def given():
    return []


@pytest.fixture
def watching(shown, observer, given):
    return trust.Trust(
        name="tfadmit",
        paths=PATHS,
        context=lambda: shown["context"],
        observer=observer,
        authorities=given.append,
    )


def both(one, other=None):
    return {"mutating": one, "validating": other or one}


def test_bundles_that_trust_the_certificate_make_it_ready(watching, observer, given, pair):
    assert watching.failing() == ["the webhook configurations tfadmit are not read yet"]
    assert watching.take(both(configuration(webhook(pair.ca)))) is True
    assert watching.failing() == []
    assert observer.bundles == dict.fromkeys(("mutating", "validating"), (True, len(pair.ca)))
    assert given[-1] == pair.ca


def test_old_and_new_ca_in_one_bundle_trust_certificates_of_both(watching, shown, pair):
    other = pairs.make(dns=HOST)
    found = both(configuration(webhook(other.ca + pair.ca)))
    assert watching.take(found)
    shown["context"] = context(other)
    watching.take(found)
    assert watching._told == {"mutating": "", "validating": ""}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda _: both("the mutating configuration tfadmit does not exist"),
            "the mutating configuration tfadmit does not exist",
        ),
        (
            lambda _: both(configuration(webhook(pairs.make().ca))),
            f"pods.tfadmit.dev: unable to get local issuer certificate (called by the name {HOST})",
        ),
        (
            lambda pair: both(configuration(webhook(pair.ca), webhook(pairs.make().ca))),
            "unable to get local issuer certificate",
        ),
        (
            lambda pair: both(configuration(webhook(pair.ca)), configuration(webhook(b"broken"))),
            (
                "validating configuration tfadmit does not trust this server: pods.tfadmit.dev: "
                "its caBundle cannot be used"
            ),
        ),
        (lambda _: both(configuration(webhook(None))), "it has no caBundle"),
        (lambda _: both(configuration()), "has no webhook with a path of ours"),
        (
            lambda pair: both(configuration(webhook(pair.ca, url="https://other/mutate/pods"))),
            "Hostname mismatch, certificate is not valid for 'other'. (called by the name other)",
        ),
    ],
    ids=["absent", "other CA", "one of two", "broken", "none", "no webhook", "other name"],
)
def test_what_does_not_fit_is_a_sentence_until_it_does(watching, observer, pair, make, words):
    assert watching.take(make(pair)) is False
    assert words in "\n".join(watching.failing())
    assert False in [trusted for trusted, _ in observer.bundles.values()]
    assert watching.take(both(configuration(webhook(pair.ca))))
    assert watching.failing() == []


def test_once_all_was_well_a_wrong_bundle_is_told_and_takes_nobody_out(
    watching, observer, pair, caplog
):
    watching.take(both(configuration(webhook(pair.ca))))
    for _ in range(3):
        assert watching.take(both(configuration(webhook(pairs.make().ca)))) is True
    assert watching.failing() == []
    assert observer.bundles["mutating"][0] is False
    lines = [record.fields for record in caplog.records if record.levelname == "WARNING"]
    assert [line["configuration"] for line in lines] == ["mutating", "validating"]


def test_before_there_is_a_certificate_nothing_is_judged(watching, observer, shown, pair):
    shown["context"] = None
    assert watching.take(both(configuration(webhook(pair.ca)))) is False
    assert observer.bundles == {}


@pytest.mark.parametrize(
    ("item", "host"),
    [
        ({"service": {"name": "a", "namespace": "b", "path": "/mutate/pods"}}, "a.b.svc"),
        ({"url": "https://10.0.0.7:8443/mutate/pods"}, "10.0.0.7"),
        ({"url": "https://[::1]:8443/mutate/pods?x=1"}, "::1"),
        ({"service": {"name": "a", "namespace": "b", "path": "/other"}}, None),
        ({"service": {"name": "a", "namespace": "b"}}, None),
        ({"url": "https://x/"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_path_says_which_webhooks_are_ours_and_the_config_by_which_name(item, host):
    found = list(trust.leading(configuration({"clientConfig": item}, None), paths=PATHS))
    assert [call.host for call in found] == ([host] if host else [])


def test_an_address_is_verified_as_an_address(watching, pair):
    assert watching.take(both(configuration(webhook(pair.ca, url="https://10.0.0.7/mutate/pods"))))


def test_an_expired_ca_is_named(watching, pair):
    then = datetime.now(timezone.utc) - timedelta(days=5000)
    old = pairs.make(dns=HOST, now=then)
    assert not watching.take(both(configuration(webhook(old.ca))))


def test_a_bundle_with_the_certificate_itself_is_enough_as_for_go(watching, pair):
    assert watching.take(both(configuration(webhook(pair.certificate))))
