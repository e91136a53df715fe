"""`tfadmit-run --check`: each look, each judgement, both forms of output."""

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tfadmit_trainer import check, findings, machine, probes
from tfadmit_trainer.findings import Finding
from tfadmit_trainer.probes import Port, Software
from unit.trainer.outside import UNANSWERED, Outside

PACKAGE = Path(__file__).parents[3] / "trainer"
ENVIRON = {
    "TFADMIT_CLUSTER": '{"worker":["w-{0..2}.job:12345"]}',
    "TF_TASK_TYPE": "worker",
    "TF_TASK_INDEX": "0",
}
ALL = ["w-0.job", "w-1.job", "w-2.job"]
ACTIVE = Port(device="mlx5_0", number="1", state="ACTIVE", rate="200 Gb/sec (4X HDR)")
DOWN = Port(device="mlx5_0", number="1", state="DOWN", rate="10 Gb/sec")


def looks(**changes):
    defaults = {
        "port_error": None, "interfaces": ["lo", "eth0"], "gpus": [], "infiniband": [],
        "software": Software(tensorflow="2.21.0", keras="3.15.1"),
    }  # fmt: skip
    chosen = {**defaults, **changes}
    return machine.Looks(
        port_error=lambda _port: chosen["port_error"],
        **{name: lambda value=chosen[name]: value for name in defaults if name != "port_error"},
    )


def look(environ=None, *, names=ALL, **changes):
    host = Outside().host({**ENVIRON, **(environ or {})}, names=names)
    return list(check.look(host, looks=looks(**changes)))


def lines(found, topic):
    return [(finding.level, finding.text) for finding in found if finding.topic == topic]


def fault(found):
    (finding,) = findings.faults(found)
    return finding


# --- the task and its peers ----------------------------------------------------------------------


def test_all_is_well():
    found = look()
    assert findings.faults(found) == []
    assert lines(found, "task") == [("ok", "worker 0, saves and prints")]
    assert lines(found, "source") == [("ok", "tfadmit")]
    assert lines(found, "cluster") == [("ok", "3 worker: w-{0..2}.job:12345")]
    assert ("ok", "worker 1 w-1.job = 10.0.0.1") in lines(found, "names")
    assert lines(found, "port") == [("ok", "12345 is free")]


def test_a_name_that_is_missing_is_a_fault_with_its_task():
    finding = fault(look(names=["w-0.job", "w-2.job"]))
    assert (finding.topic, finding.text) == ("names", "worker 1 w-1.job: no such name")


def test_name_servers_that_do_not_answer_are_told_apart():
    found = look(names=lambda _: UNANSWERED)
    assert "the name servers did not answer" in findings.faults(found)[0].text


def test_a_large_cluster_is_printed_in_short():
    environ = {"TFADMIT_CLUSTER": '{"worker":["w-{0..999}.job:12345"]}'}
    found = look(environ, names=[f"w-{i}.job" for i in range(500)])
    assert len(lines(found, "names")) == 16 + 20 + 2
    assert ("ok", "and 484 more that resolve") in lines(found, "names")
    assert ("fault", "in all 500: worker 500-999") in lines(found, "names")


def test_a_broken_environment_is_a_fault_and_the_machine_is_still_looked_at():
    found = look({"TF_TASK_INDEX": "9"})
    assert "has no worker 9" in fault(found).text
    assert lines(found, "TensorFlow")


def test_a_port_in_use_is_a_fault():
    finding = fault(look(port_error="Address already in use"))
    assert finding.text.startswith("12345 cannot be used: Address already in use")


def test_a_task_alone_is_noted_because_it_may_not_be_meant():
    found = list(check.look(Outside().host(name="laptop"), looks=looks()))
    assert lines(found, "source") == [("note", "single")]
    assert findings.faults(found) == []


# --- the machine ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "there", "chosen"),
    [
        ("eth", ["lo", "eth0", "eth1", "net1"], ["eth0", "eth1"]),
        ("net,eth1", ["lo", "eth0", "eth1", "net1"], ["eth1", "net1"]),
        ("=eth1", ["eth1", "eth10"], ["eth1"]),
        ("eth1", ["eth1", "eth10"], ["eth1", "eth10"]),
        ("^eth", ["lo", "eth0", "net1"], ["net1"]),
        ("^=eth0", ["lo", "eth0", "eth01"], ["eth01"]),
        ("net", ["lo", "eth0"], []),
    ],
)
def test_interfaces_are_chosen_as_nccl_chooses_them(stated, there, chosen):
    assert machine.chosen_interfaces(stated, there=there) == chosen


def test_an_interface_that_is_not_there_is_a_fault_where_there_are_gpus():
    gpus = {"gpus": ["GPU 0"], "software": Software(tensorflow="2.15.0", keras="2.15.0", gpus=1)}
    environ = {"NCCL_SOCKET_IFNAME": "net"}
    finding = fault(look(environ, **gpus))
    assert (
        "NCCL_SOCKET_IFNAME=net names no interface of this pod, which has lo, eth0" in finding.text
    )
    assert "k8s.v1.cni.cncf.io/networks" in finding.text
    assert findings.faults(look(environ)) == []
    found = look({"NCCL_SOCKET_IFNAME": "eth0", "NCCL_DEBUG": "INFO"}, **gpus)
    assert lines(found, "NCCL") == [
        ("ok", "NCCL_DEBUG=INFO"), ("ok", "NCCL_SOCKET_IFNAME=eth0"), ("ok", "uses eth0")
    ]  # fmt: skip


def test_infiniband_that_is_wanted_and_missing_is_noted_and_one_that_is_down_is_a_fault():
    wanted = {"NCCL_IB_DISABLE": "0"}
    assert lines(look(), "InfiniBand") == [("ok", "none")]
    assert lines(look(wanted), "InfiniBand")[0][0] == "note"
    assert lines(look(wanted, infiniband=[ACTIVE]), "InfiniBand") == [
        ("ok", "mlx5_0 port 1: ACTIVE, 200 Gb/sec (4X HDR)")
    ]
    assert "no port is ACTIVE" in fault(look(wanted, infiniband=[DOWN])).text


@pytest.mark.parametrize(
    ("software", "level", "says"),
    [
        (Software(), "note", "not installed"),
        (Software(error="import tensorflow failed with code -11: boom"), "fault", "boom"),
        (Software(tensorflow="2.21.0", keras="3.15.1"), "fault", "sees 0 GPUs of 1"),
        (Software(tensorflow="2.21.0", keras="3.15.1", gpus=1), "ok", "2.21.0, sees 1 GPUs"),
    ],
)
def test_tensorflow_is_judged_with_the_gpus(software, level, says):
    found = look(gpus=["GPU 0"], software=software)
    ((seen, text),) = lines(found, "TensorFlow")
    assert seen == level
    assert says in text


@pytest.mark.parametrize(
    ("version", "bad"),
    [("2.15.0", False), ("3.0.5", True), ("3.3.2", True), ("3.4.1", True), ("3.5.0", False),
     ("3.10.0", False), ("3.4", True), ("", False)],
)  # fmt: skip
def test_a_keras_that_trains_out_of_sync_is_known(version, bad):
    assert machine.unsynchronised(version) is bad


def test_such_a_keras_is_a_fault_with_more_than_one_worker_only():
    software = Software(tensorflow="2.17.0", keras="3.3.2")
    assert "does not sum gradients" in fault(look(software=software)).text
    alone = {"TFADMIT_CLUSTER": '{"worker":["w-0.job:12345"]}'}
    assert findings.faults(look(alone, software=software)) == []


# --- output --------------------------------------------------------------------------------------

TWO = [Finding(topic="a", text="fine"), Finding(topic="b", text="one\ntwo", level="fault"),
       Finding(topic="b", text="three", level="note")]  # fmt: skip


def test_for_people_a_topic_is_named_once_and_the_verdict_comes_last():
    assert findings.text(TWO) == (
        "  a  fine\n! b  one\n     two\n?    three\nverdict: 1 fault, see the lines with ! (b)"
    )
    assert findings.text(TWO[:1]).endswith("verdict: this task can start")


def test_for_programs_it_is_json():
    document = json.loads(findings.document(TWO))
    assert document["ok"] is False
    assert document["findings"][1] == {"topic": "b", "text": "one\ntwo", "level": "fault"}


@pytest.mark.parametrize(("names", "code"), [(ALL, 0), ([], 1)])
def test_the_exit_code_is_the_verdict(capsys, names, code):
    host = Outside().host(ENVIRON, names=names)
    assert check.main(host, output="json", looks=looks()) == code
    assert json.loads(capsys.readouterr().out)["ok"] is (code == 0)


def test_as_a_real_process_it_looks_at_this_machine():
    done = subprocess.run(
        [sys.executable, "-m", "tfadmit_trainer", "--check", "-o", "json", "-q"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE), "TF_WORKER_PORT": "54321"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    topics = {finding["topic"] for finding in json.loads(done.stdout)["findings"]}
    assert {"task", "source", "cluster", "port", "GPUs", "InfiniBand", "TensorFlow"} <= topics


# --- the looks themselves ------------------------------------------------------------------------


def test_a_port_that_somebody_listens_on_cannot_be_used():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert "in use" in (probes.port_error(port) or "")
    assert probes.port_error(port) is None


def test_the_loopback_is_an_interface():
    assert "lo" in probes.interfaces()


def tree(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def test_gpus_come_from_nvidia_smi(tmp_path):
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'GPU 0: Tesla V100 (UUID: GPU-1)'\necho noise\n")
    smi.chmod(stat.S_IRWXU)
    assert probes.gpus(command=str(smi)) == ["GPU 0: Tesla V100 (UUID: GPU-1)"]


def test_without_it_from_the_driver_and_without_that_from_the_devices(tmp_path):
    tree(tmp_path, {"dev/nvidia0": "", "dev/nvidia1": "", "dev/nvidiactl": ""})
    assert probes.gpus(root=tmp_path, command="no-smi") == ["/dev/nvidia0", "/dev/nvidia1"]
    information = "Model: \t\t Tesla V100-SXM2-32GB\nIRQ: 5\n"
    tree(tmp_path, {"proc/driver/nvidia/gpus/0000:3b:00.0/information": information})
    assert probes.gpus(root=tmp_path, command="no-smi") == ["Tesla V100-SXM2-32GB at 0000:3b:00.0"]


def test_a_machine_without_gpus_and_infiniband_has_none(tmp_path):
    assert probes.gpus(root=tmp_path, command="no-smi") == []
    assert probes.infiniband(root=tmp_path) == []


def test_infiniband_ports_come_with_state_and_rate(tmp_path):
    port = "sys/class/infiniband/mlx5_0/ports/1"
    tree(tmp_path, {f"{port}/state": "4: ACTIVE\n", f"{port}/rate": "200 Gb/sec (4X HDR)\n"})
    assert probes.infiniband(root=tmp_path) == [ACTIVE]


def fake_tensorflow(tmp_path, monkeypatch, text):
    tree(tmp_path, {"tensorflow.py": text, "keras.py": "__version__ = '3.3.2'\n"})
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def test_versions_come_from_a_child_process(tmp_path, monkeypatch):
    fake_tensorflow(tmp_path, monkeypatch, (
        "import types\n__version__ = '2.17.0'\nprint('banner')\n"
        "config = types.SimpleNamespace(list_physical_devices=lambda kind: [1, 2])\n"
    ))  # fmt: skip
    assert probes.software() == Software(tensorflow="2.17.0", keras="3.3.2", gpus=2)


def test_an_import_that_fails_hangs_or_crashes_is_told(tmp_path, monkeypatch):
    fake_tensorflow(tmp_path, monkeypatch, "raise ImportError('libcudart.so.12')\n")
    assert "libcudart.so.12" in probes.software().error
    fake_tensorflow(tmp_path, monkeypatch, "import os, time\nos.kill(os.getpid(), 11)\n")
    assert "code -11" in probes.software().error
    fake_tensorflow(tmp_path, monkeypatch, "import time\ntime.sleep(60)\n")
    assert probes.software(timeout=0.5).error == "import tensorflow took more than 0.5 s"


def test_a_python_without_tensorflow_has_none(tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(stat.S_IRWXU)
    assert probes.software(python=str(bare)) == Software()
    assert "no-python" in probes.software(python="/no-python").error
