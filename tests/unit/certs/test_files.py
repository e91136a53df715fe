"""What ends up in the directory, what happens to what is there, and every fault on the way."""

import errno
import itertools
import os
import pathlib
import stat
import tempfile
import threading
from datetime import timedelta

import pytest

from tfadmit_certs import bundle, files
from unit.certs import builders

FOUR = {"ca.crt", "ca.key", "tls.crt", "tls.key"}


@pytest.fixture(name="directory")
def make_directory(tmp_path):
    return tmp_path / "not" / "there" / "yet"


def fulfil(directory, *, now=builders.NOW, names=None, **rest):
    order = files.Order(names=names or builders.make_names(), lifetime=10 * builders.DAY)
    return files.fulfil(order, directory=directory, now=now, entropy=builders.ENTROPY, **rest)


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def assert_sound(directory, *, now=builders.NOW):
    """Exactly the four files, and they fit together."""
    held = contents(directory)
    assert set(held) == FOUR
    assert bundle.key_matches(certificate=held["ca.crt"], key=held["ca.key"])
    assert bundle.key_matches(certificate=held["tls.crt"], key=held["tls.key"])
    assert bundle.chain_problems(leaf=held["tls.crt"], ca=held["ca.crt"], now=now) == ()


def test_an_empty_place_gets_a_ca_and_a_leaf(directory):
    delivery = fulfil(directory)
    assert delivery.ca == "created"
    assert {path.name for path in delivery.written} == FOUR
    assert delivery.ca_pem == (directory / "ca.crt").read_bytes()
    assert delivery.certificate.alt_names == builders.make_names()
    assert_sound(directory)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_keys_are_private_and_certificates_public_whatever_the_umask(directory, umask):
    before = os.umask(umask)
    try:
        fulfil(directory)
    finally:
        os.umask(before)
    assert {path.name: mode(path) for path in directory.iterdir()} == {
        "ca.crt": 0o644,
        "ca.key": 0o600,
        "tls.crt": 0o644,
        "tls.key": 0o600,
    }


def test_a_file_that_others_could_read_is_private_afterwards(directory):
    fulfil(directory)
    (directory / "tls.key").chmod(0o666)
    fulfil(directory)
    assert mode(directory / "tls.key") == 0o600


def test_a_second_run_reuses_the_ca_and_renews_the_leaf(directory):
    fulfil(directory)
    before = contents(directory)
    later = builders.NOW + 5 * builders.DAY
    delivery = fulfil(directory, now=later, names=builders.make_names(dns=["new.team.svc"]))
    after = contents(directory)
    assert delivery.ca == "reused"
    assert {path.name for path in delivery.written} == {"tls.crt", "tls.key"}
    assert {name for name in FOUR if before[name] == after[name]} == {"ca.crt", "ca.key"}
    assert delivery.certificate.alt_names.dns == ("new.team.svc",)
    assert_sound(directory, now=later)


def test_force_makes_a_new_ca(directory):
    fulfil(directory)
    before = contents(directory)
    assert fulfil(directory, force=True).ca == "replaced"
    after = contents(directory)
    assert not any(before[name] == after[name] for name in FOUR)
    assert_sound(directory)


def test_force_in_an_empty_place_is_no_replacement(directory):
    assert fulfil(directory, force=True).ca == "created"


def test_other_files_in_the_directory_are_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    fulfil(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_bundle_of_two_cas_signs_with_the_one_whose_key_is_there(directory):
    fulfil(directory)
    newer = builders.make_ca()
    both = newer.certificate + (directory / "ca.crt").read_bytes()
    (directory / "ca.crt").write_bytes(both)
    delivery = fulfil(directory)
    assert delivery.ca_pem == both
    leaf = (directory / "tls.crt").read_bytes()
    assert bundle.chain_problems(leaf=leaf, ca=both, now=builders.NOW) == ()
    assert delivery.authority != bundle.describe(builders.parsed(newer))


def spoil_nothing(directory):
    """The CA is as it was."""


def lose(name):
    return lambda directory: (directory / name).unlink()


def replace(name, content):
    return lambda directory: (directory / name).write_bytes(content)


def lose_the_ca(directory):
    (directory / "ca.crt").unlink()
    (directory / "ca.key").unlink()


EXPIRED = builders.NOW + 4000 * builders.DAY
TOO_EARLY = builders.NOW - builders.DAY

FAULTS = [
    pytest.param(lose("ca.key"), builders.NOW, "ca.key is missing", id="half a pair: no key"),
    pytest.param(
        lose("ca.crt"), builders.NOW, "ca.crt is missing", id="half a pair: no certificate"
    ),
    pytest.param(
        replace("ca.key", builders.make_ca().key),
        builders.NOW,
        "ca.key does not belong to ca.crt",
        id="a foreign key",
    ),
    pytest.param(
        replace("ca.key", b""), builders.NOW, "ca.key holds no readable PEM", id="an empty key"
    ),
    pytest.param(
        replace("ca.crt", b"oops"), builders.NOW, "ca.crt holds no readable PEM", id="garbage"
    ),
    pytest.param(spoil_nothing, EXPIRED, "expired on 2039-12-30", id="an expired CA"),
    pytest.param(spoil_nothing, TOO_EARLY, "is not valid before", id="a CA of the future"),
    pytest.param(lose_the_ca, builders.NOW, "tls.crt is there without ca.crt", id="a foreign leaf"),
]


@pytest.mark.parametrize(("spoil", "now", "expected"), FAULTS)
def test_a_ca_that_cannot_be_used_is_refused_and_nothing_changes(directory, spoil, now, expected):
    fulfil(directory)
    spoil(directory)
    before = contents(directory)
    with pytest.raises(files.FilesError) as caught:
        fulfil(directory, now=now)
    message = str(caught.value)
    assert expected in message
    assert str(directory) in message
    assert "--force" in message
    assert contents(directory) == before


@pytest.mark.parametrize(("spoil", "now", "expected"), FAULTS)
def test_force_mends_each_of_these(directory, spoil, now, expected):
    fulfil(directory)
    spoil(directory)
    fulfil(directory, now=now, force=True)
    assert_sound(directory, now=now)


def test_a_leaf_cannot_pose_as_the_ca(directory):
    fulfil(directory)
    for kind in ("crt", "key"):
        (directory / f"tls.{kind}").replace(directory / f"ca.{kind}")
    with pytest.raises(files.FilesError, match="not one of a CA"):
        fulfil(directory)


@pytest.mark.parametrize("name", ["tls.crt", "tls.key"])
def test_half_a_leaf_beside_our_ca_is_simply_renewed(directory, name):
    fulfil(directory)
    (directory / name).unlink()
    assert fulfil(directory).ca == "reused"
    assert_sound(directory)


def test_a_file_in_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(files.FilesError, match=r"cannot create the directory .*--out"):
            fulfil_on_one_line(place)
    assert (tmp_path / "file").read_text() == "mine"


def fulfil_on_one_line(place):
    """For `match`, whose dot stops at the end of a line."""
    try:
        fulfil(place)
    except files.FilesError as error:
        raise files.FilesError(str(error).replace("\n", " ")) from error


@pytest.mark.parametrize("name", ["ca.key", "tls.key"])
def test_a_directory_in_place_of_a_file_is_refused(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(files.FilesError, match=name):
        fulfil(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("bits", [0o555, 0o444, 0o000])
def test_a_directory_without_permission_is_refused(tmp_path, bits, force):
    tmp_path.chmod(bits)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip("this user may write everywhere, as root may")
        with pytest.raises(files.FilesError, match="permission denied"):
            fulfil(tmp_path, force=force)
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (errno.EACCES, "permission denied"),
        (errno.EROFS, "read-only file system"),
        (errno.ENOSPC, "no space left on device"),
    ],
)
def test_a_place_that_takes_no_files_is_refused_with_the_reason(
    directory, monkeypatch, code, expected
):
    def refuse(**_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(files.FilesError, match=f"cannot write to .*: {expected}") as caught:
        fulfil(directory)
    assert isinstance(caught.value.__cause__, OSError)


def test_an_unreadable_ca_is_refused(directory, monkeypatch):
    fulfil(directory)

    def refuse(_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(pathlib.Path, "read_bytes", refuse)
    with pytest.raises(files.FilesError, match=r"cannot read .*ca\.crt: permission denied"):
        fulfil(directory)


@pytest.mark.parametrize("survivors", [0, 1, 2, 3])
def test_a_disk_that_fills_up_midway_changes_nothing(directory, monkeypatch, survivors):
    fulfil(directory)
    before = contents(directory)
    calls = itertools.count()
    real = os.fsync

    def fsync(descriptor):
        if next(calls) == survivors:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(files.FilesError, match="no space left"):
        fulfil(directory, force=True)
    assert contents(directory) == before


def test_an_interrupt_leaves_no_temporary_files(directory, monkeypatch):
    fulfil(directory)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(pathlib.Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fulfil(directory)
    assert set(contents(directory)) == FOUR


def test_a_reader_never_sees_half_a_file(directory):
    fulfil(directory)
    stop = threading.Event()
    faults = []

    def read():
        try:
            while not stop.is_set():
                bundle.parse((directory / "tls.crt").read_bytes())
                bundle.parse_key((directory / "tls.key").read_bytes())
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not happen
            faults.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    for _ in range(30):
        fulfil(directory)
    stop.set()
    thread.join()
    assert faults == []


def test_several_writers_at_once_agree_on_one_ca(directory):
    deliveries = []
    threads = [
        threading.Thread(target=lambda: deliveries.append(fulfil(directory))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({delivery.ca_pem for delivery in deliveries}) == 1
    assert sorted(delivery.ca for delivery in deliveries) == ["created", *["reused"] * 7]
    assert_sound(directory)


def test_a_key_is_never_in_what_is_handed_back(directory):
    assert "PRIVATE" not in repr(fulfil(directory))


def test_a_link_is_replaced_not_followed(directory, tmp_path):
    fulfil(directory)
    outside = tmp_path / "outside"
    outside.write_text("mine")
    (directory / "tls.key").unlink()
    (directory / "tls.key").symlink_to(outside)
    fulfil(directory)
    assert outside.read_text() == "mine"
    assert not (directory / "tls.key").is_symlink()


def test_the_leaf_of_an_old_ca_ends_with_it(directory):
    fulfil(directory)
    late = builders.NOW + timedelta(days=3645)
    delivery = fulfil(directory, now=late)
    assert delivery.certificate.not_after == delivery.authority.not_after
