"""What the import contracts cannot say: pure modules use no part of Python that does I/O.

(Import directions and third-party packages are contracts in pyproject.toml, `lint-imports`.)
"""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]
OUTSIDE = {
    "asyncio", "datetime", "http", "io", "logging", "multiprocessing", "os", "pathlib", "random",
    "secrets", "select", "shutil", "signal", "socket", "ssl", "subprocess", "sys", "tempfile",
    "threading", "time", "urllib",
}  # fmt: skip
PURE = [
    *(ROOT / "trainer/tfadmit_trainer").glob("pattern.py"),
    *(ROOT / "trainer/tfadmit_trainer").glob("contract.py"),
    *(ROOT / "trainer/tfadmit_trainer").glob("encoding.py"),
    *(
        ROOT / f"webhook/tfadmit_webhook/{name}.py"
        for name in (
            "cluster", "deadline", "decision", "facts", "handler", "lookup", "mutate", "naming",
            "network",
            "objects_file", "patch", "ratchet", "raw", "review", "settings", "settings_bounds",
            "settings_file", "settings_transfer", "settings_yaml", "storage", "storage_pod",
            "trainjob", "workload",
        )
    ),
    *(ROOT / "webhook/tfadmit_webhook/policy").glob("*.py"),
    *(ROOT / "client/tfadmit_client/migrate").glob("*.py"),
    *(ROOT / "client/tfadmit_client/watch").glob("*.py"),
    *(
        ROOT / f"client/tfadmit_client/{name}.py"
        for name in (
            "jobs/output", "logs/choose", "logs/line", "logs/position", "logs/printing",
            "console/plain", "jobs/show_output",
        )
    ),
    *(
        ROOT / f"client/tfadmit_client/submit/{name}.py"
        for name in (
            "affinity", "asked", "create", "existing", "flags", "objects", "options", "patch_file",
            "plan", "refusals", "resource", "site", "wish", "words",
        )
    ),
    ROOT / "certs/tfadmit_certs/san.py",
    *(
        ROOT / f"transfer/tfadmit_transfer/{name}.py"
        for name in (
            "credentials", "fault", "handover", "inputs", "layout", "manifest", "progress",
            "rhythm", "source", "status", "store_answer",
        )
    ),
]  # fmt: skip


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("path", PURE, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_pure_module_touches_nothing_outside(path):
    assert not set(imported(path)) & OUTSIDE
