"""The Kubeflow SDK as a data scientist uses it: one step per run, the answer as JSON.

Run by a Python that has the SDK, with KUBECONFIG: ``sdk.py NAMESPACE STEP [WORD …]``.
"""

import dataclasses
import json
import sys
from collections.abc import Callable
from typing import Any

from kubeflow.trainer import (
    CustomTrainer,
    CustomTrainerContainer,
    KubernetesBackendConfig,
    TrainerClient,
)
from kubeflow.trainer.options import Labels, Name

RUNTIME = "tensorflow-distributed"


def train():
    # Only the source of this function reaches the pods.
    import json  # noqa: PLC0415
    import os  # noqa: PLC0415

    print(json.loads(os.environ["TF_CONFIG"])["task"])


def train_function(client, name):
    trainer = CustomTrainer(func=train, num_nodes=2, env={"EPOCHS": "1"})
    options = [Name(name), Labels({"team": "a"})]
    return client.train(runtime=RUNTIME, trainer=trainer, options=options)


def train_container(client, name, *resources):
    limits = dict(word.split("=") for word in resources)
    trainer = CustomTrainerContainer(
        image="example.com/mine", num_nodes=2, resources_per_node=limits or None
    )
    return client.train(runtime=client.get_runtime(RUNTIME), trainer=trainer, options=[Name(name)])


def show(value):
    if dataclasses.is_dataclass(value):
        return {field.name: show(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, list):
        return [show(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


STEPS: dict[str, Callable[..., Any]] = {
    "runtimes": lambda client: sorted(item.name for item in client.list_runtimes()),
    "runtime": lambda client, name: client.get_runtime(name),
    "train-function": train_function,
    "train-container": train_container,
    "wait": lambda client, name, status: client.wait_for_job_status(
        name, status={status}, timeout=60, polling_interval=1
    ),
    "jobs": lambda client: sorted(item.name for item in client.list_jobs()),
    "delete": lambda client, name: client.delete_job(name),
}

namespace, step, *words = sys.argv[1:]
client = TrainerClient(backend_config=KubernetesBackendConfig(namespace=namespace))
print(json.dumps(show(STEPS[step](client, *words))))
