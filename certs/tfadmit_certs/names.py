"""What the objects in the cluster are called, and which webhooks are ours.

Standard library only, so that the command line can import it early. No I/O.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from tfadmit_certs import san

Which = Literal["ca", "leaf"]
LEASE: Final = "tfadmit-certs"
MANAGER: Final = "tfadmit-certs"


@dataclass(frozen=True, kw_only=True)
class Names:
    """The objects of one installation; `url` is for a server outside of the cluster."""

    namespace: str = "tfadmit-system"
    service: str = "tfadmit-webhook"
    configuration: str = "tfadmit"
    url: str = ""
    """The start of the URL that webhooks call; empty when they name the Service."""

    lease: str = LEASE

    def secret(self, which: Which) -> str:
        """The name of a Secret; it begins with that of the Service."""
        return f"{self.service}-{'ca' if which == 'ca' else 'tls'}"

    def label(self, which: Which) -> str:
        """The Secret as people write it."""
        return f"{self.namespace}/{self.secret(which)}"

    def are_called_by(self, client_config: Mapping[str, Any]) -> bool:
        """Does a webhook with this clientConfig call our server? Others are left alone."""
        service = client_config.get("service")
        if isinstance(service, Mapping):
            return (service.get("namespace"), service.get("name")) == (self.namespace, self.service)
        url = client_config.get("url")
        if not self.url or not isinstance(url, str):
            return False
        # A whole path segment, or https://host:80 would take in https://host:8080.
        return url == self.url or url.startswith(self.url.rstrip("/") + "/")

    def hostnames(self, *, cluster_domain: str) -> san.Names:
        """What a leaf must stand for: the name that the API server asks for, and its full form."""
        short = f"{self.service}.{self.namespace}.svc"
        dns = [short, f"{short}.{cluster_domain}"]
        ips: list[str] = []
        host = self.url.partition("//")[2].partition("/")[0]
        name, _, port = host.rpartition(":")
        host = (name if port.isdigit() else host).strip("[]")
        if host:
            (ips if san.is_ip(host) else dns).append(host)
        return san.check(dns=dns, ips=ips)
