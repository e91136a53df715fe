"""The command `tfadmit` itself: dispatch, exit codes, and what a user's mistake looks like."""

import errno
import importlib
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tfadmit_client import cli, fault
from tfadmit_trainer import __version__


def with_command(monkeypatch, main):
    """Give `tfadmit preview` another body."""
    monkeypatch.setattr(importlib, "import_module", lambda name: SimpleNamespace(main=main))


def run_python(*words, **options):
    command = [sys.executable, "-m", "tfadmit_client", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_help_lists_every_command_with_a_line(word, capsys):
    assert cli.main([word]) == 0
    text = capsys.readouterr().out
    for command in cli.COMMANDS:
        assert f"  {command.name}" in text
        assert command.help in text


def test_without_a_command_the_help_goes_to_standard_error(capsys):
    assert cli.main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: tfadmit" in captured.err


def test_version_is_told(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"tfadmit {__version__}\n"


@pytest.mark.parametrize(
    ("word", "text"),
    [
        (
            "certz",
            "tfadmit: there is no command 'certz'; did you mean 'certs'?; see tfadmit --help\n",
        ),
        ("xyz", "tfadmit: there is no command 'xyz'; see tfadmit --help\n"),
    ],
)
def test_an_unknown_command_is_refused(word, text, capsys):
    assert cli.main([word]) == 2
    assert capsys.readouterr().err == text


def test_the_command_gets_its_words_and_its_name(monkeypatch):
    seen = []

    def main(argv, *, prog):
        seen.append((argv, prog))
        return 1

    with_command(monkeypatch, main)
    assert cli.main(["preview", "-f", "x"]) == 1
    assert seen == [(["-f", "x"], "tfadmit preview")]


def raising(error):
    def main(argv, *, prog):
        raise error

    return main


def test_a_mistake_is_a_sentence_and_no_traceback(monkeypatch, capsys):
    with_command(monkeypatch, raising(fault.ClientError("x.yaml:1: broken")))
    assert cli.main(["preview"]) == 2
    assert capsys.readouterr().err == "tfadmit preview: error: x.yaml:1: broken\n"


def test_what_reads_a_store_is_named_whatever_the_command(monkeypatch, capsys):
    with_command(monkeypatch, raising(ModuleNotFoundError("no", name="obstore")))
    assert cli.main(["logs"]) == 2
    assert "  pip install 'tfadmit[client,s3]'\n" in capsys.readouterr().err


def test_a_missing_extra_is_named_with_the_line_that_installs_it(monkeypatch, capsys):
    with_command(monkeypatch, raising(ModuleNotFoundError("no", name="flask.views")))
    assert cli.main(["serve"]) == 2
    assert capsys.readouterr().err == (
        "tfadmit serve: error: it needs 'flask', which is not installed:\n"
        "  pip install 'tfadmit[webhook]'\n"
    )


def test_a_module_of_ours_that_is_missing_is_our_fault(monkeypatch):
    with_command(monkeypatch, raising(ModuleNotFoundError("no", name="tfadmit_webhook.nope")))
    with pytest.raises(ModuleNotFoundError):
        cli.main(["serve"])


def test_ctrl_c_ends_with_130(monkeypatch):
    with_command(monkeypatch, raising(KeyboardInterrupt()))
    assert cli.main(["preview"]) == 130


@pytest.mark.parametrize(("stop", "code"), [(0, 0), (2, 2), ("text", 2)])
def test_argparse_s_exits_become_codes(monkeypatch, stop, code):
    with_command(monkeypatch, raising(SystemExit(stop)))
    assert cli.main(["preview"]) == code


@pytest.mark.parametrize("command", [command.name for command in cli.COMMANDS])
def test_each_command_explains_itself(command, capsys):
    assert cli.main([command, "--help"]) == 0
    assert f"usage: tfadmit {command}" in capsys.readouterr().out


def test_a_reader_that_has_gone_is_no_error():
    """`tfadmit … | head`: the output is closed before anything is written."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "tfadmit_client", "--help"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_row_28_help_comes_before_a_person_notices():
    """In processor time, which a busy machine does not stretch much: 0.03 s measured."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run_python("--help")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent < 0.3


def test_row_28_the_client_needs_few_packages_and_the_distribution_none():
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert "\ndependencies = []\n" in text
    (client,) = re.findall(r"\nclient = \[\n(.*?)\n\]", text, re.DOTALL)
    assert sorted(re.findall(r'"([a-z0-9]+)>=', client)) == [
        "kubernetes", "orjson", "pathspec", "pydantic", "pyyaml", "urllib3",
    ]  # fmt: skip


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from tfadmit_client import cli; cli.main(['--help']); "
        "print([name for name in ('yaml', 'flask', 'pydantic', 'ssl', 'argparse', 'kubernetes', "
        "'cryptography') if name in sys.modules], file=sys.stderr)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == "[]\n"


def test_preview_needs_neither_flask_nor_kubernetes():
    code = (
        "import sys; from tfadmit_client.commands import audit, check, demo, lint, preview; "
        "print([name for name in ('flask', 'aiohttp', 'pydantic', 'kubernetes', 'cryptography') "
        "if name in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n"


def test_a_full_disk_is_a_sentence_and_not_a_traceback():
    with Path("/dev/full").open("w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "tfadmit_client", "explain"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert result.returncode == 2
    assert result.stderr == "tfadmit: error: cannot write: No space left on device\n"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "cannot write: No space left on device"),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files"),
        (PermissionError(errno.EACCES, "Permission denied", "/a"), "/a: Permission denied"),
    ],
    ids=["output", "no writing at all", "a file"],
)
def test_only_what_has_to_do_with_writing_is_told_so(monkeypatch, capsys, error, sentence):
    monkeypatch.setattr(cli, "_close_stdout", lambda: None)  # it is pytest's
    with_command(monkeypatch, raising(error))
    assert cli.main(["preview"]) == 2
    assert capsys.readouterr().err == f"tfadmit: error: {sentence}\n"


def test_a_folder_that_was_removed_under_a_shell_is_told(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    code = (
        "import os, sys; os.rmdir(os.getcwd());"
        "from tfadmit_client import cli; sys.exit(cli.main(['run', '--local', '--', 'true']))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    sentence = "tfadmit: error: the current folder is there no more: change to one that is (cd)\n"
    assert (result.returncode, result.stderr) == (2, sentence)


def test_errors_never_go_to_standard_output():
    """`run -o yaml 2>&- | kubectl apply -f -`: what is closed has no substitute."""
    result = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m tfadmit_client nosuch 2>&-', sys.executable],
        stdout=subprocess.PIPE,
        check=False,
    )
    assert (result.returncode, result.stdout) == (2, b"")


def test_a_closed_output_is_no_fault():
    result = subprocess.run(
        f"{sys.executable} -m tfadmit_client explain >&-",
        shell=True,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")


TFJOB = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist, annotations: {who: "é 日本"}}
spec:
  tfReplicaSpecs:
    Worker: {template: {spec: {containers: [{name: tensorflow, image: a}]}}}
"""


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_the_output_is_utf_8_in_any_locale(tmp_path, output):
    path = os.fsencode(tmp_path) + b"/\xff.yaml"
    Path(os.fsdecode(path)).write_text(TFJOB)
    report = tmp_path / "report.txt"
    words = ["migrate", "-o", output, "-f", path, "--report", report]
    command = [sys.executable, "-m", "tfadmit_client", *words]
    environ = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(command, capture_output=True, check=False, env=environ)
    assert ended.returncode == 0, ended.stderr
    assert "é 日本" in ended.stdout.decode()
    assert "\\udcff.yaml" in report.read_text()


def test_a_closed_input_is_an_empty_one():
    command = f"{sys.executable} -m tfadmit_client lint - <&-"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert ended.stderr == "tfadmit lint: error: no Kubernetes object in -\n"
