"""What cannot open a store is told before obstore is asked, which would panic or tell the key."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfadmit_transfer import credential_faults, uri

ACCOUNT = {
    "type": "service_account",
    "private_key": "hush",
    "private_key_id": "1",
    "client_email": "a@b",
}


def told(address, **environ):
    return list(credential_faults.mistakes(uri.parse(address), environ))


@pytest.mark.parametrize(
    "server",
    [
        "minio:9000",
        "http://",
        "ftp://x",
        "http://x:port",
        "http://x:0",
        "http://a b",
        "x",
        "https://ö",
    ],
)
def test_an_endpoint_is_an_address_with_its_scheme(server):
    for address, name in (
        ("s3://bucket", "AWS_ENDPOINT_URL"),
        ("s3://bucket", "AWS_ENDPOINT_URL_S3"),
        ("gs://bucket", "GOOGLE_BASE_URL"),
    ):
        first = told(address, **{name: server})[0]
        assert f"{name} is {server!r}, which is no address of a server" in first
    assert told("s3://bucket", GOOGLE_BASE_URL=server) == []
    assert told("gs://bucket", AWS_ENDPOINT_URL=server) == []


@pytest.mark.parametrize(
    "server", ["http://minio:9000", "https://s3.example.com/", "http://[::1]:9000", "http://a/b\n"]
)
def test_an_endpoint_that_can_be_asked_is_right(server):
    assert told("s3://bucket", AWS_ENDPOINT_URL=server) == []
    assert told("gs://bucket", GOOGLE_BASE_URL=server) == []


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "ACCESS_KEY_ID"])
def test_a_line_break_within_a_key_is_told_without_the_key(name):
    (words,) = told("s3://bucket", **{name: "hush\nhush"})
    assert "has a character that no key has" in words
    assert "hush" not in words


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("hush", "is no JSON of a key"),
        ('"hush"', "is no JSON of a key"),
        ("[" * 100_000, "is no JSON of a key"),
        (json.dumps({"type": "external_account"}), "external_account, which tfadmit cannot use"),
        (json.dumps({"type": {"hush": 1}}), "its type is another"),
        (json.dumps({**ACCOUNT, "private_key": ["hush"]}), "no whole key: it lacks private_key"),
        (json.dumps({"type": "authorized_user"}), "lacks client_id, client_secret, refresh_token"),
    ],
)
def test_a_key_of_google_that_is_none_is_told_without_the_key(key, sentence):
    (words,) = told("gs://bucket", GOOGLE_SERVICE_ACCOUNT_KEY=key)
    assert sentence in words
    assert "hush" not in words
    assert told("s3://bucket", GOOGLE_SERVICE_ACCOUNT_KEY=key) == []


def test_a_key_that_names_no_server_is_told():
    key = json.dumps({**ACCOUNT, "gcs_base_url": "nonsense"})
    (words,) = told("gs://bucket", GOOGLE_SERVICE_ACCOUNT_KEY=key)
    assert "no address" in words
    assert told("gs://bucket", GOOGLE_SERVICE_ACCOUNT_KEY=json.dumps(ACCOUNT)) == []


@given(st.text())
def test_whatever_is_set_is_judged_and_no_fault(text):
    for name in ("AWS_ENDPOINT_URL", "AWS_REGION", "ENDPOINT"):
        told("s3://bucket", **{name: text})
    for name in ("GOOGLE_BASE_URL", "GOOGLE_SERVICE_ACCOUNT_KEY", "GOOGLE_SERVICE_ACCOUNT"):
        told("gs://bucket", **{name: text})
