"""What the API server says when it refuses: the message of its Status object.

Pure, for whoever speaks to it: the webhook's `kube` and the command line.
"""

import json

from tfadmit_webhook import raw


def message(body: bytes | str | None, *, otherwise: str | None) -> str:
    """Take the message out of the body of an answer; where there is none, the HTTP reason."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body or ""
    try:
        said = raw.text(raw.mapping(json.loads(text)).get("message"))
    except (ValueError, RecursionError):
        said = ""
    return said or otherwise or "without a reason"
