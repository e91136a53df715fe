"""For how long each CA has been seen in every caBundle: what a rotation may rely on.

Here: the memory between looks. It is lost with the process, and then a rotation waits again, which
only costs time. Not here: what follows (`plan`). No I/O.
"""

from collections.abc import Mapping
from datetime import timedelta

from tfadmit_certs import bundle
from tfadmit_certs.state import View


class Trust:
    """What was seen at the looks of this process."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._complete = b""

    def saw(self, view: View, *, at: float) -> Mapping[str, timedelta]:
        """Take note of a look at a moment of a monotonic clock; give each CA's time."""
        authority = view.authority
        if authority is None:
            self._since.clear()
            return {}
        hooks = [hook for item in view.configurations for hook in item.hooks]
        held = [frozenset(bundle.parse_readable(hook.trusts or b"")) for hook in hooks]
        everywhere = {
            bundle.fingerprint(item)
            for item in authority.trusted
            if all(item in bundled for bundled in held)
        }
        self._since = {name: self._since.get(name, at) for name in everywhere}
        if not any(item.lacks(authority.pem) for item in view.configurations):
            self._complete = authority.pem
        return {name: timedelta(seconds=at - since) for name, since in self._since.items()}

    def was_complete(self, pem: bytes) -> bool:
        """Has every caBundle been seen to be this one? If one is not now, somebody changed it."""
        return self._complete == pem
