"""What `import tfadmit_trainer` gives, and what it does not load."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tfadmit_trainer

PACKAGE = Path(__file__).parents[3] / "trainer"


def python(code, **environ):
    return subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE), **environ},
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout.split()  # fmt: skip


def test_importing_the_package_loads_almost_nothing():
    code = (
        "import sys, time; before = set(sys.modules); begin = time.perf_counter()\n"
        "import tfadmit_trainer\n"
        "print((time.perf_counter() - begin) * 1000, *sorted(set(sys.modules) - before))"
    )
    milliseconds, *modules = python(code)
    print(f"\nimport tfadmit_trainer: {float(milliseconds):.1f} ms, {len(modules)} modules")
    heavy = {"tensorflow", "logging", "dataclasses", "socket", "json", "subprocess", "argparse"}
    assert not heavy & set(modules)


def test_setup_loads_no_tensorflow_and_nothing_from_outside():
    code = (
        "import sys\nfrom tfadmit_trainer import setup, barrier, strategy\nsetup()\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    outside = {"tensorflow", "keras", "numpy", "flask", "kubernetes", "yaml", "cryptography"}
    assert not outside & set(python(code, TF_CONFIG="{}"))


def test_ten_thousand_tasks_are_set_up_in_milliseconds_and_megabytes():
    code = """
import time
from tfadmit_trainer import configure
# Not getrusage: its peak is that of the parent before exec.
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
before, begin = peak(), time.perf_counter()
context = configure.setup()
seconds = time.perf_counter() - begin
begin = time.perf_counter()
addresses = context.addresses("worker")
print(seconds * 1000, (time.perf_counter() - begin) * 1000, peak() - before, len(addresses))
"""
    environ = {
        "TFADMIT_CLUSTER": '{"v":1,"worker":'
        '["mnist-node-0-{0..9999}.mnist.team.svc.cluster.local:12345"]}',
        "TF_TASK_TYPE": "worker",
        "TF_TASK_INDEX": "9999",
    }
    setup, expand, megabytes, count = map(float, python(code, **environ))
    print(
        f"\n10,000 tasks: setup() {setup:.1f} ms, all addresses {expand:.1f} ms, {megabytes:.1f} MB"
    )
    assert count == 10_000


@pytest.mark.parametrize("name", tfadmit_trainer.__all__)
def test_every_public_name_is_there(name):
    assert getattr(tfadmit_trainer, name) is getattr(tfadmit_trainer, name)
    assert name in dir(tfadmit_trainer)


def test_no_public_name_is_the_name_of_a_module():
    """The module, once imported, would take the place of the function."""
    modules = {path.stem for path in (PACKAGE / "tfadmit_trainer").glob("*.py")}
    assert not modules & set(tfadmit_trainer.__all__)


def test_a_module_is_there_by_its_name_and_nonsense_is_not():
    assert tfadmit_trainer.barrier.TIMEOUT_SECONDS == 1800
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = tfadmit_trainer.nonsense
