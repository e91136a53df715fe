"""Addresses and inputs: what is read out of them, and the sentence for what is none."""

import contextlib
import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfadmit_transfer import fault, inputs, uri

SHA = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "scheme", "host", "path", "name"),
    [
        ("s3://bucket", "s3", "bucket", "", ""),
        ("s3://bucket/", "s3", "bucket", "", ""),
        ("S3://bucket/a b/ü?x.csv", "s3", "bucket", "a b/ü?x.csv", "ü?x.csv"),
        ("gs://my.bucket_1/x/", "gs", "my.bucket_1", "x/", "x"),
        ("https://h:8443/a%20b.csv?sig=a%2Fb", "https", "h:8443", "a%20b.csv?sig=a%2Fb", "a b.csv"),
        ("http://h", "http", "h", "", ""),
        ("file:///mnt/data", "file", "", "mnt/data", "data"),
        ("file://localhost/mnt", "file", "", "mnt", "mnt"),
        ("pvc://claim", "pvc", "claim", "", ""),
        ("s3://bucket/a%23b/c%20d%23", "s3", "bucket", "a#b/c%20d#", "c%20d#"),
        ("https://h/o/a%2Fb.bin?x=/c", "https", "h", "o/a%2Fb.bin?x=/c", "b.bin"),
        ("https://h/%2Fetc%2Fpasswd", "https", "h", "%2Fetc%2Fpasswd", "passwd"),
        ("https://h/a%23b", "https", "h", "a%23b", "a#b"),
        (" pvc://claim/a/b \n", "pvc", "claim", "a/b", "b"),
    ],
)
def test_an_address_has_these_parts(text, scheme, host, path, name):
    found = uri.parse(text)
    assert (found.scheme, found.host, found.path, found.name) == (scheme, host, path, name)
    assert found.sha256 == ""


def test_a_checksum_is_no_part_of_the_address():
    found = uri.parse(f"s3://bucket/x#sha256={SHA}")
    assert (str(found), found.path, found.sha256) == ("s3://bucket/x", "x", SHA)


def test_a_folder_below_an_address_is_one_slash_away():
    for base in ("s3://bucket/a", "s3://bucket/a/"):
        found = uri.below(uri.parse(base), "mnist")
        assert (str(found), found.path) == ("s3://bucket/a/mnist", "a/mnist")
    found = uri.below(uri.parse("gs://bucket"), "mnist")
    assert (str(found), found.path) == ("gs://bucket/mnist", "mnist")


MISTAKES = {
    "": "'' is no address of data: write s3://, gs://, http://, https://, pvc://, file://",
    "bucket/x": "'bucket/x' is no address of data",
    "/mnt/data": "'/mnt/data' is no address of data",
    "s3:/bucket/x": "is no address of data",
    "s3a://bucket/x": "has the scheme s3a: write s3://",
    "gcs://bucket/x": "has the scheme gcs: write gs://",
    "az://container/x": "does not speak to Azure Blob Storage: mount the container as a volume",
    "abfss://c@a.dfs/x": "'abfss://…@a.dfs/x' has the scheme abfss: tfadmit does not speak to",
    "https://me:hush@example.org/x#y": "'https://…@example.org/x#y': what follows # must be",
    "me:hush@example.org//x@y": "is no address of data",
    "hf://org/name": "has the scheme hf: Trainer's own initializer fetches it",
    "hdfs://x/y": "has the scheme hdfs: copy it",
    "git://x/y": "has the scheme git: the code of a job",
    "ftp://x/y": "has the scheme ftp: use s3://",
    "s3://": "names the bucket ''",
    "s3://B/x": "names the bucket 'B'",
    "s3://ab": "names the bucket 'ab': a bucket has 3 to 222",
    "s3://key:secret@bucket/x": "s3://…@bucket carries a user or password",
    "https://me:secret@host/x": "https://…@host carries a user or password",
    "https:///x": "names no host",
    "pvc:///x": "names the claim ''",
    "pvc://My_Claim/x": "names the claim 'My_Claim': write the name of a PersistentVolumeClaim",
    "file://mnt/data": "names the host 'mnt': a path of the node has three slashes, file:///mnt/data",
    "file:///": "is the whole file system",
    "s3://bucket/../x": "has . or .. in its path",
    "file:///mnt/./x": "has . or .. in its path",
    # A question mark begins a query in HTTP and nowhere else.
    "s3://bucket/x?/../y": "has . or .. in its path",
    "file:///mnt/x?/../../etc": "has . or .. in its path",
    "pvc://claim/x?/./y": "has . or .. in its path",
    # An escape would lead out of the folder that the file goes to.
    "https://h/x%2F..": "has . or .. in its path",
    "https://h/%2E%2e": "has . or .. in its path",
    "https://h/x%00": "has a control character",
    "s3://bucket/a\tb": "has a control character",
    "s3://bucket/a\x7f": "has a control character",
    "s3://bucket/x#y": "what follows # must be sha256=",
    "s3://bucket/x#sha256=12": "what follows # must be sha256=",
}


@pytest.mark.parametrize(("text", "sentence"), MISTAKES.items())
def test_what_is_no_address_is_told_with_what_to_write(text, sentence):
    with pytest.raises(fault.RefusedError) as refused:
        uri.parse(text)
    assert sentence in str(refused.value)


def test_results_cannot_go_where_nothing_can_be_written():
    with pytest.raises(fault.RefusedError, match=r"use s3://, gs://, pvc://, file://"):
        uri.output("https://host/x")
    assert uri.output("pvc://claim").scheme == "pvc"


@given(st.text())
def test_any_text_is_an_address_or_a_sentence(text):
    with contextlib.suppress(fault.RefusedError):
        found = uri.parse(text)
        assert uri.parse(str(found)).path == found.path
        assert "/" not in found.name


@given(st.text(alphabet="ab.%2fFeE053?/#"), st.sampled_from([*uri.SCHEMES]))
def test_no_address_leads_out_of_where_it_begins(path, scheme):
    """Neither the folder it names, nor the file that is written by its name."""
    with contextlib.suppress(fault.RefusedError):
        found = uri.parse(f"{scheme}://{'' if scheme == 'file' else 'host'}/{path}")
        root = "/mnt/allowed"
        if scheme not in ("http", "https"):
            assert posixpath.normpath(f"{root}/{found.path}").startswith(root)
        assert posixpath.dirname(posixpath.normpath(f"{root}/x{found.name}")) == root
        assert found.name not in (".", "..")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n ,\n", []),
        ("s3://bucket/x", [("data", "s3://bucket/x")]),
        ("train=s3://bucket/x", [("train", "s3://bucket/x")]),
        ("a=s3://bucket/x\nb=s3://bucket/y\n", [("a", "s3://bucket/x"), ("b", "s3://bucket/y")]),
        ("a=s3://bucket/x, b=pvc://c", [("a", "s3://bucket/x"), ("b", "pvc://c")]),
        ("a=s3://bucket/x,pvc://c", [("a", "s3://bucket/x"), ("data", "pvc://c")]),
        # Commas, equal signs and colons belong to an address unless another input begins there.
        ("https://h/x?a=1,2,b=3:4", [("data", "https://h/x?a=1,2,b=3:4")]),
        ("a=https://h/x?u=http://y,b=s3://bucket", [("a", "https://h/x?u=http://y"),
                                                    ("b", "s3://bucket")]),
    ],
)  # fmt: skip
def test_inputs_are_read_by_line_and_by_comma(text, expected):
    found = inputs.parse(text)
    assert [(item.name, str(item.uri)) for item in found] == expected
    assert inputs.parse(inputs.render(found)) == found


def test_an_input_has_its_folder_and_its_variable():
    train, model = inputs.parse("my-train.2=s3://bucket/x\nmodel=s3://bucket/m")
    assert (train.folder, train.variable) == ("dataset/my-train.2", "MY_TRAIN_2")
    assert (model.folder, model.variable) == ("model", "MODEL")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("=s3://bucket/x", "'' is no name of an input"),
        ("-a=s3://bucket/x", "'-a' is no name of an input"),
        (f"{'a' * 41}=s3://bucket/x", "is no name of an input: use up to 40"),
        ("..=s3://bucket/x", "'..' is no name of an input"),
        ("a-b=s3://bucket/x\na.b=s3://bucket/y", "two inputs are named 'a-b' and 'a.b'"),
        ("s3://bucket/x\npvc://c", "two inputs are named 'data' and 'data'"),
        ("train", "'train' is no address of data"),
    ],
)
def test_inputs_that_cannot_be_told_apart_or_found_are_refused(text, sentence):
    with pytest.raises(fault.RefusedError) as refused:
        inputs.parse(text)
    assert sentence in str(refused.value)


@given(st.text(alphabet="as3:/=,\n .-#", max_size=40))
def test_any_text_has_inputs_or_a_sentence(text):
    with contextlib.suppress(fault.RefusedError):
        found = inputs.parse(text)
        assert inputs.parse(inputs.render(found)) == found
