"""A folder as an archive: what is in it, the same every time, and what comes out again."""

import hashlib
import io
import os
import socket
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfadmit_client import fault
from tfadmit_client.submit import code, pack, source
from tfadmit_trainer.launcher import archive
from tfadmit_trainer.launcher.fault import LaunchError

# Row 4: what other clients change on the way.
HARD = b'print("$HOME `echo SUB` \\\\n", "\\u00fc\\r\\n")\r\n\x00\xff'


def write(top, files):
    for name, content in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return top


def unpacked(content, into):
    file = into.with_suffix(".tgz")
    file.write_bytes(content)
    archive.unpack(file, sha256=hashlib.sha256(content).hexdigest(), into=into)
    return into


def everything(top):
    """All below a folder: kind, mode and content."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_dir():
            found[name] = ("folder", path.stat().st_mode & 0o777)
        else:
            found[name] = ("file", path.stat().st_mode & 0o777, path.read_bytes())
    return found


def names(top):
    return sorted(pack.pack(str(top)).entries)


def test_row_4_every_byte_mode_and_name_comes_out_as_it_went_in(tmp_path):
    top = write(
        tmp_path / "code",
        {"train.py": HARD, "pkg/ünï ✓.py": "x", "pkg/$HOME `x`.txt": "y", "run me.sh": "#!"},
    )
    (top / "run me.sh").chmod(0o750)
    (top / "pkg" / "link").symlink_to("../train.py")
    (top / "nowhere").symlink_to("not/there")
    (top / "empty").mkdir(mode=0o700)
    os.close(os.open(os.fsencode(top) + b"/bad\xff", os.O_CREAT | os.O_WRONLY, 0o600))
    before = os.umask(0o077)
    try:
        out = unpacked(pack.pack(str(top)).content, tmp_path / "out")
    finally:
        os.umask(before)
    assert everything(out) == everything(top)


# Each example writes and reads files; also in CI, where others have ten thousand.
@settings(max_examples=60)
@given(
    files=st.dictionaries(
        st.from_regex(r"[a-zA-Z0-9 $`'\"\\é☃-]{1,20}", fullmatch=True), st.binary(min_size=1),
        min_size=1, max_size=4,
    )
)  # fmt: skip
def test_row_4_any_file_comes_out_as_it_went_in(tmp_path_factory, files):
    place = tmp_path_factory.mktemp("any")
    top = write(place / "code", files)
    assert everything(unpacked(pack.pack(str(top)).content, place / "out")) == everything(top)


def test_row_6_the_archive_is_the_same_wherever_and_whenever_it_is_packed(tmp_path):
    files = {"b.py": "b", "a.py": "a", "sub/c.py": "c"}
    first = write(tmp_path / "one" / "x", files)
    second = write(tmp_path / "two" / "y", dict(reversed(files.items())))
    for path in second.rglob("*"):
        os.utime(path, (1, 1))
    content = pack.pack(str(first)).content
    assert content == pack.pack(str(second)).content
    with tarfile.open(fileobj=io.BytesIO(content)) as opened:
        members = opened.getmembers()
    assert [item.name for item in members] == ["a.py", "b.py", "sub", "sub/c.py"]
    assert {(item.mtime, item.uid, item.gid, item.uname, item.gname) for item in members} == {
        (0, 0, 0, "", "")
    }


def test_a_later_attempt_replaces_what_an_earlier_one_has_left(tmp_path):
    top = write(tmp_path / "code", {"sub/a.py": "new"})
    (top / "sub").chmod(0o500)
    out = write(tmp_path / "out", {"sub/a.py": "old"})
    (out / "sub").chmod(0o500)
    unpacked(pack.pack(str(top)).content, out)
    assert (out / "sub/a.py").read_text() == "new"


IGNORED = {
    "ignored.txt": False, "keep.txt": True, "data/big": False, "data/taken-back": False,
    "sub/x.log": False, "sub/deep/keep.log": True, "sub/own": False, "build/a": True,
    "__pycache__/a.pyc": False, ".git/config": False, "local.cfg": False,
    ".tfadmit/x/code.tgz": False,
}  # fmt: skip


def test_git_and_we_agree_on_what_is_ignored(tmp_path):
    top = write(tmp_path, dict.fromkeys([name for name in IGNORED if ".git/" not in name], "x"))
    write(
        top,
        {
            ".gitignore": "*.txt\n!keep.txt\n/data/\n*.log\n__pycache__\nlocal.cfg\n.tfadmit\n",
            "sub/.gitignore": "/own\n",
            "sub/deep/.gitignore": "!keep.log\n",
        },
    )
    subprocess.run(["git", "init", "-q"], cwd=top, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=top, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    files = [name for name in names(top) if not (top / name).is_dir()]
    assert files == sorted(listed)
    assert {name: name in files for name in IGNORED} == IGNORED


def test_a_tfadmitignore_leaves_out_and_takes_back(tmp_path):
    top = write(
        tmp_path,
        {
            "a.txt": "x", "b.bin": "x", "__pycache__/c": "x",
            ".gitignore": "*.txt\n", ".tfadmitignore": "!a.txt\n*.bin\n!__pycache__\n",
        },
    )  # fmt: skip
    assert set(names(top)) == {
        "a.txt", "__pycache__", "__pycache__/c", ".gitignore", ".tfadmitignore",
    }  # fmt: skip


def test_rules_of_the_repository_above_the_folder_count(tmp_path):
    top = write(tmp_path, {"src/train.py": "x", "src/data/x": "x", ".gitignore": "/src/data\n"})
    (top / ".git").mkdir()
    assert names(top / "src") == ["train.py"]


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "sub/../../outside"])
def test_a_link_that_leads_out_is_refused(tmp_path, target):
    top = write(tmp_path / "code", {"train.py": "x", "sub/y": "x"})
    (tmp_path / "outside").write_text("secret")
    (top / "link").symlink_to(target)
    with pytest.raises(fault.ClientError, match="the link link leads out of the folder"):
        pack.pack(str(top))


@pytest.fixture
def somebody():
    """A folder of a user whom modes bind, which they do not bind root; give it while we are him."""
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        before = os.geteuid()
        if before == 0:
            os.chown(top, 65534, -1)
            os.seteuid(65534)
        try:
            yield top
        finally:
            os.seteuid(before)
            for path in (top, *top.rglob("*")):
                path.chmod(0o700)


def test_all_that_cannot_be_read_is_named_at_once(somebody):
    write(somebody, {"train.py": b"x", "closed/a": b"a", "listed/b": b"b"})
    (somebody / "closed").chmod(0)
    (somebody / "listed").chmod(0o400)  # its names can be read, and nothing more
    with pytest.raises(fault.ClientError) as caught:
        pack.pack(str(somebody))
    assert str(caught.value).splitlines() == [
        f"--code {somebody}: closed/ cannot be read: Permission denied; leave it out by a line in .tfadmitignore, or make it readable",  # noqa: E501
        f"{somebody}/listed/.gitignore: cannot be read: Permission denied; make it readable",
    ]


def test_a_folder_that_cannot_be_reached_is_a_sentence(somebody):
    write(somebody, {"above/folder/train.py": b"x"})
    (somebody / "above").chmod(0)
    folder = somebody / "above/folder"
    with pytest.raises(fault.ClientError) as caught:
        pack.pack(str(folder))
    assert str(caught.value) == (
        f"--code {folder}: it cannot be read: Permission denied; make it readable (chmod u+rx)"
    )


def test_an_ignore_file_of_windows_holds_from_its_first_line(tmp_path):
    """Editors there begin a file with a mark of its encoding, which git passes over."""
    write(tmp_path, {"train.py": b"x", "secret.key": b"k"})
    (tmp_path / ".gitignore").write_bytes(b"\xef\xbb\xbfsecret.key\r\n")
    assert sorted(pack.pack(str(tmp_path)).entries) == [".gitignore", "train.py"]


def test_what_is_no_file_is_left_out_and_told(tmp_path):
    top = write(tmp_path, {"train.py": "x"})
    os.mkfifo(top / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(top / "socket"))
        packed = pack.pack(str(top))
    assert packed.skipped == ("pipe", "socket")
    assert list(packed.entries) == ["train.py"]


def test_more_bytes_than_anybody_means_as_code_are_not_even_read(tmp_path):
    top = write(tmp_path, {"train.py": "x"})
    with (top / "huge.bin").open("wb") as stream:
        stream.truncate(50 * 10**9)  # takes no room on the disk
    with pytest.raises(fault.ClientError, match=r"the largest so far: huge\.bin \(50\.0 GB\)"):
        pack.pack(str(top))


@pytest.fixture
def nested(tmp_path, monkeypatch):
    """A folder with folders in folders, deeper than one path can tell."""
    top = write(tmp_path / "code", {"train.py": "x"})

    def make(names, **files):
        write(top, {f".{name}": content for name, content in files.items()})
        monkeypatch.chdir(top)
        for name in names:
            Path(name).mkdir()
            os.chdir(name)
        Path("deep.py").write_text("x")
        monkeypatch.chdir(top)
        return top

    yield make
    # By a program that does not recurse, as Python's own removal does.
    subprocess.run(["rm", "-rf", "--", str(top)], check=True)


@pytest.mark.parametrize("depth", [101, 1_100, 1_900])
def test_folders_too_deep_to_be_code_are_refused_in_a_sentence(nested, depth):
    top = nested(["d"] * depth)
    with pytest.raises(fault.ClientError) as caught:
        pack.pack(str(top))
    shown = "d/" * 30
    assert str(caught.value) == (
        f"--code {top}: the path {shown}… is more than 100 folders deep, which is not code; "
        "leave it out by a line in .tfadmitignore"
    )


def test_a_path_that_is_too_long_for_a_pod_is_refused_in_a_sentence(nested):
    top = nested(["n" * 200] * 40)
    with pytest.raises(fault.ClientError) as caught:
        pack.pack(str(top))
    assert f"the path {'n' * 60}… is " in str(caught.value)
    assert "leave it out by a line in .tfadmitignore" in str(caught.value)


def test_deep_folders_that_are_left_out_do_not_matter(nested):
    top = nested(["d"] * 1_500, tfadmitignore="d/\n")
    assert names(top) == [".tfadmitignore", "train.py"]


def test_what_is_as_deep_as_may_be_comes_out_as_it_went_in(nested, tmp_path):
    top = nested(["deep"] * 100)
    out = unpacked(pack.pack(str(top)).content, tmp_path / "out")
    assert everything(out) == everything(top)


# --- line ends of Windows ------------------------------------------------------------------------


def test_scripts_that_linux_cannot_start_are_told_and_travel_as_they_are(tmp_path):
    content = b"#!/usr/bin/env python3\r\nprint(1)\r\n"
    top = write(
        tmp_path / "code", {"run me.py": content, "train.py": content, "ok.sh": b"#!/bin/sh\n"}
    )
    (top / "run me.py").chmod(0o755)
    (top / "train.py").chmod(0o644)
    (top / "ok.sh").chmod(0o755)
    packed = pack.pack(str(top))
    (warning,) = code.warnings(packed)
    assert warning == (
        "run me.py: the lines end as on Windows, and Linux looks for an interpreter "
        "/usr/bin/env python3\\r, which is not there; save them as Unix has it, as by "
        "sed -i 's/\\r$//' 'run me.py'"
    )
    assert everything(unpacked(packed.content, tmp_path / "out")) == everything(top)


def test_many_scripts_of_windows_are_told_in_one_sentence(tmp_path):
    top = write(tmp_path / "code", {f"s{at}.sh": "#!/bin/sh\r\n" for at in range(7)})
    for path in top.iterdir():
        path.chmod(0o755)
    (warning,) = code.warnings(pack.pack(str(top)))
    assert warning.startswith("s0.sh, s1.sh, s2.sh, s3.sh, s4.sh and 2 more: ")


def test_a_script_of_windows_does_what_the_warning_says(tmp_path):
    script = write(tmp_path, {"run.sh": "#!/bin/sh\r\nexit 0\r\n"}) / "run.sh"
    script.chmod(0o755)
    with pytest.raises(FileNotFoundError):
        subprocess.run([str(script)], check=False)


# --- what does not fit ---------------------------------------------------------------------------


@pytest.fixture
def large(tmp_path):
    files = {f"blob{at}.bin": os.urandom(100_000 + 50_000 * at) for at in range(7)}
    top = write(tmp_path / "large", {"train.py": "pass", **files})
    return code.of(str(top), ["python", "train.py"])


@pytest.mark.parametrize("output", ["", "pvc://claim/results", "file:///mnt/results"])
def test_row_12_code_that_does_not_fit_names_the_five_largest(large, output):
    with pytest.raises(fault.ClientError) as caught:
        code.placed(*large, folder=".", output=output)
    said = str(caught.value)
    assert "900.0 kB fit into a job; the largest: blob6.bin (400.0 kB), blob5.bin" in said
    assert "blob2.bin" in said
    assert "blob1.bin" not in said
    assert ".tfadmitignore" in said
    assert "--output s3://bucket/folder" in said


def test_with_an_object_store_it_lies_there_under_a_name_of_its_content(large):
    found, packed = large
    placed = code.placed(found, packed, folder=".", output="s3://b/results")
    assert placed.archive is None
    assert placed.stored
    assert placed.stored.uri == f"s3://b/results/code-{found.sha256}.tgz"
    assert placed.stored.line == f"tfadmit-code={placed.stored.uri}#sha256={found.sha256}"
    assert placed.sha256 == found.sha256


def test_code_that_fits_stays_with_the_job(tmp_path):
    found, packed = code.of(str(write(tmp_path, {"train.py": "pass"})), ["python", "train.py"])
    assert code.placed(found, packed, folder=".", output="s3://b/results") == found


# --- what the launcher refuses -------------------------------------------------------------------


def hostile(**fields):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as opened:
        info = tarfile.TarInfo(fields.pop("name", "x"))
        for key, value in fields.items():
            setattr(info, key, value)
        opened.addfile(info)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (hostile(name="../x"), "leads out of its folder"),
        (hostile(name="/x"), "leads out of its folder"),
        (hostile(type=tarfile.FIFOTYPE), "neither file, folder nor link"),
        (b"nonsense", "cannot be unpacked"),
    ],
)
def test_an_archive_that_is_none_of_ours_is_refused(tmp_path, content, sentence):
    with pytest.raises(LaunchError, match=sentence):
        unpacked(content, tmp_path / "out")
    assert not (tmp_path / "x").exists()


def test_another_archive_than_the_job_says_is_refused(tmp_path):
    file = tmp_path / "code.tgz"
    file.write_bytes(b"other")
    with pytest.raises(LaunchError, match="the TrainJob says 0000"):
        archive.unpack(file, sha256="0" * 64, into=tmp_path / "out")
    with pytest.raises(LaunchError, match="is the ConfigMap of `tfadmit run` there"):
        archive.unpack(tmp_path / "none", sha256="0" * 64, into=tmp_path / "out")


# --- which commit --------------------------------------------------------------------------------


def git(top: Path, *words: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *identity, *words], cwd=top, check=True, capture_output=True)


def test_row_26_commit_and_changes_are_noted(tmp_path):
    assert source.of(str(tmp_path)) == ""
    top = write(tmp_path, {"train.py": "x"})
    git(top, "init", "-q")
    assert source.of(str(top)) == ""
    git(top, "add", ".")
    git(top, "commit", "-qm", "one")
    assert '"dirty": false' in source.of(str(top))
    write(top, {"train.py": "y"})
    assert '"dirty": true' in source.of(str(top))
