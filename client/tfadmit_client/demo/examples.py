"""Where the example manifests are: in the repository's deploy/, else the copies in this package.

The copies let `tfadmit demo` run where only the wheel is installed; a test holds them equal to
deploy/. Knows paths, reads nothing.
"""

from pathlib import Path

RUNTIME = "runtimes/tensorflow-distributed.yaml"
INFINIBAND = "runtimes/tensorflow-distributed-infiniband.yaml"
TRAINJOB = "examples/trainjob-smallest.yaml"
REFUSED = "examples/runtime-refused.yaml"
ALL = (RUNTIME, INFINIBAND, TRAINJOB, REFUSED)

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
COPIES = Path(__file__).resolve().parent / "example_files"


def path(name: str) -> Path:
    """Give the file with this name below deploy/."""
    original = DEPLOY / name
    return original if original.is_file() else COPIES / Path(name).name


def shown(name: str) -> str:
    """Give the path as a reader can use it: short below the current directory."""
    found = path(name)
    try:
        return str(found.relative_to(Path.cwd()))
    except ValueError:
        return str(found)
