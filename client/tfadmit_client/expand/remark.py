"""What an expansion has to say beside its result. Values only, and the made-up uids."""

import uuid
from dataclasses import dataclass

from tfadmit_webhook import raw

# Any fixed value will do: it only keeps our uids apart from other people's name-based ones.
_NAMESPACE = uuid.UUID("7f1c3a52-9c5e-5d0b-8a53-2f4c6b1d7e90")


@dataclass(frozen=True, kw_only=True)
class Remark:
    """One sentence about an expansion."""

    text: str
    refused: bool = False
    """Whether a cluster would refuse the object for it."""


def uid(kind: str, *, namespace: str, name: str, content: raw.JsonObject | None = None) -> str:
    """Give an object's uid when it has one (read from a cluster), else one made from its name."""
    own = raw.text(raw.at(content, ("metadata", "uid")))
    return own or str(uuid.uuid5(_NAMESPACE, f"{kind}/{namespace}/{name}"))
