"""Webhook configurations as shipped, rewritten so that the API server calls this machine.

Pure: values in, values out.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping
from typing import Any

from harness.api import Object

KINDS = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})


def pointed_at(configuration: Mapping[str, Any], *, host: str, port: int, ca: bytes) -> Object:
    """The configuration with every service replaced by a URL with the same path.

    Raises:
        AssertionError: nothing was replaced, so a test would run without the webhook.
    """
    changed = copy.deepcopy(dict(configuration))
    replaced = 0
    for webhook in changed.get("webhooks") or []:
        service = webhook["clientConfig"].pop("service", None)
        if service is None:
            continue
        webhook["clientConfig"] = {
            "url": f"https://{host}:{port}{service.get('path', '')}",
            "caBundle": base64.b64encode(ca).decode(),
        }
        replaced += 1
    if not replaced:
        raise AssertionError(f"{changed['metadata']['name']} has no webhook with a service")
    return changed
