"""The launcher as a real process: the archive of one file that pods get, with nothing beside it."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tfadmit_client.submit import launcher_zip, pack
from tfadmit_trainer.launcher import reason

PYTHONS = ["python3.10", "python3.11", "python3.12", "python3.13"]


@pytest.fixture(scope="session")
def pyz(tmp_path_factory):
    path = tmp_path_factory.mktemp("launcher") / "launcher.pyz"
    path.write_bytes(launcher_zip.build())
    return path


@pytest.fixture
def place(tmp_path):
    (tmp_path / "workspace").mkdir()
    return tmp_path


@pytest.fixture
def environ(place):
    """As in a pod, at other paths; nothing of this machine's own environment."""
    return {
        "PATH": os.environ["PATH"],
        "TFADMIT_WORKSPACE": str(place / "workspace"),
        "TFADMIT_TERMINATION_LOG": str(place / "termination-log"),
        "TF_TASK_TYPE": "worker", "TF_TASK_INDEX": "0",
        "TFADMIT_CLUSTER": '{"worker":["127.0.0.1:1"]}',
    }  # fmt: skip


@pytest.fixture
def started(pyz, environ):
    processes = []

    def start(*command, python=sys.executable, **more):
        process = subprocess.Popen(
            # -I: neither the user's packages nor the folder; -S: not even the interpreter's own
            [python, "-IS", str(pyz), "--", *command],
            env={**environ, **more}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def launched(started):
    def launch(*command, **more):
        process = started(*command, **more)
        out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    return launch


def ended(place):
    return json.loads((place / "workspace/.tfadmit/ended.json").read_text())


def log(place, name="worker-0"):
    return (place / f"workspace/output/logs/{name}.log").read_bytes()


def why(place):
    path = place / "termination-log"
    return path.read_text() if path.exists() else ""


def script(text):
    return (sys.executable, "-c", text)


def wait_for(path, *, seconds=30):
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.02)


# --- the program ---------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 3, 75, 255])
def test_the_exit_code_is_the_programs(launched, place, code):
    assert launched("sh", "-c", f"exit {code}")[0] == code
    assert ended(place) == {"version": 1, "attempt": 0, "code": code, "signal": None}


def test_a_program_that_is_killed_ends_as_a_shell_counts(launched, place):
    code, _, _ = launched("sh", "-c", "kill -9 $$", TFADMIT_ATTEMPT="2")
    assert code == 137
    assert ended(place) == {"version": 1, "attempt": 2, "code": 137, "signal": 9}
    assert why(place) == "ended by SIGKILL, as when memory runs out"


def test_arguments_are_no_shells(launched):
    words = ["$HOME", "`x`", "\\", "a b", "", "*", "✓", "--", "-q"]
    text = "import json, sys; print(json.dumps(sys.argv[1:]))"
    code, out, _ = launched(*script(text), *words)
    assert (code, json.loads(out)) == (0, words)


@pytest.mark.parametrize("name", PYTHONS)
def test_row_4_python3_alone_is_enough(launched, place, environ, name):
    python = interpreter(name)
    top = place / "code"
    (top / "pkg").mkdir(parents=True)
    (top / "train.py").write_text(
        "import os, pkg.model, tfadmit_trainer\n"
        "print(pkg.model.TEXT, os.path.basename(os.getcwd()))\n"
        "print(tfadmit_trainer.setup().role)\n"
    )
    (top / "pkg" / "model.py").write_text("TEXT = '$HOME `x` \\\\'\n")
    content = pack.pack(str(top)).content
    (place / "code.tgz").write_bytes(content)
    code, out, err = launched(
        python, "-S", "train.py", python=python,
        TFADMIT_CODE_MOUNT=str(place), TFADMIT_CODE_SHA256=hashlib.sha256(content).hexdigest(),
    )  # fmt: skip
    assert (code, out.decode()) == (0, "$HOME `x` \\ code\nworker\n"), err


def test_the_program_finds_its_folders(launched, place):
    text = (
        "import os; [print(k, v) for k, v in os.environ.items() if k[:3] in ('TFA', 'SM_', 'AIP')]"
    )
    (place / "workspace/dataset/train-2").mkdir(parents=True)
    code, out, _ = launched(*script(text), TFADMIT_INPUTS="train-2")
    found = dict(line.split(" ", 1) for line in out.decode().splitlines())
    root = place / "workspace"
    assert code == 0
    for name, path in {
        "TFADMIT_DATA_DIR": "dataset", "TFADMIT_DATA_TRAIN_2": "dataset/train-2",
        "SM_CHANNEL_TRAIN_2": "dataset/train-2", "TFADMIT_MODEL_DIR": "output/model",
        "SM_MODEL_DIR": "output/model", "AIP_MODEL_DIR": "output/model",
        "TFADMIT_CHECKPOINT_DIR": "output/checkpoints", "AIP_CHECKPOINT_DIR": "output/checkpoints",
        "TFADMIT_LOG_DIR": "output/logs", "AIP_TENSORBOARD_LOG_DIR": "output/logs",
    }.items():  # fmt: skip
        assert found[name] == str(root / path), name
    for name in ("model", "checkpoints", "logs"):
        assert (root / "output" / name).is_dir()


def test_a_users_variable_wins(launched):
    code, out, _ = launched("sh", "-c", "echo $AIP_MODEL_DIR", AIP_MODEL_DIR="gs://mine")
    assert (code, out) == (0, b"gs://mine\n")


def test_without_a_workspace_it_changes_nothing(launched, environ, place):
    del environ["TFADMIT_WORKSPACE"]
    assert not Path("/workspace").exists()
    code, out, _ = launched(*script("import os; print('AIP_MODEL_DIR' in os.environ)"))
    assert (code, out) == (0, b"False\n")
    assert list((place / "workspace").iterdir()) == []


# --- what it prints ------------------------------------------------------------------------------


def test_both_streams_are_passed_on_and_kept_byte_by_byte(launched, place):
    text = (
        "import os\nfor i in range(2000):\n"
        "    os.write(1, b'out %d \\xff\\x00\\n' % i); os.write(2, b'err %d\\n' % i)\n"
        "os.write(1, b'no newline')"
    )
    code, out, err = launched(*script(text))
    assert code == 0
    assert out == b"".join(b"out %d \xff\x00\n" % i for i in range(2000)) + b"no newline"
    lines = log(place).split(b"\n")
    kept = [line for line in lines if line.startswith((b"out", b"no"))]
    assert kept == out.split(b"\n")
    assert [line for line in lines if line.startswith(b"err")] == [
        line for line in err.splitlines() if line.startswith(b"err")
    ]


def test_a_reason_is_found_after_megabytes_of_output(launched, place):
    text = (
        "import os\nfor i in range(40_000):\n    os.write(2, b'x' * 99 + b'\\n')\n"
        "raise ValueError('at last')"
    )
    code, _, err = launched(*script(text))
    assert (code, err.count(b"x" * 99)) == (1, 40_000)
    assert why(place) == "ValueError: at last"


def test_a_line_is_shown_when_it_is_printed(started):
    process = started(*script("import time; print('now'); time.sleep(60)"))
    assert process.stdout.readline() == b"now\n"


def test_a_progress_bar_reaches_the_log_without_a_newline(started, place):
    started("sh", "-c", "printf 50%%; exec sleep 60")
    path = place / "workspace/output/logs/worker-0.log"
    wait_for(path)
    deadline = time.monotonic() + 30
    while b"50%" not in path.read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_log_that_cannot_be_kept_is_told_and_the_program_runs(launched, place):
    (place / "workspace/output").write_text("in the way")
    code, out, err = launched("echo", "hello", TFADMIT_OUTPUT_DIR=str(place / "elsewhere"))
    assert (code, out) == (0, b"hello\n")
    assert b"the log is not kept in a file" in err


def test_what_a_program_leaves_behind_does_not_hold_it_up(launched):
    before = time.monotonic()
    code, _, _ = launched("sh", "-c", "sleep 50 & exit 4")
    assert code == 4
    assert time.monotonic() - before < 40


# --- signals -------------------------------------------------------------------------------------

HANDLES = """
import signal, sys, time, pathlib
def handle(number, frame):
    print("saved", flush=True)
    sys.exit(5)
signal.signal(signal.{name}, handle)
pathlib.Path({ready!r}).touch()
time.sleep(60)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR1"])
def test_a_signal_reaches_the_program_which_has_the_last_word(started, place, name):
    ready = place / "ready"
    process = started(*script(HANDLES.format(name=name, ready=str(ready))))
    wait_for(ready)
    process.send_signal(getattr(signal, name))
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (5, b"saved\n")
    assert ended(place)["code"] == 5


def test_a_program_without_a_handler_ends_by_the_signal(started, place):
    ready = place / "ready"
    process = started("sh", "-c", f"touch {ready}; exec sleep 60")
    wait_for(ready)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert ended(place) == {"version": 1, "attempt": 0, "code": 143, "signal": 15}


def test_a_signal_while_it_waits_for_others_ends_it(started, place, environ):
    environ["TFADMIT_CLUSTER"] = '{"worker":["127.0.0.1:1","nobody.invalid:1"]}'
    process = started("echo", "never")
    while b"waiting for" not in (line := process.stderr.readline()):
        assert line
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (143, b"")


@pytest.mark.skipif(not shutil.which("unshare"), reason="unshare is not there")
def test_as_process_1_it_collects_orphans_and_takes_signals(pyz, environ, place):
    """In a PID namespace, where Linux ignores signals without a handler."""
    orphan = "sh -c 'sh -c \"exit 0\" & exit 0'; sleep 1"
    count = "grep -l 'State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l"
    command = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable]
    done = subprocess.run(
        [*command, str(pyz), "--", "sh", "-c", f"{orphan}; {count}"],
        env=environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "Operation not permitted" in done.stderr:
        pytest.skip("no right to make a PID namespace")
    assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr


# --- why it failed -------------------------------------------------------------------------------


def test_the_last_line_of_the_traceback_is_the_reason(launched, place):
    text = "try:\n  1/0\nexcept Exception as e:\n  raise ValueError('shapes differ') from e"
    assert launched(*script(text))[0] == 1
    assert why(place) == "ValueError: shapes differ"


def test_a_success_leaves_no_reason(launched, place):
    launched(*script("import sys; print('Traceback (most recent call last):', file=sys.stderr)"))
    assert why(place) == ""


def test_a_reason_that_is_there_stays(launched, place, environ):
    environ["TFADMIT_CLUSTER"] = "broken"
    code, _, _ = launched("echo", "never")
    assert code == 2
    assert "TFADMIT_CLUSTER" in why(place)
    assert ended(place)["code"] == 2


def test_a_program_that_is_not_there_is_127(launched, place):
    code, _, err = launched("no-such-program")
    assert code == 127
    assert "is not there: is it in the image" in why(place)
    assert b"Traceback" not in err


GROUP = """\
  + Exception Group Traceback (most recent call last):
  |   File "x", line 1, in <module>
  | ExceptionGroup: several (2 sub-exceptions)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "x", line 1, in f
    | E: a
    +---------------- 2 ----------------
    | E: b
    +------------------------------------
"""


@pytest.mark.parametrize(
    ("errors", "output", "expected"),
    [
        (b"Traceback (most recent call last):\n  File\nKeyError: 'a'\n", b"", "KeyError: 'a'"),
        (b"Traceback (most recent call last):\n  File\nE: a\nb\nW0 later\n", b"", "E: a"),
        (b"", b"Traceback (most recent call last):\n  File\nE: in output\n", "E: in output"),
        (b"first\nout of luck\n\n", b"", "out of luck"),
        (b"", b"50%\r100%\n", "100%"),
        (b"", b"", "exit code 3, and nothing was printed"),
        (GROUP.encode(), b"", "ExceptionGroup: several (2 sub-exceptions), the first: E: a"),
        (b"[tfadmit] this is worker 0\n", b"", "exit code 3, and nothing was printed"),
        (b"[tfadmit] this is worker 0\n", b"bye\n", "bye"),
        (b"\xff\xfe broken\n", b"", "�� broken"),
    ],
)
def test_a_reason_is_found_in_what_was_printed(errors, output, expected):
    assert reason.of(3, number=None, errors=errors, output=output) == expected


# --- code and inputs -----------------------------------------------------------------------------


def test_code_that_is_not_the_jobs_is_exit_code_2(launched, place):
    code, _, err = launched(
        "echo", "never", TFADMIT_CODE_MOUNT=str(place), TFADMIT_CODE_SHA256="0" * 64
    )
    assert code == 2
    assert b"is the ConfigMap of `tfadmit run` there" in err
    assert "is the ConfigMap" in why(place)


def test_an_input_that_was_not_fetched_is_exit_code_2_with_its_address(launched, place):
    control = place / "workspace/.tfadmit"
    control.mkdir()
    (control / "fetched.json").write_text(
        json.dumps({"version": 1, "inputs": [{"name": "train", "uri": "s3://b/train"}]})
    )
    code, _, _ = launched("echo", "never", TFADMIT_INPUTS="train")
    assert code == 2
    assert "the input 'train' (s3://b/train) is not at" in why(place)


def test_a_folder_that_cannot_be_made_is_exit_code_2_in_a_sentence(launched, place):
    (place / "file").write_text("")
    code, _, err = launched("echo", "never", TFADMIT_OUTPUT_DIR=str(place / "file" / "below"))
    assert code == 2
    assert b"a volume that the container's user may write to" in err
    assert b"Traceback" not in err


# --- results -------------------------------------------------------------------------------------

SAVES = {"TFADMIT_OUTPUT_URI": "s3://b/results/mnist"}


def sidecar(place, content):
    """Saves when the program has ended, as the container beside it does."""

    def save():
        wait_for(place / "workspace/.tfadmit/ended.json")
        (place / "workspace/.tfadmit/saved.json").write_text(json.dumps({"version": 1, **content}))

    thread = threading.Thread(target=save)
    thread.start()
    return thread


def test_it_waits_until_the_results_are_saved(launched, place):
    thread = sidecar(place, {"attempt": 0, "ok": True, "message": "saved"})
    assert launched("true", **SAVES)[0] == 0
    thread.join()


def test_results_that_are_not_saved_make_a_success_a_failure_with_74(launched, place):
    thread = sidecar(place, {"attempt": 0, "ok": False, "message": "no bucket 'b'"})
    code, _, err = launched("true", **SAVES)
    thread.join()
    assert code == 74
    assert why(place) == "the results were not saved: no bucket 'b'"
    assert b"no bucket 'b'" in err
    assert b"no bucket 'b'" in log(place)


def test_a_failure_keeps_its_own_code_whatever_the_save(launched, place):
    thread = sidecar(place, {"attempt": 0, "ok": False, "message": "no bucket"})
    assert launched("sh", "-c", "echo broken >&2; exit 3", **SAVES)[0] == 3
    thread.join()
    assert why(place) == "broken"


def test_a_sidecar_that_says_nothing_is_waited_for_in_vain(launched, place):
    assert launched("true", **SAVES, TFADMIT_SAVE_TIMEOUT="0.5")[0] == 74
    assert "nothing was heard of the container that saves within 0.5 s" in why(place)


def test_what_an_earlier_container_has_saved_does_not_count(launched, place):
    control = place / "workspace/.tfadmit"
    control.mkdir()
    (control / "saved.json").write_text('{"version":1,"attempt":0,"ok":true,"message":"old"}')
    assert launched("true", **SAVES, TFADMIT_SAVE_TIMEOUT="0.5")[0] == 74


# --- the file ------------------------------------------------------------------------------------


def test_the_launcher_is_the_same_file_every_time(pyz):
    launcher_zip.build.cache_clear()
    assert launcher_zip.build() == pyz.read_bytes()


def test_launcher_and_the_most_code_fit_into_a_config_map(pyz):
    assert pyz.stat().st_size + 900_000 < 1024 * 1024


def test_an_older_python_is_told_what_it_needs(pyz):
    found = list(Path.home().glob(".pyenv/versions/3.[678].*/bin/python3"))
    if not found:
        pytest.skip("no python older than 3.9 here")
    done = subprocess.run(
        [found[0], str(pyz), "--", "true"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "the launcher needs 3.10 or newer" in done.stderr


def interpreter(name):
    """A python of this version; a shim stands for those that it manages."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed here")
    if subprocess.run([found, "-c", ""], check=False, capture_output=True).returncode == 0:
        return found
    installed = Path(found).parents[1].glob(f"versions/{name.removeprefix('python')}.*/bin/{name}")
    candidates = sorted(map(str, installed))
    if not candidates:
        pytest.skip(f"{found} does not run")
    return candidates[-1]
