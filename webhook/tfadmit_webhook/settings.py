"""What a platform team can decide about the webhook, as one frozen value with a default for all.

Only values belong here: no reading of files or environment (`settings_file` reads them from YAML),
and no logic. Each field's text is also its description in the published JSON schema.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from tfadmit_trainer import contract
from tfadmit_webhook.selector import LabelSelector

Level = Literal["deny", "warn", "off"]
Judged = Literal["ClusterTrainingRuntime", "TrainingRuntime", "TrainJob"]


@dataclass(frozen=True, kw_only=True)
class NetworkProfile:
    """What pods get that request one of some resources."""

    name: str
    """Name of the profile; it stands in the status of the pods."""

    resources: tuple[str, ...]
    """Names of resources, `*` allowed; a container that requests one selects the profile."""

    attach: str | None = None
    """Network to attach, as in the annotation k8s.v1.cni.cncf.io/networks."""

    env: Mapping[str, str] = field(default_factory=dict)
    """Environment of the containers, set where the user has not set it."""


@dataclass(frozen=True, kw_only=True)
class Exemption:
    """Objects that one rule leaves alone."""

    rule: str
    """Identifier of the rule."""

    name: str
    """Name of the objects, `*` allowed."""

    reason: str
    """Why they are left alone; for those who find the exemption later."""

    kind: Judged | None = None
    """Kind of the objects; all kinds without it."""

    namespace: str | None = None
    """Namespace of the objects, `*` allowed; with it, no object of the cluster is meant."""


@dataclass(frozen=True, kw_only=True)
class Override:
    """Other levels of rules in some namespaces."""

    namespace_selector: LabelSelector
    """Which namespaces, by their labels, as in a webhook configuration; `{}` means all."""

    policies: Mapping[str, Level]
    """Level of each rule there, by its identifier."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """How the server takes requests."""

    # One uses one processor. Two answer twice as many reviews, and small ones while one of them is
    # busy with a large one; each further one has its own memory and its own watch of JobSets.
    processes: int = 2
    """Processes that answer reviews."""

    # Look-ups wait in threads; probes and refusals never do.
    threads: int = 32
    """Reviews that are worked on at the same time, in all processes."""

    # About what one replica answers in the second after which an API server that was sent away
    # comes back: whoever would wait longer than that loses nothing by it.
    max_in_flight: int = 512
    """Reviews in work or in the queue; beyond, the answer is 503 and the API server asks again."""

    # Objects have up to 3 MiB and an UPDATE carries two of them: about 7 MiB with its envelope.
    max_body_bytes: int = 8 * 1024 * 1024
    """Largest review that is read; larger ones are answered 413."""

    # The API server keeps idle connections for 90 s and does not retry on one that was just closed.
    keep_alive_seconds: int = 120
    """How long an idle connection stays open."""

    default_timeout_seconds: float = 10.0
    """Time for one review when the request does not say how much it has."""

    # Until every node has taken the pod out of its Service; large clusters take some seconds.
    drain_seconds: float = 10.0
    """How long it goes on answering after SIGTERM at least."""

    # Connections of an API server that asks often are all used, and so closed, within this time.
    drain_quiet_seconds: float = 5.0
    """Time without any review after which it stops listening."""

    # With 30 s for reviews in work it stays under the 90 s of the shipped manifests.
    drain_limit_seconds: float = 45.0
    """How long it goes on answering after SIGTERM at most."""


@dataclass(frozen=True, kw_only=True)
class Certificates:
    """How long self-managed certificates live; durations as in Go, such as 8760h or 90s."""

    # A rotation fails no call, so it may as well be rehearsed once a year.
    ca_lifetime: str = "8760h"
    """How long a CA is valid."""

    ca_renew_before: str = "2160h"
    """How long before its end a CA is replaced."""

    leaf_lifetime: str = "168h"
    """How long the server's certificate is valid."""

    # A third of its lifetime: two days for a person to see the alert.
    leaf_renew_before: str = "56h"
    """How long before its end the server's certificate is replaced."""

    clock_skew: str = "1h"
    """How far certificates are backdated, for clocks that are behind."""

    # An API server that reconnects its watch has the bundle by then.
    settle: str = "60s"
    """How long both CAs are published before the new one signs."""


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """How pods that ask for data or results get them."""

    image: str = "tfadmit/transfer:0.1.0"
    """Image of the init container and the sidecar."""

    # A model of 1 GiB in four files was saved with 170 MB at most.
    resources: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({"cpu": "250m", "memory": "512Mi"})
    )
    """What each of the two requests, and its limits."""

    host_paths: tuple[str, ...] = ()
    """Folders of the nodes that pods may name by file://, with all that is in them."""


INFINIBAND: Final = NetworkProfile(
    name="infiniband",
    resources=("nvidia.com/hostdev", "rdma/*"),
    attach="hostdevice-net",
    env=MappingProxyType(
        {
            "NCCL_IB_DISABLE": "0",
            "NCCL_SOCKET_IFNAME": "net",
            "NCCL_DEBUG": "INFO",
            "NCCL_DEBUG_SUBSYS": "INIT,NET,IB",
        }
    ),
)
TCP: Final = NetworkProfile(
    name="tcp",
    resources=("nvidia.com/gpu", "nvidia.com/mig-*", "amd.com/gpu"),
    env=MappingProxyType(
        {"NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "eth0", "NCCL_DEBUG": "INFO"}
    ),
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything a platform team can decide."""

    cluster_domain: str = "cluster.local"
    """DNS domain of the cluster."""

    default_port: int = contract.DEFAULT_PORT
    """Rendezvous port of pods that state none."""

    # A quarter of Linux's limit of 128 KiB for one environment string, as every pod carries a copy.
    max_inline_bytes: int = 32 * 1024
    """Largest TF_CONFIG that is written into a pod; larger clusters travel in compact form."""

    # A factory, because pydantic copies default values and a mapping proxy cannot be copied.
    network_profiles: tuple[NetworkProfile, ...] = field(default_factory=lambda: (INFINIBAND, TCP))
    """Network profiles, in order; the first that matches is taken."""

    # NVIDIA's 24.06 has Keras 3.3, its last one, 25.02, has 3.3.2.
    unsynchronised_images: tuple[str, ...] = (
        "nvcr.io/nvidia/tensorflow:24.0[6-9]-*",
        "nvcr.io/nvidia/tensorflow:24.1[0-2]-*",
        "nvcr.io/nvidia/tensorflow:25.0[12]-*",
    )
    """Images with Keras 3.0 to 3.4, `*` and `[a-z]` allowed; rule TFA017 warns of them."""

    policies: Mapping[str, Level] = field(default_factory=dict)
    """Level of each rule by its identifier, where it differs from the rule's own."""

    overrides: tuple[Override, ...] = ()
    """Other levels by the labels of the namespace; of those that state a rule the first counts."""

    exemptions: tuple[Exemption, ...] = ()
    """Objects that a rule leaves alone, by their name, each with the reason."""

    server: Server = field(default_factory=Server)
    """How the server takes requests."""

    certificates: Certificates = field(default_factory=Certificates)
    """How long self-managed certificates live."""

    transfer: Transfer = field(default_factory=Transfer)
    """How pods that ask for data or results get them."""
