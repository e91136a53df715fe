"""Every mistake of a user of `tfadmit run` has its sentence, with the way out, and exit code 2.

Row 12 of the table by which the client is judged. What only a cluster can know (a runtime, a
Secret, a queue that is not there, a name that is taken) is in tests/cluster/test_run.py.
"""

import socket

import pytest

from tfadmit_client import cli

PROGRAM = ("--", "python", "train.py")

# What is said before the program (or the whole line, where it has its own), and part of the answer.
MISTAKES = {
    "no program": (["--"], "tfadmit run -- python train.py"),
    "no hyphens": (["python", "train.py"], "write two hyphens before the program"),
    "unknown option": (["--gpus", "1", *PROGRAM], "there is no option --gpus"),
    "name with capitals": (["--name", "MNIST_1", *PROGRAM], "as in --name mnist-1"),
    "name with a digit first": (["--name", "1st", *PROGRAM], "as in --name st"),
    "name of 70": (["--name", "a" * 70, *PROGRAM], "at most 63"),
    "no number of workers": (["--workers", "two", *PROGRAM], "--workers two: write a number"),
    "zero workers": (["--workers", "0", *PROGRAM], "write a number from 1"),
    "a fraction of a ps": (["--ps", "1.5", *PROGRAM], "--ps 1.5: write a number from 0"),
    "cpu with a unit": (["--cpu", "4cores", *PROGRAM], "as in --cpu 4 or 500m"),
    "no cpu": (["--cpu", "0", *PROGRAM], "--cpu 0: write a number of cores"),
    "memory without a unit": (
        ["--memory", "16", *PROGRAM],
        "16 bytes; write a unit, as in --memory 16Gi",
    ),
    "memory in GB": (["--memory", "16GB", *PROGRAM], "as in --memory 16Gi"),
    "memory in thousandths": (["--memory", "512m", *PROGRAM], "a thousandth of a byte"),
    "half a GPU": (["--gpu", "0.5", *PROGRAM], "a whole number of GPUs, as in --gpu 1"),
    "GPU of a wrong resource": (["--gpu", "A100=1", *PROGRAM], "'A100' is no resource of nodes"),
    "type of GPU with spaces": (
        ["--gpu-type", "A 100", *PROGRAM],
        "kubectl get nodes -L nvidia.com/gpu.product",
    ),
    "image with capitals": (
        ["--image", "Team/Image:1", *PROGRAM],
        "has no spaces and small letters",
    ),
    "deadline without a unit": (["--deadline", "90", *PROGRAM], "as in --deadline 90m"),
    "deadline of nothing": (["--deadline", "0s", *PROGRAM], "write a duration with its units"),
    "variable that is not set": (
        ["--env", "NOT_SET_HERE", *PROGRAM],
        "write --env NOT_SET_HERE=VALUE",
    ),
    "variable of a wrong name": (["--env", "A B=1", *PROGRAM], "'A B' is no name of a variable"),
    "variable of ours": (
        ["--env", "TFADMIT_CODE_SHA256=x", *PROGRAM],
        "--env TFADMIT_CODE_SHA256: tfadmit itself sets it in each pod; leave it out",
    ),
    "place of ours": (["--env", "TFADMIT_WORKSPACE=/x", *PROGRAM], "leave it out"),
    "time of a save in words": (
        ["--env", "TFADMIT_SAVE_TIMEOUT=10m", *PROGRAM],
        "10m: it is how many seconds a save may take; write a number, as in --env TFADMIT_SAVE_TI",
    ),
    "time of a save without end": (["--env", "TFADMIT_SAVE_TIMEOUT=inf", *PROGRAM], "a number, as"),
    "variable twice": (["--env", "A=1", "--env", "A=2", *PROGRAM], "two of the variable 'A'"),
    "secret without a key": (["--env", "A=secret:hub", *PROGRAM], "A=secret:NAME/KEY"),
    "password as a value": (
        ["--env", "DB_PASSWORD=x", *PROGRAM],
        "DB_PASSWORD=secret:NAME/DB_PASSWORD",
    ),
    "data without a scheme": (
        ["--data", "train=./data", *PROGRAM],
        "is no address of data",
    ),
    "data with a password": (
        ["--data", "s3://key:hidden@bucket/x", *PROGRAM],
        "carries a user or password",
    ),
    "data twice": (
        ["--data", "s3://bucket/x", "--data", "s3://bucket/y", *PROGRAM],
        "two of the input 'data'",
    ),
    "output over http": (
        ["--output", "https://example.com/x", *PROGRAM],
        "results cannot be saved by https",
    ),
    "code that is not there": (["--code", "nowhere", *PROGRAM], "there is no such folder"),
    "code that is a file": (["--code", "train.py", *PROGRAM], "is no folder"),
    "code without files": (["--code", "empty", *PROGRAM], "there is nothing in it"),
    "program that is not in the code": (
        ["--", "python", "tran.py"],
        "tran.py: it is not in --code .",
    ),
    "program in another folder": (["--", "python", "main.py"], "but sub/main.py is: write that"),
    "program that is ignored": (["--", "python", "ignored/x.py"], "`!ignored` in .tfadmitignore"),
    "script that is not executable": (["--", "./plain.sh"], "chmod +x plain.sh"),
    "folder as a program": (["--", "./sub"], "./sub is a folder: name the program in it"),
    "link to what is not executable": (["--", "./link"], "./link is not executable"),
    "link that leads round": (["--", "./round"], "./round is a link that leads to itself"),
    "namespace that is a path": (["-n", "a/../b", *PROGRAM], "'a/../b' is no name of a namespace"),
    "empty namespace": (["-n", "", *PROGRAM], "it is empty; leave it out"),
    "job to repeat that is a path": (["--from", "a/b", *PROGRAM], "'a/b' is no name of a TrainJob"),
    "no job to repeat": (["--from", "", *PROGRAM], "'' is no name of a TrainJob"),
    "link out of the code": (
        ["--code", "linked", *PROGRAM],
        "leads out of the folder, to /etc/passwd",
    ),
    "arguments over 64 KiB": (
        ["--", "python", "train.py", "x" * 65_536],
        "have 65,552 bytes, and a job carries 65,536: put them into a file",
    ),
    "argument that is no text": (["--", "python", "train.py", "\udcff"], "is not UTF-8"),
    "file that is not there": (["-f", "none.yaml", *PROGRAM], "-f none.yaml: cannot be read"),
    "file with an unknown option": (
        ["-f", "unknown.yaml", *PROGRAM],
        "there is no option 'worker'",
    ),
    "file that is no mapping": (["-f", "list.yaml", *PROGRAM], "must be one YAML mapping"),
    "file that is no YAML": (["-f", "broken.yaml", *PROGRAM], "-f broken.yaml:2: "),
    "file with a number for a text": (["-f", "memory.yaml", *PROGRAM], "16 bytes"),
    "command as a text in a file": (["-f", "command.yaml"], "`command: [python, train.py]`"),
    "yes for a text in a file": (["-f", "yes.yaml", *PROGRAM], "`env: Y` is a yes or no to YAML"),
    "a mapping for a text in a file": (["-f", "map.yaml", *PROGRAM], "`name` has a mapping: write"),
    "patch of an unknown field": (
        ["--patch", "patch.yaml", *PROGRAM],
        "no 'hostNetwork' of a pod's spec",
    ),
    "patch with env": (["--patch", "env.yaml", *PROGRAM], "write --env NAME=VALUE"),
    "patch of our volume": (
        ["--patch", "volume.yaml", *PROGRAM],
        "--patch: a volume tfadmit-code is tfadmit's own: take another name",
    ),
    "patch of a command": (["--patch", "image.yaml", *PROGRAM], "no 'image' of a container"),
    "spread and pack": (["--spread", "--pack", *PROGRAM], "not allowed with argument"),
    "queue of a wrong name": (["--queue", "Team A", *PROGRAM], "no object can have that name"),
    "local and a queue": (
        ["--local", "--queue", "q", *PROGRAM],
        "--queue: it means nothing with --local",
    ),
    "local and detached": (["--local", "-d", *PROGRAM], "-d means nothing with --local"),
    "local and a secret": (
        ["--local", "--env", "A=secret:n/k", *PROGRAM],
        "with --local there is no Secret",
    ),
    "local and a bucket": (
        ["--local", "--data", "s3://bucket/x", *PROGRAM],
        "as in --data data=file:///path",
    ),
    "local data that is not there": (
        ["--local", "--data", "file:///nowhere/x", *PROGRAM],
        "there is no /nowhere/x on this machine",
    ),
    "no kubeconfig": ([*PROGRAM], "there is no such kubeconfig: name one with --kubeconfig FILE"),
}
FILES = {
    "yes.yaml": "env: {Y: yes}\n", "map.yaml": "name: {a: b}\n",
    "train.py": "", "sub/main.py": "", "ignored/x.py": "", "plain.sh": "#!/bin/sh\n",
    ".gitignore": "ignored\nempty\nlinked\n*.yaml\n", "empty/.gitignore": "*\n",
    "unknown.yaml": "worker: 4\n", "list.yaml": "- workers\n", "broken.yaml": "a: [\n",
    "memory.yaml": "memory: 16\n", "command.yaml": "command: python train.py\n",
    "volume.yaml": "volumes: [{name: tfadmit-code, emptyDir: {}}]\n",
    "patch.yaml": "hostNetwork: true\n",
    "env.yaml": "containers: [{name: node, env: [{name: A, value: b}]}]\n",
    "image.yaml": "containers: [{name: node, image: x}]\n",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (tmp_path / "train.py").write_text("pass\n")
    (tmp_path / "link").symlink_to("plain.sh")
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "passwd").symlink_to("/etc/passwd")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "no-kubeconfig"))
    return tmp_path


def test_there_are_at_least_25_mistakes():
    assert len(MISTAKES) >= 25


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_has_its_sentence_and_exit_code_2(folder, capsys, case):
    argv, sentence = MISTAKES[case]
    code = cli.main(["run", *argv])
    out, err = capsys.readouterr()
    assert (code, out) == (2, ""), err
    assert sentence in err
    assert "Traceback" not in err
    assert "hidden" not in err
    assert not (folder / ".tfadmit").exists()


def test_all_mistakes_are_told_at_once(folder, capsys):
    argv = ["--memory", "1", "--gpu", "x", "--deadline", "soon", *PROGRAM]
    assert cli.main(["run", *argv]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_a_cluster_that_does_not_answer_is_exit_code_3(folder, capsys):
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    (folder / "config").write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        f"clusters: [{{name: a, cluster: {{server: 'https://127.0.0.1:{port}'}}}}]\n"
        "users: [{name: a, user: {token: t}}]\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
    )
    code = cli.main(["run", "--kubeconfig", "config", *PROGRAM])
    assert code == 3
    assert "the API server cannot be reached" in capsys.readouterr().err
