"""The tree of a pod's workspace, and the variables by which a program learns of it.

Here is every path below `/workspace` and every file through which launcher, init container and
sidecar speak to each other. Standard library only, no I/O: the launcher, the transfer component,
the webhook and the command line take the names from here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from tfadmit_trainer import context

ROOT: Final = "/workspace"
# The volume below ROOT. The command line adds it to pods of `run`, the webhook to others that ask.
VOLUME: Final = "tfadmit-workspace"
# What is each pod's own also where all pods share what is mounted at ROOT.
PER_POD: Final = ("code", ".tfadmit")
# The ConfigMap with the code and the launcher, read-only, and the keys in it.
CODE_VOLUME: Final = "tfadmit-code"
CODE_MOUNT: Final = "/etc/tfadmit/code"
ARCHIVE: Final = "code.tgz"
LAUNCHER: Final = "launcher.pyz"

# Another place than ROOT. `run --local` sets it, one for each process.
ROOT_ENV: Final = "TFADMIT_WORKSPACE"
# Where the ConfigMap is mounted, if elsewhere than CODE_MOUNT. `run --local` sets it.
CODE_MOUNT_ENV: Final = "TFADMIT_CODE_MOUNT"
# The SHA-256 of the archive, which the launcher demands. The command line sets it.
CODE_SHA256_ENV: Final = "TFADMIT_CODE_SHA256"
# Name of the TrainJob. The command line or the webhook sets it; programs read it.
JOB_ENV: Final = "TFADMIT_JOB"
# Names of the inputs, separated by commas; the launcher demands them. The command line sets it.
INPUTS_ENV: Final = "TFADMIT_INPUTS"
# `<base>/<job>`: there is a sidecar that saves. The launcher waits for it, programs may read it.
OUTPUT_URI_ENV: Final = "TFADMIT_OUTPUT_URI"
# Seconds that the launcher waits for the last save. A runtime may set it.
SAVE_TIMEOUT_ENV: Final = "TFADMIT_SAVE_TIMEOUT"
SAVE_TIMEOUT_SECONDS: Final = 600.0

# The init container and the sidecar, and what only they are told, by the webhook.
FETCH_CONTAINER: Final = "tfadmit-fetch"
SYNC_CONTAINER: Final = "tfadmit-sync"
# The value of the annotation data.
FETCH_ENV: Final = "TFADMIT_FETCH"
# The uid of the JobSet or Job: tells jobs of one name apart.
RUN_ENV: Final = "TFADMIT_RUN"
# "true" for the one task of a job that saves model and checkpoints.
SAVES_ENV: Final = "TFADMIT_SAVES"
# Where the volume is mounted that the results of the job go to, if it is one.
OUTPUT_MOUNT_ENV: Final = "TFADMIT_OUTPUT_MOUNT"

# The name of an input that is given without one, and of the one that is a model to start from.
ONLY_INPUT: Final = "data"
MODEL_INPUT: Final = "model"
# The input that is the code of a job whose archive is too large for a ConfigMap: one file in it.
CODE_INPUT: Final = "tfadmit-code"


@dataclass(frozen=True, kw_only=True)
class Tree:
    """The paths of one workspace."""

    root: str = ROOT

    def _at(self, *names: str) -> str:
        return str(PurePosixPath(self.root, *names))

    @property
    def code(self) -> str:
        """The program's files, and its working directory."""
        return self._at("code")

    def archive(self, sha256: str) -> str:
        """Where an archive of code lies that came as an input."""
        return self._at("dataset", CODE_INPUT, archive_name(sha256))

    @property
    def dataset(self) -> str:
        """Below it, each input under its name."""
        return self._at("dataset")

    @property
    def output(self) -> str:
        """What outlives the pod."""
        return self._at("output")

    @property
    def model(self) -> str:
        """Where the program writes its model."""
        return self._at("output", "model")

    @property
    def checkpoints(self) -> str:
        """Where it writes checkpoints, and finds those of earlier attempts."""
        return self._at("output", "checkpoints")

    @property
    def logs(self) -> str:
        """Where its output is, and its TensorBoard files."""
        return self._at("output", "logs")

    @property
    def control(self) -> str:
        """Files through which the containers of a pod speak to each other."""
        return self._at(".tfadmit")

    @property
    def fetched(self) -> str:
        """Written by the init container when all inputs are there."""
        return self._at(".tfadmit", "fetched.json")

    @property
    def ended(self) -> str:
        """Written by the launcher when the program has ended."""
        return self._at(".tfadmit", "ended.json")

    @property
    def saved(self) -> str:
        """Written by the sidecar after its last save."""
        return self._at(".tfadmit", "saved.json")

    def input(self, name: str) -> str:
        """Where an input lies: `dataset/NAME`, and a model to start from beside the datasets."""
        return self._at("model") if name == MODEL_INPUT else self._at("dataset", name)


def archive_name(sha256: str) -> str:
    """Give the name of an archive of code in an object store."""
    return f"code-{sha256}.tgz"


def tree(environ: Mapping[str, str]) -> Tree:
    """Give the tree that an environment names, or the usual one."""
    return Tree(root=environ.get(ROOT_ENV) or ROOT)


def inputs(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Give the names of the inputs that the program shall find."""
    words = (word.strip() for word in environ.get(INPUTS_ENV, "").split(","))
    return tuple(word for word in words if word)


def environment(where: Tree, *, names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Give the variables for a program that are not set yet.

    The spellings of SageMaker (`SM_`) and Vertex AI (`AIP_`) mean the same, so that scripts
    written for either run unchanged.
    """
    output = PurePosixPath(environ.get(context.OUTPUT_DIR_ENV) or where.output)
    model, checkpoints, logs = (str(output / name) for name in ("model", "checkpoints", "logs"))
    wanted = {
        context.OUTPUT_DIR_ENV: str(output),
        "TFADMIT_DATA_DIR": where.dataset,
        **{f"TFADMIT_DATA_{variable(name)}": where.input(name) for name in names},
        "TFADMIT_MODEL_DIR": model,
        "TFADMIT_CHECKPOINT_DIR": checkpoints,
        "TFADMIT_LOG_DIR": logs,
        **{f"SM_CHANNEL_{variable(name)}": where.input(name) for name in names},
        "SM_MODEL_DIR": model,
        "AIP_MODEL_DIR": model,
        "AIP_CHECKPOINT_DIR": checkpoints,
        "AIP_TENSORBOARD_LOG_DIR": logs,
    }
    return {name: value for name, value in wanted.items() if not environ.get(name)}


def variable(name: str) -> str:
    """Give the name of an input as it stands in the name of a variable."""
    return re.sub(r"[^A-Z0-9]", "_", name.upper())
