"""`tfadmit-run` as a real process: what it becomes, how it ends, and what it leaves behind."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tfadmit_trainer import encoding, options, program, run, termination
from tfadmit_trainer.fault import CommandError
from unit.trainer.outside import task_context

PACKAGE = Path(__file__).parents[3] / "trainer"
# Nothing of the machine's own environment, so that nothing is a cluster by accident.
CLEAN = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE)}
TWO = {
    "TFADMIT_CLUSTER": '{"v":1,"worker":["localhost:12345","127.0.0.1:12346"]}',
    "TF_TASK_TYPE": "worker",
    "TF_TASK_INDEX": "1",
}
NOBODY = {**TWO, "TFADMIT_CLUSTER": '{"worker":["nobody.invalid:1","localhost:1"]}'}


def command(*arguments):
    return [sys.executable, "-m", "tfadmit_trainer", *arguments]


@pytest.fixture
def log(tmp_path):
    return tmp_path / "termination-log"


@pytest.fixture
def tfadmit_run(log):
    def run_it(*arguments, environ=None, **options):
        env = {**CLEAN, "TFADMIT_TERMINATION_LOG": str(log), **(environ or {})}
        return subprocess.run(
            command(*arguments),
            env=env, capture_output=True, text=True, timeout=60, check=False, **options,
        )  # fmt: skip

    return run_it


def _as_in_a_container():
    """No signal is ignored; a shell lets what it starts in the background ignore SIGINT."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def started(log):
    """Starts one in the background, and ends it whatever happens."""
    processes = []

    def start(*arguments, environ=None, **options):
        env = {**CLEAN, "TFADMIT_TERMINATION_LOG": str(log), **(environ or {})}
        process = subprocess.Popen(
            command(*arguments),
            env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            **{"preexec_fn": _as_in_a_container, **options},
        )  # fmt: skip
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


# --- becoming the program ------------------------------------------------------------------------


def test_where_nothing_is_to_do_the_program_runs_at_once_after_one_line(tfadmit_run, log):
    done = tfadmit_run("--", "sh", "-c", "echo $0-$1 ${TF_CONFIG-unset}", "a b", "c")
    assert (done.returncode, done.stdout) == (0, "a b-c unset\n")
    assert done.stderr.count("\n") == 1
    assert "one task alone" in done.stderr
    assert not log.exists()


def test_the_program_gets_its_tf_config_after_all_peers_were_found(tfadmit_run):
    done = tfadmit_run("--", "sh", "-c", "echo $TF_CONFIG", environ=TWO)
    assert json.loads(done.stdout) == {
        "cluster": {"worker": ["localhost:12345", "127.0.0.1:12346"]},
        "task": {"type": "worker", "index": 1},
    }
    assert "all 2 tasks found" in done.stderr


@pytest.mark.parametrize("code", [0, 1, 3, 42, 75, 255])
def test_the_exit_code_is_the_programs_own(tfadmit_run, code, log):
    assert tfadmit_run("--", "sh", "-c", f"exit {code}").returncode == code
    assert not log.exists()


def test_the_program_runs_in_the_same_process_and_group(started):
    process = started("--", "sh", "-c", "echo $$; ps -o pgid= -p $$ 2>/dev/null || true")
    out, _ = process.communicate(timeout=60)
    assert int(out.split()[0]) == process.pid
    code = "import os; print(os.getpid(), os.getpgid(0))"
    process = started("--", sys.executable, "-c", code, start_new_session=True)
    out, _ = process.communicate(timeout=60)
    assert out.split() == [str(process.pid), str(process.pid)]


def test_a_program_that_dies_of_a_signal_dies_of_it(tfadmit_run):
    assert tfadmit_run("--", "sh", "-c", "kill -KILL $$").returncode == -signal.SIGKILL


def test_a_signal_reaches_the_program_itself(started):
    code = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'saved\\n'), sys.exit(7)))\n"
        "print('ready', flush=True)\ntime.sleep(60)\n"
    )
    process = started("--", sys.executable, "-c", code)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (7, "saved\n")


def test_the_program_inherits_no_ignored_signals(tfadmit_run):
    """Python ignores SIGPIPE; `yes | head` under a program that inherits it never ends."""
    done = tfadmit_run("--", "grep", "SigIgn", "/proc/self/status")
    assert int(done.stdout.split()[1], 16) & (1 << signal.SIGPIPE - 1) == 0
    assert int(done.stdout.split()[1], 16) & (1 << signal.SIGXFSZ - 1) == 0


def test_the_program_reads_standard_input_and_keeps_the_working_directory(tfadmit_run, tmp_path):
    done = tfadmit_run("--", "sh", "-c", "cat; pwd", input="hello\n", cwd=tmp_path)
    assert done.stdout == f"hello\n{tmp_path}\n"


@pytest.mark.parametrize("dashes", [["--"], []])
def test_the_dashes_may_be_left_out_and_those_of_the_program_are_kept(tfadmit_run, dashes):
    done = tfadmit_run("-q", *dashes, "sh", "-c", 'echo "$@"', "x", "--", "-q", "--check")
    assert done.stdout == "-- -q --check\n"
    assert done.stderr == ""


def test_more_tasks_than_tf_config_can_carry_still_reach_the_program(tfadmit_run):
    environ = {**TWO, "TFADMIT_CLUSTER": '{"worker":["localhost-{0..9999}.team.example:1"]}'}
    code = (
        "import os; from tfadmit_trainer import setup\n"
        "print('TF_CONFIG' in os.environ, setup().members)"
    )
    done = tfadmit_run("--no-barrier", "--", sys.executable, "-c", code, environ=environ)
    assert done.stdout == "False 10000\n", done.stderr
    assert "over 128 KiB" in done.stderr


def test_what_was_counted_by_dns_is_handed_on_and_not_searched_for_again():
    context = task_context(index=1, source="discovery", worker=("a-node-0-{0..1}.a:1",))
    env = run.environment(context, {"TF_CONFIG": "x", "TF_NUM_WORKERS": "2"})
    assert encoding.task_from(env) == context.task
    assert env["TF_CONFIG"] == "x"


# --- what cannot be run --------------------------------------------------------------------------


def test_a_command_that_is_not_there_gives_127_and_the_reason_to_kubernetes(tfadmit_run, log):
    done = tfadmit_run("--", "no-such-command")
    assert done.returncode == 127
    assert (
        log.read_text()
        == "command 'no-such-command' is not there: is it in the image, and in PATH?"
    )
    assert log.read_text() in done.stderr
    assert "Traceback" not in done.stderr


def script(tmp_path, text, mode=stat.S_IRWXU):
    path = tmp_path / "train"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("text", "mode", "says"),
    [
        ("#!/bin/sh\n", stat.S_IRUSR, "no permission to execute it: chmod +x"),
        ("#!/no/such/python\n", stat.S_IRWXU, "the program in its first line (#!) is not there"),
        ("import tensorflow\n", stat.S_IRWXU, "a script without a first line like #!/bin/sh"),
    ],
)
def test_a_command_that_cannot_be_executed_gives_126(tfadmit_run, tmp_path, log, text, mode, says):
    done = tfadmit_run("--", script(tmp_path, text, mode))
    assert done.returncode == 126
    assert says in log.read_text()


def test_a_directory_is_no_command(tfadmit_run, tmp_path):
    assert tfadmit_run("--", str(tmp_path)).returncode == 126


def test_an_environment_that_is_too_big_is_explained():
    with pytest.raises(CommandError, match="over 128 KiB") as caught:
        program.become(["true"], {**CLEAN, "BIG": "x" * 131_072})
    # the process that goes on writes as before
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    assert caught.value.exit_code == 126


# --- what goes wrong before ----------------------------------------------------------------------


def test_a_broken_environment_gives_2_which_is_not_tried_again(tfadmit_run, log):
    done = tfadmit_run("--", "true", environ={**TWO, "TF_TASK_INDEX": "9"})
    assert done.returncode == 2
    assert "has no worker 9" in log.read_text()


def test_peers_that_do_not_come_give_75_which_is_tried_again(tfadmit_run, log):
    done = tfadmit_run("--barrier-timeout", "0.5", "--", "true", environ=NOBODY)
    assert done.returncode == 75
    assert log.read_text().startswith("worker 0 (1 of 2) not found in ")
    assert "exit code 75" in done.stderr


def test_the_shipped_runtime_starts_all_again_on_75_and_not_on_2_126_127():
    runtime = (PACKAGE.parent / "deploy/runtimes/tensorflow-distributed.yaml").read_text()
    assert "values: [1, 2, 126, 127]" in runtime


def test_the_barrier_can_be_left_out(tfadmit_run):
    assert tfadmit_run("--no-barrier", "--", "true", environ=NOBODY).returncode == 0


def test_its_deadline_can_be_set_by_the_runtime(tfadmit_run):
    environ = {**NOBODY, "TFADMIT_BARRIER_TIMEOUT": "0.5"}
    assert tfadmit_run("--", "true", environ=environ).returncode == 75


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_waiting_with_the_code_of_a_shell(started, number, code):
    process = started("--", "true", environ=NOBODY)
    assert "this is worker 1" in process.stderr.readline()
    time.sleep(0.3)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert f"ended by {signal.Signals(number).name} while starting" in err
    assert "Traceback" not in err


def test_a_signal_that_is_ignored_stays_ignored(started):
    """As under nohup."""
    process = started("--", "true", environ={**NOBODY, "TFADMIT_BARRIER_TIMEOUT": "2"},
                      preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))  # fmt: skip
    assert "this is worker 1" in process.stderr.readline()
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 75, err


def namespaces():
    probe = ["unshare", "--pid", "--fork", "true"]
    return (
        shutil.which("unshare")
        and not subprocess.run(probe, check=False, capture_output=True).returncode
    )


@pytest.mark.skipif(not namespaces(), reason="needs the right to make a PID namespace")
def test_as_process_1_of_a_container_it_still_ends_on_sigterm(log):
    """Linux drops a signal for which process 1 has no handler."""
    process = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", *command("--", "true")],
        env={**CLEAN, **NOBODY, "TFADMIT_TERMINATION_LOG": str(log)},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        try:
            assert process.stderr
            while "this is worker 1" not in (line := process.stderr.readline()):
                assert line
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            os.kill(int(children.split()[0]), signal.SIGTERM)
            assert process.wait(timeout=30) == 143
        finally:
            process.kill()


# --- roles with parameter servers ----------------------------------------------------------------

WITH_PS = {
    "TFADMIT_CLUSTER": json.dumps(
        {"chief": ["localhost:1"], "worker": ["localhost:2"], "ps": ["localhost:3"]}
    ),
    "TF_TASK_INDEX": "0",
}
# In place of the real one, which needs TensorFlow.
SERVER = """
import sys, types
module = types.ModuleType("tfadmit_trainer.server")
def serve(context):
{body}
module.serve = serve
sys.modules["tfadmit_trainer.server"] = module
from tfadmit_trainer import run
sys.exit(run.main(sys.argv[1:]))
"""


def with_server(body, *arguments, role, log):
    return subprocess.run(
        [sys.executable, "-c", SERVER.format(body=body), *arguments],
        env={
            **CLEAN, **WITH_PS, "TF_TASK_TYPE": role, "TFADMIT_TERMINATION_LOG": str(log)
        },
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("role", ["ps", "worker"])
def test_ps_and_worker_serve_and_end_with_the_servers_code(role, log):
    body = "    print('serving', context.role); return 5"
    done = with_server(body, "--server", "--", "echo", "trained", role=role, log=log)
    assert (done.returncode, done.stdout) == (5, f"serving {role}\n")


def test_the_chief_runs_the_command_of_the_same_line(log):
    done = with_server("    return 5", "--server", "--", "echo", "trained", role="chief", log=log)
    assert (done.returncode, done.stdout) == (0, "trained\n")


def test_a_chief_without_a_command_is_told_to_give_one(log):
    done = with_server("    return 5", "--server", role="chief", log=log)
    assert done.returncode == 2
    assert "this is chief 0, which has a program to run" in log.read_text()


def test_a_server_without_tensorflow_is_explained(log):
    body = "    raise ModuleNotFoundError('no', name='tensorflow')"
    done = with_server(body, "--server", role="ps", log=log)
    assert done.returncode == 127
    assert "--server needs TensorFlow" in log.read_text()


# --- the command line ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "no command: tfadmit-run -- python train.py"),
        (["--"], "no command"),
        (["--barrier-timeout", "soon", "--", "true"], "no number of seconds"),
        (["--barrier-timeout", "0", "--", "true"], "above 0"),
        (["--barrier-timeout", "nan", "--", "true"], "above 0"),
        (["-o", "json", "--", "true"], "-o belongs to --check"),
        (["--check", "--", "true"], "--check only looks"),
        (["--barrier", "--", "true"], "unrecognized arguments|no command|error"),
    ],
)
def test_wrong_usage_gives_2_and_a_sentence(capsys, arguments, says):
    with pytest.raises(SystemExit) as caught:
        options.parse(arguments, environ={})
    assert caught.value.code == 2
    assert any(word in capsys.readouterr().err for word in says.split("|"))


def test_a_wrong_deadline_of_the_runtime_names_its_variable(capsys):
    with pytest.raises(SystemExit):
        options.parse(["true"], environ={"TFADMIT_BARRIER_TIMEOUT": "soon"})
    assert "TFADMIT_BARRIER_TIMEOUT: 'soon'" in capsys.readouterr().err


def test_help_and_version_need_nothing(tfadmit_run):
    assert "75   other tasks did not appear in time" in tfadmit_run("--help").stdout
    assert tfadmit_run("--version").stdout.startswith("tfadmit ")


# --- the termination log -------------------------------------------------------------------------


def test_a_long_reason_is_cut_at_4096_bytes_between_characters():
    cut = termination.shortened("é" * 5000)
    assert len(cut) <= 4096
    assert cut.decode().endswith("é …")
    assert termination.shortened("short") == b"short"


def test_a_termination_log_that_cannot_be_written_is_told_and_changes_no_code(tfadmit_run):
    done = tfadmit_run("--", "no-such", environ={"TFADMIT_TERMINATION_LOG": "/no/such/dir/log"})
    assert done.returncode == 127
    assert "could not be written to /no/such/dir/log" in done.stderr


def test_outside_of_a_pod_no_file_is_made_in_dev():
    assert termination.write("reason", environ={}) is None
    assert not Path("/dev/termination-log").exists()
