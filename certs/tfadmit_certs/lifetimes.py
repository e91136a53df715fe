"""How long certificates live and when the next ones are made: the numbers of the settings.

Here: values. Not here: reading them from a file (the client does, with the webhook's settings) or
acting on them (`plan`). No I/O.
"""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, kw_only=True)
class Lifetimes:
    """The section `certificates` of the settings; docs/settings.md says what each means."""

    ca: timedelta = timedelta(hours=8760)
    ca_renew_before: timedelta = timedelta(hours=2160)
    leaf: timedelta = timedelta(hours=168)
    leaf_renew_before: timedelta = timedelta(hours=56)
    clock_skew: timedelta = timedelta(hours=1)
    settle: timedelta = timedelta(seconds=60)
