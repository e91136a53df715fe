"""The webhook configurations of a cluster, the CAs they trust, and the certificate behind them.

A part of `check`. What a client would say to the certificate is asked of `tls_pair`.
"""

import base64
import ssl
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from tfadmit_client.check import tls_pair
from tfadmit_client.check.line import README, Cluster, Line
from tfadmit_client.cluster import listing
from tfadmit_webhook import raw

CONFIGURATIONS: Final[tuple[tuple[str, Mapping[str, str]], ...]] = (
    (
        "Mutating",
        {
            "pods.tfadmit.dev": "Fail",
            "jobsets.tfadmit.dev": "Fail",
            "runtimes.tfadmit.dev": "Fail",
        },
    ),
    (
        "Validating",
        {"runtimes.validate.tfadmit.dev": "Fail", "trainjobs.validate.tfadmit.dev": "Ignore"},
    ),
)
_APPLY = "`kubectl apply -k` of your overlay"
_NAMESPACE, _SECRET = "tfadmit-system", "tfadmit-webhook-tls"
_DAY = 86_400
_SOON = 30 * _DAY
# Leaves of the self-managed mode live a week and are renewed in time; less than a day is late.
_LEAF_SOON = _DAY


def check(cluster: Cluster, *, now: float) -> Iterator[Line]:
    """Look at each webhook, and then at the certificate that their server shows."""
    found: list[raw.JsonObject] = []
    for prefix, hooks in CONFIGURATIONS:
        yield from _configuration(cluster, prefix, hooks, now, found)
    if found:
        yield _serving(cluster, found, now)


def _configuration(
    cluster: Cluster,
    prefix: str,
    hooks: Mapping[str, str],
    now: float,
    seen: list[raw.JsonObject],
) -> Iterator[Line]:
    kind = f"{prefix}WebhookConfiguration"
    try:
        found = cluster.configuration(f"{kind.lower()}s")
    except listing.StatusError as error:
        if error.status == 404:
            text = f"there is no {kind} tfadmit; {_APPLY}, see {README}"
            yield Line(state="fail", text=text)
        else:
            text = f"{kind} tfadmit is unknown: {error}; the right is get on {kind.lower()}s"
            yield Line(state="warn", text=text)
        return
    items = map(raw.mapping, raw.sequence(found.get("webhooks")))
    by_name = {raw.text(item.get("name")): item for item in items}
    for name, policy in hooks.items():
        hook = by_name.get(name)
        if hook is None:
            text = f"{kind} tfadmit has no webhook {name}; {_APPLY}"
            yield Line(state="fail", text=text)
        else:
            seen.append(hook)
            yield _hook(hook, name, policy, now)


def _hook(hook: raw.JsonObject, name: str, policy: str, now: float) -> Line:
    patch = f"see Certificates in {README}"
    bundle = raw.text(raw.at(hook, ("clientConfig", "caBundle")))
    if not bundle:
        return Line(state="fail", text=f"webhook {name} has no caBundle; {patch}")
    try:
        end = _end(bundle)
    except ValueError as error:
        return Line(
            state="fail", text=f"webhook {name}: its caBundle is of no use: {error}; {patch}"
        )
    days = int((end - now) // _DAY)
    if end <= now:
        text = f"webhook {name}: the CA in its caBundle has expired; issue a new one, {patch}"
        return Line(state="fail", text=text)
    stated = raw.text(hook.get("failurePolicy"))
    if stated != policy:
        text = (
            f"webhook {name} has failurePolicy {stated}; {policy} is what is shipped, see {README}"
        )
        return Line(state="warn", text=text)
    if end - now < _SOON:
        text = f"webhook {name}: the CA in its caBundle expires in {days} days; {patch}"
        return Line(state="warn", text=text)
    return Line(state="ok", text=f"webhook {name}: failurePolicy {policy}, CA good for {days} days")


def _end(bundle: str) -> float:
    """Give when the last CA of a caBundle expires.

    Raises:
        ValueError: there is none in it, and why.
    """
    try:
        pem = base64.b64decode(bundle, validate=True).decode("ascii")
        found = ssl.create_default_context(cadata=pem).get_ca_certs()
    except (ValueError, ssl.SSLError) as error:
        raise ValueError("it is no PEM in base64") from error
    ends = [ssl.cert_time_to_seconds(str(item["notAfter"])) for item in found]
    if not ends:
        raise ValueError("it has no CA certificate")
    return max(ends)


def _serving(cluster: Cluster, hooks: list[raw.JsonObject], now: float) -> Line:
    """Tell of the certificate in the Secret: until when it is good, and whether all trust it."""
    namespace = raw.text(raw.at(hooks[0], ("clientConfig", "service", "namespace"))) or _NAMESPACE
    label = f"the serving certificate (Secret {namespace}/{_SECRET})"
    try:
        data = raw.strings(cluster.secret(namespace, _SECRET).get("data"))
    except listing.StatusError as error:
        text = f"{label} was not looked at: {error}; the right is get on this Secret"
        return Line(state="note" if error.status == 403 else "warn", text=text)
    try:
        pair = tls_pair.Pair.decoded(data)
        end = tls_pair.end(pair)
        for hook in hooks:
            tls_pair.trust(pair, bundle=_bundle(hook), name=_host(hook))
    except tls_pair.RefusedError as error:
        text = f"{label}: {error}; {README} says how it is issued"
        return Line(state="fail", text=text)
    left = end - now
    good = f"good for {int(left // _DAY)} days"
    if left < _LEAF_SOON:
        return Line(state="warn", text=f"{label} expires within a day; is it being renewed?")
    return Line(state="ok", text=f"{label} is {good}, and each webhook's caBundle trusts it")


def _bundle(hook: raw.JsonObject) -> str:
    try:
        text = raw.text(raw.at(hook, ("clientConfig", "caBundle")))
        return base64.b64decode(text, validate=True).decode("ascii")
    except ValueError:
        return ""


def _host(hook: raw.JsonObject) -> str:
    """Give the name by which the API server calls a webhook."""
    service = raw.mapping(raw.at(hook, ("clientConfig", "service")))
    if service:
        return f"{service.get('name')}.{service.get('namespace')}.svc"
    return urlsplit(raw.text(raw.at(hook, ("clientConfig", "url")))).hostname or ""
