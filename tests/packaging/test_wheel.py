"""What leaves our hands: the wheel as a training image installs it, without any dependency."""

import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PYTHONS = ["python3.10", "python3.11", "python3.12", "python3.13"]
PACKAGES = {
    "tfadmit_client",
    "tfadmit_certs",
    "tfadmit_connect",
    "tfadmit_trainer",
    "tfadmit_transfer",
    "tfadmit_webhook",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    target = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = target.glob("*.whl")
    return built


def test_the_wheel_installs_our_packages_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == PACKAGES
    for package in PACKAGES:
        assert f"{package}/py.typed" in names


def test_the_wheel_requires_nothing_unless_an_extra_is_asked_for(wheel):
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
    lines = archive.read(metadata).decode().splitlines()
    required = [line for line in lines if line.startswith("Requires-Dist:")]
    assert required
    assert all("; extra == " in line for line in required)
    assert "License-File: LICENSE" in lines


@pytest.mark.parametrize("name", PYTHONS)
def test_the_library_works_in_an_image_that_has_only_python(wheel, name, tmp_path):
    python = interpreter(name)
    check = (
        "import sys, tfadmit_trainer\n"
        "from tfadmit_trainer import contract, encoding\n"
        'cluster = encoding.decode(\'{"worker":["h-{0..1}:1"]}\')\n'
        "task = contract.Task(cluster=cluster, role='worker', index=1)\n"
        "env = encoding.environment(task, max_inline_bytes=9999)\n"
        "assert encoding.task_from(env) == task\n"
        "foreign = {m.partition('.')[0] for m in sys.modules} & "
        "{'flask', 'kubernetes', 'cryptography', 'tensorflow', 'yaml', 'pydantic'}\n"
        "assert not foreign, foreign\n"
    )
    unpacked = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(unpacked)
    # -I: no user site and no environment; -S: not even the interpreter's own site-packages
    code = f"import sys; sys.path.insert(0, {str(unpacked)!r})\n{check}"
    result = subprocess.run(
        [python, "-ISW", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", PYTHONS)
def test_every_module_is_written_for_this_python(wheel, name, tmp_path):
    python = interpreter(name)
    zipfile.ZipFile(wheel).extractall(tmp_path)
    result = subprocess.run(
        [python, "-W", "error", "-m", "compileall", "-q", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr


def interpreter(name: str) -> str:
    """Find a Python of this version; a pyenv shim stands for those that pyenv has installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed here")
    if subprocess.run([found, "-c", ""], check=False, capture_output=True).returncode == 0:
        return found
    version = name.removeprefix("python")
    installed = pathlib.Path(found).parents[1].glob(f"versions/{version}.*/bin/{name}")
    candidates = sorted(map(str, installed))
    if not candidates:
        pytest.skip(f"{found} does not run")
    return candidates[-1]
