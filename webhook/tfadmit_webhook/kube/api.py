"""The questions that are asked of the API server, as plain dictionaries."""

import functools
from typing import Any

from kubernetes import client

from tfadmit_webhook import facts, raw
from tfadmit_webhook.kube import asking, collection

_GROUP, _VERSION, _PLURAL = "jobset.x-k8s.io", "v1alpha2", "jobsets"
_JOBSETS = f"{_PLURAL} of {_GROUP}"
_TRAINER, _TRAINER_VERSION = "trainer.kubeflow.org", "v1alpha1"


class Api:
    """The API server."""

    def __init__(self, api_client: client.ApiClient) -> None:
        self._custom = client.CustomObjectsApi(api_client)
        self._batch = client.BatchV1Api(api_client)
        self._core = client.CoreV1Api(api_client)
        self._admission = client.AdmissionregistrationV1Api(api_client)

    def jobset(self, *, namespace: str, name: str, timeout: float) -> raw.JsonObject:
        """Ask for one JobSet."""
        return asking.answer(
            lambda: self._custom.get_namespaced_custom_object(
                _GROUP,
                _VERSION,
                namespace,
                _PLURAL,
                name,
                _preload_content=False,
                _request_timeout=timeout,
            ),
            asked=f"for JobSet {namespace}/{name}",
            right=f"get {_JOBSETS}",
        )

    def job(self, *, namespace: str, name: str, timeout: float) -> raw.JsonObject:
        """Ask for one Job."""
        return asking.answer(
            lambda: self._batch.read_namespaced_job(
                name, namespace, _preload_content=False, _request_timeout=timeout
            ),
            asked=f"for Job {namespace}/{name}",
            right="get jobs of batch",
        )

    def runtime(
        self, *, kind: facts.RuntimeKind, namespace: str, name: str, timeout: float
    ) -> raw.JsonObject:
        """Ask for one runtime; those of the whole cluster have no namespace."""
        plural = f"{kind.lower()}s"
        options: dict[str, Any] = {"_preload_content": False, "_request_timeout": timeout}

        def call() -> Any:  # noqa: ANN401 - urllib3's response
            if kind == "ClusterTrainingRuntime":
                return self._custom.get_cluster_custom_object(
                    _TRAINER, _TRAINER_VERSION, plural, name, **options
                )
            return self._custom.get_namespaced_custom_object(
                _TRAINER, _TRAINER_VERSION, namespace, plural, name, **options
            )

        return asking.answer(
            call,
            asked=f"for {kind} {f'{namespace}/{name}' if namespace else name}",
            right=f"get {plural} of {_TRAINER}",
        )

    def namespace(self, *, name: str, timeout: float) -> raw.JsonObject:
        """Ask for one namespace."""
        return asking.answer(
            lambda: self._core.read_namespace(
                name, _preload_content=False, _request_timeout=timeout
            ),
            asked=f"for Namespace {name}",
            right="get namespaces",
        )

    def jobsets(self) -> collection.Collection:
        """Give all JobSets, to be listed and watched."""
        return collection.Collection(
            functools.partial(self._custom.list_cluster_custom_object, _GROUP, _VERSION, _PLURAL),
            what="all JobSets",
            nouns=_JOBSETS,
            absent="JobSet is not installed, or not in the version that is read",
        )

    def secret(self, *, namespace: str, name: str) -> collection.Collection:
        """Give one Secret as a collection of one, to be listed and watched."""
        return collection.Collection(
            functools.partial(
                self._core.list_namespaced_secret,
                namespace,
                # RBAC compares the names of its rule with this selector.
                field_selector=f"metadata.name={name}",
            ),
            what=f"Secret {namespace}/{name}",
            nouns=f"the Secret {namespace}/{name}",
            absent=f"Secret {namespace}/{name} cannot be asked for",
        )

    def webhook_configuration(self, *, kind: str, name: str, timeout: float) -> raw.JsonObject:
        """Ask for the `mutating` or `validating` webhook configuration of a name."""
        call = getattr(self._admission, f"read_{kind}_webhook_configuration")
        return asking.answer(
            lambda: call(name, _preload_content=False, _request_timeout=timeout),
            asked=f"for the {kind} webhook configuration {name}",
            right=f"get {kind}webhookconfigurations",
        )
