"""What `tfadmit check` says and whom it asks: the values and the protocol that its parts share."""

from dataclasses import dataclass
from typing import Literal, Protocol

from tfadmit_client.audit import auditing
from tfadmit_webhook import raw

State = Literal["ok", "note", "warn", "fail"]

README = "deploy/README.md"
"""Where help stands."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """Something that was looked at."""

    state: State
    text: str
    """What was found, and after a semicolon what helps."""


class Cluster(auditing.Cluster, Protocol):
    """A cluster that is asked."""

    def version(self) -> raw.JsonObject:
        """Ask for the version of the API server."""

    def groups(self) -> raw.JsonObject:
        """Ask for the API groups."""

    def resources(self, group: str, version: str) -> raw.JsonObject:
        """Ask for the kinds of a group; StatusError 404 when it is not served."""

    def configuration(self, plural: str) -> raw.JsonObject:
        """Ask for our webhook configuration of one of the two kinds."""

    def secret(self, namespace: str, name: str) -> raw.JsonObject:
        """Ask for a Secret."""

    def config_map(self, namespace: str, name: str) -> raw.JsonObject:
        """Ask for a ConfigMap."""

    def role_binding(self, namespace: str, name: str) -> raw.JsonObject:
        """Ask for a RoleBinding."""

    def tried_pod(self, namespace: str, pod: raw.JsonObject) -> raw.JsonObject:
        """Create a pod by a dry run: give it as it would be."""
