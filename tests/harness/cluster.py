"""What a test holds in its hands: a cluster that is asked, changed and waited for."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from harness import kubeconfig
from harness.api import APPLY, Api, ApiError, Object

T = TypeVar("T")
Manifest = Mapping[str, Any] | Iterable[Mapping[str, Any]] | str | Path
Objects = list[Object]

_FIELD_MANAGER = "tfadmit-tests"
_POLL_SECONDS = 0.05
_RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")
# What Trainer's webhook says of a runtime that is not there, or that it does not know yet.
NOT_KNOWN = "must be created before the TrainJob is created"


class Cluster:
    """A running cluster, its administrator's kubeconfig, and a directory for files about it."""

    def __init__(
        self,
        *,
        api: Api,
        kubectl: Path,
        kubeconfig: Path,
        directory: Path,
        webhook_host: str = "127.0.0.1",
        etcd: str | None = None,
    ) -> None:
        self.api = api
        self.program = kubectl
        self.kubeconfig = kubeconfig
        self.directory = directory
        self.webhook_host = webhook_host
        self.etcd = etcd
        """Where its etcd answers clients; unknown when somebody else runs it."""

    def kubectl(
        self,
        *arguments: str,
        input: str | None = None,  # noqa: A002 - the name that subprocess.run has for it
        check: bool = True,
        timeout: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator; with ``check``, a failure shows what it printed."""
        environ = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.directory / "kubectl"),
        }
        done = subprocess.run(
            [str(self.program), *arguments],
            env=environ,
            input=input,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}")
        return done

    def create(
        self, manifest: Mapping[str, Any], *, namespace: str | None = None, dry_run: bool = False
    ) -> Object:
        """Create one object (``generateName`` works) and return it as the server made it."""
        resource = self.api.resource(manifest["kind"], api_version=manifest["apiVersion"])
        path = resource.path(namespace=_namespace(manifest, namespace))
        query = {"fieldManager": _FIELD_MANAGER, **_dry_run(dry_run)}
        return self.api.request("POST", path, body=manifest, query=query)

    def tried(self, manifest: Mapping[str, Any]) -> Object | str:
        """The object as a dry run would create it, or the refusal's sentence."""
        try:
            return self.create(manifest, dry_run=True)
        except ApiError as error:
            return error.message

    def apply(
        self, manifest: Manifest, *, namespace: str | None = None, dry_run: bool = False
    ) -> Objects:
        """Apply server-side one object, several, or a file or folder of YAML."""
        return [self._apply(item, namespace=namespace, dry_run=dry_run) for item in load(manifest)]

    def kubectl_apply(
        self, text: str, *options: str, command: str = "apply"
    ) -> subprocess.CompletedProcess[str]:
        """Apply a runtime and its TrainJob with kubectl, as a user does who has them in one file.

        As such a user, it applies once more when Trainer has not heard of the runtime yet.
        """
        return self.wait(
            lambda: self.kubectl(command, "-f", "-", *options, input=text, check=False),
            until=lambda done: NOT_KNOWN not in done.stderr,
            what="Trainer knows the runtime",
        )

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        """Read one object; ``ApiError`` with status 404 when there is none."""
        path = self.api.resource(kind).path(namespace=namespace, name=name)
        return self.api.request("GET", path)

    def list(
        self, kind: str, namespace: str | None = None, *, labels: Mapping[str, str] | None = None
    ) -> Objects:
        """Read all objects of a kind, in one namespace or in all, that carry the labels."""
        selector = ",".join(f"{name}={value}" for name, value in (labels or {}).items())
        query = {"labelSelector": selector} if selector else None
        found = self.api.request(
            "GET", self.api.resource(kind).path(namespace=namespace), query=query
        )
        items: Objects = found["items"]
        return items

    def delete(self, kind: str, name: str, namespace: str | None = None) -> None:
        """Delete one object and what it owns, without waiting; an absent one is fine."""
        path = self.api.resource(kind).path(namespace=namespace, name=name)
        try:
            self.api.request("DELETE", path, query={"propagationPolicy": "Background"})
        except ApiError as error:
            if error.status != 404:
                raise

    def wait(
        self,
        look: Callable[[], T],
        *,
        until: Callable[[T], object] = bool,
        timeout: float = 30,
        pause: float = _POLL_SECONDS,
        what: str,
    ) -> T:
        """Look until what is seen is right, and return it; an object that is absent is waited for.

        On a timeout the message says what was seen last. ``pause`` is for looks that cost much.
        """
        deadline = time.monotonic() + timeout
        while True:
            seen: object
            try:
                seen = value = look()
                if until(value):
                    return value
            except ApiError as error:
                if error.status != 404:
                    raise
                seen = error
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not within {timeout:g} s; last seen: {_show(seen)}")
            time.sleep(pause)

    def create_namespace(self, *, prefix: str = "test-", name: str | None = None) -> str:
        """A fresh namespace in which pods can be created."""
        metadata = {"name": name} if name else {"generateName": prefix}
        made = self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        created: str = made["metadata"]["name"]
        # Until it is there, the API server refuses pods.
        self.wait(
            lambda: self.get("ServiceAccount", "default", created),
            what=f"the default service account of {created}",
        )
        return created

    def token(self, serviceaccount: str, namespace: str) -> str:
        """A token of a service account, good for one hour."""
        arguments = ["create", "token", serviceaccount, "--namespace", namespace, "--duration=1h"]
        return self.kubectl(*arguments).stdout.strip()

    def kubeconfig_of(self, serviceaccount: str, namespace: str) -> Path:
        """A kubeconfig with which a program is that service account."""
        shown = self.kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json")
        return kubeconfig.write(
            self.directory / f"{namespace}-{serviceaccount}.kubeconfig",
            kubeconfig.with_token(
                json.loads(shown.stdout), token=self.token(serviceaccount, namespace)
            ),
        )

    def _apply(self, manifest: Object, *, namespace: str | None, dry_run: bool) -> Object:
        resource = self.api.resource(manifest["kind"], api_version=manifest["apiVersion"])
        path = resource.path(
            namespace=_namespace(manifest, namespace), name=manifest["metadata"]["name"]
        )
        query = {"fieldManager": _FIELD_MANAGER, "force": "true", **_dry_run(dry_run)}
        made = self.api.request("PATCH", path, body=manifest, content_type=APPLY, query=query)
        # One that is being deleted may be gone by now.
        leaving = "deletionTimestamp" in made["metadata"]
        if made["kind"] in _RUNTIMES and not dry_run and not leaving:
            self._wait_for_trainer(made)
        return made

    def _wait_for_trainer(self, runtime: Object) -> None:
        """Wait until Trainer's webhook knows a runtime: it reads from a cache, as controllers do.

        Until then it refuses each TrainJob of that runtime, whoever applies it.
        """
        metadata = runtime["metadata"]
        job = {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {
                "generateName": "is-it-known-",
                "namespace": metadata.get("namespace", "default"),
            },
            "spec": {"runtimeRef": {"kind": runtime["kind"], "name": metadata["name"]}},
        }
        self.wait(
            lambda: self.tried(job),
            until=lambda said: not (isinstance(said, str) and NOT_KNOWN in said),
            what=f"{runtime['kind']} {metadata['name']} is known to Trainer",
        )


def load(manifest: Manifest) -> Objects:
    """The objects of a manifest in any of the forms that ``apply`` takes."""
    if isinstance(manifest, (str, Path)):
        path = Path(manifest)
        files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
        documents = [item for file in files for item in yaml.safe_load_all(file.read_text())]
        # A folder's kustomization.yaml is not an object of the cluster.
        return [item for item in documents if item and "kind" in item and "metadata" in item]
    if isinstance(manifest, Mapping):
        return [dict(manifest)]
    return [dict(item) for item in manifest]


def _namespace(manifest: Mapping[str, Any], stated: str | None) -> str:
    namespace: str = manifest.get("metadata", {}).get("namespace") or stated or "default"
    return namespace


def _dry_run(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def _show(seen: object) -> str:
    if isinstance(seen, ApiError):
        return str(seen)
    return json.dumps(seen, indent=2, default=repr)
