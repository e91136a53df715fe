"""Row 31: `run --local` is the same launcher with as many processes as the training has tasks."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tfadmit_client import cli
from tfadmit_client.commands import run_options

ROOT = Path(__file__).parents[4]
COMPONENTS = ("webhook", "trainer", "certs", "connect", "client", "transfer")
PATHS = os.pathsep.join(str(ROOT / name) for name in COMPONENTS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # What a shell may have from elsewhere must not be taken for this training's.
    monkeypatch.setenv("TF_CONFIG", "{}")
    monkeypatch.setenv(
        "PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    )
    return tmp_path


@pytest.fixture
def local(folder, capfd):
    def run(*argv, program=None):
        if program is not None:
            (folder / "train.py").write_text(program)
            argv = (*argv, "--", sys.executable, "train.py")
        code = cli.main(["run", "--local", *argv])
        out, err = capfd.readouterr()
        return code, out.splitlines(), err

    return run


TELL = """
import json, os
config = json.loads(os.environ["TF_CONFIG"])
print(json.dumps({
    "task": config["task"],
    "roles": {role: len(found) for role, found in config["cluster"].items()},
    "job": os.environ["TFADMIT_JOB"], "attempt": os.environ["TFADMIT_ATTEMPT"],
    "cwd": os.getcwd(), "model": os.environ["TFADMIT_MODEL_DIR"],
}))
"""


def told(lines):
    found = {}
    for line in lines:
        name, _, text = line.partition(" | ")
        found[name.strip()] = json.loads(text)
    return found


def test_one_task_by_default(local, folder):
    code, out, err = local("--name", "mine", program=TELL)
    assert code == 0, err
    place = folder / ".tfadmit/mine/worker-0"
    assert told(out) == {
        "worker-0": {
            "task": {"type": "worker", "index": 0}, "roles": {"worker": 1}, "job": "mine",
            "attempt": "0", "cwd": str(place / "code"), "model": str(place / "output/model"),
        }
    }  # fmt: skip
    assert f"mine: succeeded; results are in {place}/output" in err


def test_row_3_every_role_has_its_process_and_knows_the_others(local):
    code, out, err = local("--workers", "2", "--ps", "1", "--evaluator", program=TELL)
    assert code == 0, err
    found = told(out)
    assert sorted(found) == ["chief-0", "evaluator-0", "ps-0", "worker-0", "worker-1"]
    members = {"chief": 1, "worker": 2, "ps": 1}
    for name, item in found.items():
        role, index = name.split("-")
        assert item["task"] == {"type": role, "index": int(index)}
        assert item["roles"] == members | ({"evaluator": 1} if role == "evaluator" else {})


def test_the_code_is_a_copy_so_that_what_is_missing_is_missed_here(local, folder):
    (folder / ".gitignore").write_text("local.cfg\n")
    (folder / "local.cfg").write_text("x")
    code, _, err = local("--name", "mine", program="open('local.cfg')\n")
    assert code == 1
    assert "mine: failed: worker-0 exit 1: FileNotFoundError" in err


def test_results_and_logs_lie_where_it_says(local, folder):
    program = "import os; open(os.environ['SM_MODEL_DIR'] + '/m', 'w').write('x'); print('hello')\n"
    assert local("--name", "mine", program=program)[0] == 0
    output = folder / ".tfadmit/mine/worker-0/output"
    assert (output / "model/m").read_text() == "x"
    assert "hello\n" in (output / "logs/worker-0.log").read_text()
    assert (folder / ".tfadmit/.gitignore").read_text() == "*\n"


def test_standard_error_goes_to_standard_error_with_its_task(local):
    code, out, err = local(program="import sys; print('a'); print('b', file=sys.stderr)\n")
    assert (code, out) == (0, ["worker-0 | a"])
    assert "worker-0 | b\n" in err


FAILS = """
import os, sys, time
if os.environ["TF_TASK_INDEX"] == "1":
    raise ValueError("shapes differ")
time.sleep(600)
"""


def test_the_first_failure_ends_the_others_and_is_told(local):
    code, _, err = local("--name", "mine", "--workers", "3", program=FAILS)
    assert code == 1
    assert "mine: failed: worker-1 exit 1: ValueError: shapes differ" in err


SERVES = """
import os, time
if os.environ["TF_TASK_TYPE"] == "ps":
    time.sleep(600)
"""


def test_row_3_parameter_servers_end_with_the_chief(local):
    assert local("--ps", "2", program=SERVES)[0] == 0


STAYS = """
import os, subprocess, sys, time, pathlib
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
here = pathlib.Path(os.environ["TFADMIT_MODEL_DIR"])
(here / "pids").write_text(f"{os.getpid()} {child.pid}")
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_all_tasks_and_what_they_have_started(folder, number, code):
    """Ctrl-C, a kill, a terminal that is closed: nothing of a training stays behind."""
    (folder / "train.py").write_text(STAYS)
    process = subprocess.Popen(
        [sys.executable, "-m", "tfadmit_client", "run", "--local", "--name", "mine", "--workers",
         "2", "--", sys.executable, "train.py"],
        env={**os.environ, "PYTHONPATH": PATHS}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    files = [folder / f".tfadmit/mine/worker-{at}/output/model/pids" for at in range(2)]
    try:
        deadline = time.monotonic() + 60
        assert process.poll() is None
        while not all(file.exists() and " " in file.read_text() for file in files):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == code
    assert "mine: interrupted, all tasks have ended" in err
    pids = [int(pid) for file in files for pid in file.read_text().split()]
    assert len(pids) == 4
    assert not [pid for pid in pids if is_alive(pid)]


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_row_7_a_folder_is_an_input(local, folder, tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    (data / "x.txt").write_text("42")
    program = "import os; print(open(os.environ['TFADMIT_DATA_TRAIN'] + '/x.txt').read())\n"
    code, out, err = local("--data", f"train=file://{data}", program=program)
    assert (code, out) == (0, ["worker-0 | 42"]), err


def test_a_file_of_options_for_the_cluster_serves_here_too(local, folder):
    (folder / "run.yaml").write_text("workers: 2\nqueue: team\nimage: registry.example.com/x:1\n")
    code, out, err = local("-f", "run.yaml", program=TELL)
    assert code == 0, err
    assert sorted(told(out)) == ["worker-0", "worker-1"]


def test_what_a_file_says_arrives_as_it_is_written(local, folder):
    """YAML knows numbers, and knows a bit and a rate by other names than a program does."""
    (folder / "train.py").write_text(
        "import os, sys; print(sys.argv[1:], os.environ['ZIP'], os.environ['V'], os.environ['N'])\n"
    )
    (folder / "run.yaml").write_text(
        f"command: [{sys.executable}, train.py, 1e-5, 0x10, 1_000, -0.50, 12:30]\n"
        "env: {ZIP: 00123, V: 1.10, N: 3}\n"
        "chief: true\n"
        "patch: {nodeSelector: {a: b}, tolerations: [{tolerationSeconds: 300}]}\n"
    )
    code, out, err = local("-f", "run.yaml")
    assert code == 0, err
    assert "chief-0  | ['1e-5', '0x10', '1_000', '-0.50', '12:30'] 00123 1.10 3" in out


def test_a_patch_in_a_file_keeps_its_numbers(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("workers: 2\npatch: {tolerations: [{tolerationSeconds: 300}]}\n")
    words = run_options.parse(["-f", str(file), "--", "true"], prog="tfadmit run")
    assert words.said.workers == "2"
    assert words.said.patch == {"tolerations": [{"tolerationSeconds": 300}]}


@pytest.mark.parametrize("path", ["link/train.py", "link/../real/train.py", "real/one.py"])
def test_a_program_is_found_through_links_of_the_folder(local, folder, path):
    (folder / "real").mkdir()
    (folder / "real/train.py").write_text("print('found')\n")
    (folder / "real/one.py").symlink_to("../link/train.py")
    (folder / "link").symlink_to("real")
    code, out, err = local("--", sys.executable, path)
    assert (code, out) == (0, ["worker-0 | found"]), err


def test_a_script_with_the_line_ends_of_windows_is_warned_of(local, folder):
    script = folder / "run.sh"
    script.write_bytes(b"#!/bin/sh\r\nexit 0\r\n")
    script.chmod(0o755)
    code, _, err = local(program="print(1)")
    assert code == 0
    assert err.startswith("warning: run.sh: the lines end as on Windows, and Linux looks for ")


def test_a_name_that_was_used_is_refused(local, folder):
    assert local("--name", "mine", program="")[0] == 2  # an empty file is no program
    assert local("--name", "mine", program="pass")[0] == 0
    code, _, err = local("--name", "mine", program="pass")
    assert code == 2
    assert "is there from an earlier run; choose another name" in err


def test_a_folder_that_cannot_be_made_is_told_with_what_it_is_for(local, folder):
    (folder / ".tfadmit").write_text("")
    code, _, err = local("--name", "mine", program="pass")
    assert code == 2
    assert err == (
        f"tfadmit run: error: {folder}/.tfadmit/mine: Not a directory; --local keeps all that it "
        "makes in .tfadmit of the current folder: change to one where you may write\n"
    )


@pytest.mark.parametrize("files", [32, 60], ids=["ports", "processes"])
def test_more_tasks_than_the_machine_lets_start_are_a_sentence(folder, files):
    (folder / "train.py").write_text("import time; time.sleep(600)\n")
    command = (
        'ulimit -n "$1" && exec "$0" -m tfadmit_client run --local --workers 40 -- "$0" train.py'
    )
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, str(files)],
        env={**os.environ, "PYTHONPATH": PATHS}, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == (
        "tfadmit run: error: 40 tasks cannot be started on this machine: Too many open files; ask "
        "for fewer, as with --workers 2, or raise the limits of your shell (ulimit -n, ulimit -u)"
    )


def test_a_training_goes_on_where_its_output_cannot_be_printed(folder):
    (folder / "train.py").write_text("print('a', flush=True); print('b'); open('done', 'w')\n")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "tfadmit_client", "run", "--local", "--name", "mine", "--",
             sys.executable, "train.py"],
            env={**os.environ, "PYTHONPATH": PATHS}, stdout=full, stderr=subprocess.PIPE,
            text=True, check=False,
        )  # fmt: skip
    place = folder / ".tfadmit/mine"
    told = [line for line in done.stderr.splitlines() if "cannot be printed" in line]
    assert told == [
        f"the output cannot be printed (No space left on device); the tasks go on, and their logs are in {place}/*/output/logs"  # noqa: E501
    ]
    assert "Traceback" not in done.stderr
    assert (place / "worker-0/code/done").exists()
    assert "a\nb\n" in (place / "worker-0/output/logs/worker-0.log").read_text()


def test_a_program_of_the_machine_needs_no_code(local, folder):
    code, out, _ = local("--code", "none", "--", "pwd")
    assert (code, out) == (0, [f"worker-0 | {folder}"])
