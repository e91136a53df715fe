"""A TFJob as the training operator 1.9 understands it: its defaults and spellings.

Follows `pkg/apis/kubeflow.org/v1` (types, defaults) of the operator. Pure views of an object that
`reading` found usable.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tfadmit_trainer import contract
from tfadmit_webhook import raw, runtime

GROUP, VERSION, KIND = "kubeflow.org", "v1", "TFJob"
CONTAINER, PORT_NAME, PORT = "tensorflow", "tfjob-port", 2222
# The container, and for the Kubeflow SDK the replicated job with it.
STEP_CONTAINER = runtime.STEP_CONTAINER
SPECS: raw.Path = ("spec", "tfReplicaSpecs")
POLICY: raw.Path = ("spec", "runPolicy")
# In the order in which the output has them.
TYPES: Mapping[str, contract.Role] = {
    "Chief": "chief",
    "Master": "chief",
    "Worker": "worker",
    "PS": "ps",
    "Evaluator": "evaluator",
}
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@dataclass(frozen=True, kw_only=True)
class Replica:
    """One of the replica types of a TFJob."""

    key: str
    """As it is written."""

    type: str
    """As the operator spells it."""

    count: int
    content: raw.JsonObject

    @property
    def role(self) -> contract.Role:
        """The role that TensorFlow 2 knows."""
        return TYPES[self.type]

    @property
    def path(self) -> raw.Path:
        """Where it stands in the TFJob."""
        return (*SPECS, self.key)

    @property
    def template_path(self) -> raw.Path:
        """Where its pod template stands."""
        return (*self.path, "template")

    @property
    def template(self) -> raw.JsonObject:
        """The pod template."""
        return raw.mapping(self.content.get("template"))

    @property
    def restart_policy(self) -> str:
        """How its pods are started again."""
        return raw.text(self.content.get("restartPolicy")) or "Never"

    @property
    def container(self) -> int:
        """Which of the containers runs TensorFlow."""
        containers = raw.sequence(raw.at(self.template, ("spec", "containers")))
        names = [raw.mapping(item).get("name") for item in containers]
        return names.index(CONTAINER)

    @property
    def port(self) -> int:
        """The port that TF_CONFIG has of its tasks."""
        container = raw.at(self.template, ("spec", "containers", self.container))
        for item in map(raw.mapping, raw.sequence(raw.mapping(container).get("ports"))):
            if item.get("name") == PORT_NAME:
                return int(item["containerPort"])
        return PORT


@dataclass(frozen=True, kw_only=True)
class TFJob:
    """A TFJob that can be translated."""

    content: raw.JsonObject
    replicas: tuple[Replica, ...]
    """Those with pods, in the order of `TYPES`."""

    idle: tuple[Replica, ...]
    """Those with 0 replicas."""

    @property
    def metadata(self) -> raw.JsonObject:
        """The metadata."""
        return raw.mapping(self.content.get("metadata"))

    @property
    def name(self) -> str:
        """The name; of one that the API server makes, the part that is known."""
        prefix = raw.text(self.metadata.get("generateName"))
        return raw.text(self.metadata.get("name")) or prefix.rstrip("-")

    @property
    def policy(self) -> raw.JsonObject:
        """The run policy."""
        return raw.mapping(raw.at(self.content, POLICY))

    @property
    def is_dynamic(self) -> bool:
        """Whether workers may come and go."""
        return raw.at(self.content, ("spec", "enableDynamicWorker")) is True

    @property
    def tasks(self) -> int:
        """How many pods it has."""
        return sum(replica.count for replica in self.replicas)

    @property
    def step(self) -> Replica:
        """The replica type that becomes Trainer's own step: the workers, else the chief."""
        return next((item for item in self.replicas if item.role == "worker"), self.replicas[0])


def is_name(word: str) -> bool:
    """Whether a word is a name that TFJobs and TrainJobs may have (RFC 1035)."""
    return len(word) <= 63 and _NAME.fullmatch(word) is not None


def is_namespace(value: object) -> bool:
    """Whether a value is a name that namespaces may have (RFC 1123), or the empty one."""
    return value == "" or (
        isinstance(value, str) and len(value) <= 63 and _LABEL.fullmatch(value) is not None
    )


def spelled(key: str) -> str:
    """Give a replica type in the operator's spelling; empty when it is none."""
    return next((known for known in TYPES if known.lower() == key.lower()), "")
