"""From the pod template of a replica type to that of a replicated job.

The template is copied; here stands what must differ, and what only looks as if it could stay.
Pure. Restart policies are `restart`'s, schedulers `gang`'s.
"""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from tfadmit_client.migrate import ledger as book
from tfadmit_client.migrate import remains, tfjob
from tfadmit_trainer import contract
from tfadmit_webhook import raw

_HOST_DNS = "ClusterFirstWithHostNet"
# Written by others, or by whoever labels a runtime: a template that states them changes what it is.
_RESERVED = ("trainer.kubeflow.org/", "jobset.sigs.k8s.io/")
_RESERVED_NAMES = frozenset(
    (*contract.OWN_LABELS, contract.INJECT_ANNOTATION, contract.CONTAINERS_ANNOTATION)
) | {contract.CLUSTER_ANNOTATION, contract.STATUS_ANNOTATION}
_KEPT_METADATA = ("labels", "annotations", "finalizers")
# TFJob set none of them. The webhook keeps what a container states, so a fixed value would stay.
_PER_TASK = (contract.TASK_INDEX_ENV, contract.CLUSTER_ENV, contract.PORT_ENV)


def translate(
    job: tfjob.TFJob, replica: tfjob.Replica, *, to: raw.Path, ledger: book.Ledger
) -> dict[str, Any]:
    """Give the pod template of a replicated job; `to` is where it will stand in the runtime."""
    template: dict[str, Any] = copy.deepcopy(dict(replica.template))
    work = _Template(
        job=job, replica=replica, content=template, at=replica.template_path, to=to, ledger=ledger
    )
    work.change()
    return template


class _Template:
    """The work on one template, which is our own copy."""

    def __init__(
        self,
        *,
        job: tfjob.TFJob,
        replica: tfjob.Replica,
        content: dict[str, Any],
        at: raw.Path,
        to: raw.Path,
        ledger: book.Ledger,
    ) -> None:
        self._job = job
        self._replica = replica
        self._content = content
        self._spec: dict[str, Any] = content["spec"]
        self._at = at
        self._to = to
        self._ledger = ledger
        self._is_step = replica is job.step

    def change(self) -> None:
        """Change what must differ, and tell of it."""
        self._ledger.exactly(self._at, "the pod template, but for what follows", to=self._target())
        self._metadata()
        self._rename()
        self._port()
        self._environment()
        self._network()
        self._names()
        remains.tell(self._job, spec=self._spec, at=self._at, to=self._to, ledger=self._ledger)

    def _target(self, *path: str | int) -> book.Target:
        return book.runtime(*self._to, *path)

    def _metadata(self) -> None:
        metadata = dict(raw.mapping(self._content.get("metadata")))
        at = (*self._at, "metadata")
        for name in [name for name in metadata if name not in _KEPT_METADATA]:
            self._ledger.exactly((*at, name), "left out: TFJob did not use it either")
            del metadata[name]
        for name in ("labels", "annotations"):
            metadata[name] = {
                key: value
                for key, value in raw.mapping(metadata.get(name)).items()
                if not self._reserved((*at, name, key), key)
            }
        if self._replica.role == "chief" and self._is_step:
            metadata["labels"][contract.ROLE_LABEL] = "chief"
        metadata = {key: value for key, value in metadata.items() if value}
        self._content.pop("metadata", None)
        if metadata:
            self._content["metadata"] = metadata
            self._content["spec"] = self._content.pop("spec")  # for readers: metadata first

    def _reserved(self, path: raw.Path, key: str) -> bool:
        if not key.startswith(_RESERVED) and key not in _RESERVED_NAMES:
            return False
        self._ledger.missing(
            path,
            "left out: Trainer, JobSet or tfadmit decide by it what the pod is",
            advice="another key",
        )
        return True

    def _rename(self) -> None:
        """Give the container of TensorFlow the name that is looked for."""
        index = self._replica.container
        if self._is_step:
            self._make_room()
            container = self._spec["containers"][index]
            container["name"] = tfjob.STEP_CONTAINER
            self._ledger.nearly(
                (*self._at, "spec", "containers", index, "name"),
                f"is `{tfjob.STEP_CONTAINER}` now, as Trainer demands in the step that TrainJobs "
                "change",
                to=self._target("spec", "containers", index, "name"),
                advice=f"`kubectl logs -c {tfjob.STEP_CONTAINER}`",
            )
        elif any(item.get("name") == tfjob.STEP_CONTAINER for _, item in self._containers()):
            metadata = self._content.setdefault("metadata", {})
            annotations = metadata.setdefault("annotations", {})
            annotations[contract.CONTAINERS_ANNOTATION] = tfjob.CONTAINER

    def _make_room(self) -> None:
        """Rename a helper that has the name already."""
        names = {item.get("name") for _, item in self._containers()}
        if tfjob.STEP_CONTAINER not in names:
            return
        numbers = range(2, len(names) + 3)
        free = next(name for name in (f"node-{n}" for n in numbers) if name not in names)
        for path, item in self._containers():
            if item.get("name") == tfjob.STEP_CONTAINER:
                item["name"] = free
                self._ledger.nearly(
                    (*self._at, *path, "name"),
                    f"is `{free}` now, because `{tfjob.STEP_CONTAINER}` is the container that "
                    "trains",
                    to=self._target(*path, "name"),
                )

    def _port(self) -> None:
        container = self._spec["containers"][self._replica.container]
        ports = raw.sequence(container.get("ports"))
        if not any(raw.mapping(item).get("name") == tfjob.PORT_NAME for item in ports):
            added = {"name": tfjob.PORT_NAME, "containerPort": tfjob.PORT}
            container["ports"] = [*ports, added]

    def _environment(self) -> None:
        for path, container in self._containers():
            entries = raw.sequence(container.get("env"))
            if not entries:
                continue
            trains = path == ("spec", "containers", self._replica.container)
            kept = [
                entry
                for index, entry in enumerate(entries)
                if not self._dropped((*self._at, *path, "env", index), entry, trains=trains)
            ]
            container["env"] = kept
            if not kept:
                del container["env"]

    def _dropped(self, path: raw.Path, item: object, *, trains: bool) -> bool:
        entry = raw.mapping(item)
        name, is_fixed = entry.get("name"), entry.get("valueFrom") is None
        if name == contract.TF_CONFIG_ENV and trains:
            self._own_tf_config(path)
            return True
        if name == contract.TF_CONFIG_ENV and is_fixed:
            self._ledger.missing(
                path,
                "left out: TF_CONFIG in a template is the same for all pods (TFA010)",
                advice="if this container takes part in the training, name it in the annotation "
                f"{contract.CONTAINERS_ANNOTATION} of the pod template",
            )
            return True
        if name not in _PER_TASK or (name == contract.TASK_INDEX_ENV and not is_fixed):
            return False
        if not trains and name != contract.TASK_INDEX_ENV:
            return False
        if name == contract.PORT_ENV and entry.get("value") == str(self._replica.port):
            return False
        self._ledger.missing(
            path,
            f"left out: tfadmit gives each task a {name} of its own",
            advice=f"if the program means something else by it, another name than {name}",
        )
        return True

    def _own_tf_config(self, path: raw.Path) -> None:
        what = "left out: TFJob set its own after it, which won; tfadmit sets it now"
        if self._job.tasks > 1:
            self._ledger.exactly(path, what)
        else:
            self._ledger.nearly(
                path,
                "left out: TFJob set none for a single task, so this one counted; tfadmit sets "
                "one with the single task in it",
            )

    def _network(self) -> None:
        policy = self._spec.get("dnsPolicy")
        if self._spec.get("hostNetwork") is not True or policy not in (None, "ClusterFirst"):
            return
        self._spec["dnsPolicy"] = _HOST_DNS
        path = (*self._at, "spec", "hostNetwork" if policy is None else "dnsPolicy")
        self._ledger.nearly(
            path,
            f"dnsPolicy is {_HOST_DNS}: in the host's network no address of a peer resolves "
            "otherwise (TFA012)",
            to=self._target("spec", "dnsPolicy"),
        )

    def _names(self) -> None:
        for name in ("hostname", "subdomain"):
            if self._spec.pop(name, None) is not None:
                self._ledger.missing(
                    (*self._at, "spec", name),
                    "left out: JobSet gives each pod its own, which its address consists of",
                    advice="nothing, unless the program asks for that name",
                )

    def _containers(self) -> Iterator[tuple[raw.Path, dict[str, Any]]]:
        for kind in ("containers", "initContainers"):
            for index, item in enumerate(raw.sequence(self._spec.get(kind))):
                if isinstance(item, dict):
                    yield ("spec", kind, index), item


def names(pods: Sequence[raw.JsonObject]) -> frozenset[str]:
    """Give the scheduler names that templates state."""
    stated = (raw.text(raw.at(pod, ("spec", "schedulerName"))) for pod in pods)
    return frozenset(name for name in stated if name)
