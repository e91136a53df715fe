"""The questions that are asked of the API server, as plain dictionaries."""

import functools

from kubernetes import client

from tfadmit_webhook import facts, raw
from tfadmit_webhook.kube import asking, collection, request

_JOBSET_API = ("apis", "jobset.x-k8s.io", "v1alpha2")
_JOBSETS = "jobsets of jobset.x-k8s.io"
_JOB_API = ("apis", "batch", "v1")
_TRAINER_API = ("apis", "trainer.kubeflow.org", "v1alpha1")
_ADMISSION_API = ("apis", "admissionregistration.k8s.io", "v1")
_CORE_API = ("api", "v1")


class Api:
    """The API server."""

    def __init__(self, api_client: client.ApiClient) -> None:
        self._getter = request.Getter(api_client)

    def jobset(self, *, namespace: str, name: str, timeout: float) -> raw.JsonObject:
        """Ask for one JobSet."""
        return self._object(
            *(*_JOBSET_API, "namespaces", namespace, "jobsets", name),
            timeout=timeout,
            asked=f"for JobSet {namespace}/{name}",
            right=f"get {_JOBSETS}",
        )

    def job(self, *, namespace: str, name: str, timeout: float) -> raw.JsonObject:
        """Ask for one Job."""
        return self._object(
            *(*_JOB_API, "namespaces", namespace, "jobs", name),
            timeout=timeout,
            asked=f"for Job {namespace}/{name}",
            right="get jobs of batch",
        )

    def runtime(
        self, *, kind: facts.RuntimeKind, namespace: str, name: str, timeout: float
    ) -> raw.JsonObject:
        """Ask for one runtime; those of the whole cluster have no namespace."""
        plural = f"{kind.lower()}s"
        place = () if kind == "ClusterTrainingRuntime" else ("namespaces", namespace)
        return self._object(
            *(*_TRAINER_API, *place, plural, name),
            timeout=timeout,
            asked=f"for {kind} {f'{namespace}/{name}' if namespace else name}",
            right=f"get {plural} of {_TRAINER_API[1]}",
        )

    def namespace(self, *, name: str, timeout: float) -> raw.JsonObject:
        """Ask for one namespace."""
        return self._object(
            *(*_CORE_API, "namespaces", name),
            timeout=timeout,
            asked=f"for Namespace {name}",
            right="get namespaces",
        )

    def webhook_configuration(self, *, kind: str, name: str, timeout: float) -> raw.JsonObject:
        """Ask for the `mutating` or `validating` webhook configuration of a name."""
        plural = f"{kind}webhookconfigurations"
        return self._object(
            *(*_ADMISSION_API, plural, name),
            timeout=timeout,
            asked=f"for the {kind} webhook configuration {name}",
            right=f"get {plural}",
        )

    def jobsets(self) -> collection.Collection:
        """Give all JobSets, to be listed and watched."""
        return collection.Collection(
            functools.partial(self._getter.get, *_JOBSET_API, "jobsets"),
            what="all JobSets",
            nouns=_JOBSETS,
            absent="JobSet is not installed, or not in the version that is read",
        )

    def secret(self, *, namespace: str, name: str) -> collection.Collection:
        """Give one Secret as a collection of one, to be listed and watched."""
        return collection.Collection(
            functools.partial(self._getter.get, *_CORE_API, "namespaces", namespace, "secrets"),
            what=f"Secret {namespace}/{name}",
            nouns=f"the Secret {namespace}/{name}",
            absent=f"Secret {namespace}/{name} cannot be asked for",
            # RBAC compares the names of its rule with this selector.
            selector={"fieldSelector": f"metadata.name={name}"},
        )

    def _object(self, *path: str, timeout: float, asked: str, right: str) -> raw.JsonObject:
        return asking.answer(
            lambda: self._getter.get(*path, timeout=timeout), asked=asked, right=right
        )
