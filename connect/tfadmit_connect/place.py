"""Which cluster is meant, as options of a command line and of another one after it. Pure."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

USUAL: Final = "~/.kube/config"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A cluster, by what a user has said; what he has not is as for kubectl."""

    kubeconfig: str | None = None
    """A file, or several as KUBECONFIG has them."""

    context: str | None = None

    @property
    def flags(self) -> str:
        """Give the options that `tfadmit` and `kubectl` need to reach it, each after a space."""
        return _written(("--kubeconfig", self.kubeconfig), ("--context", self.context))

    @property
    def kubectl(self) -> str:
        """Give kubectl for the kubeconfig, whichever its context."""
        return "kubectl" + _written(("--kubeconfig", self.kubeconfig))

    def files(self, environ: Mapping[str, str]) -> str:
        """Give the kubeconfig that is meant, or several as KUBECONFIG has them."""
        return self.kubeconfig or environ.get("KUBECONFIG") or USUAL


def _written(*options: tuple[str, str | None]) -> str:
    return "".join(f" {option} {shlex.quote(value)}" for option, value in options if value)
