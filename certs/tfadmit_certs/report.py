"""What was issued, told to people and to programs.

Here: a `files.Delivery` as text or JSON. Not here: printing (`cli`) or deciding anything. No I/O.
"""

import json
from datetime import datetime, timezone

from tfadmit_certs import bundle, files

_CA_DONE = {
    "created": "made a new CA",
    "reused": "reused the CA that was there",
    "replaced": "replaced the CA by a new one",
}
_PURPOSE = {
    files.CA_KEY: "the CA's key: keep it secret, the server does not need it",
    files.CA_CERTIFICATE: "the CA's certificate: what clients trust",
    files.KEY: "the server's key",
    files.CERTIFICATE: "the server's certificate",
}


def as_text(delivery: files.Delivery) -> str:
    """The summary for people; its last line can be pasted into a webhook configuration."""
    leaf, authority = delivery.certificate, delivery.authority
    width = max(len(str(path)) for path in delivery.written)
    lines = [
        f"{_CA_DONE[delivery.ca]} and issued a certificate in {delivery.directory}",
        *(f"  {path!s:{width}}  {_PURPOSE[path.name]}" for path in delivery.written),
        "",
        f"names  {leaf.alt_names}",
        f"valid  {_span(leaf)}{_shortened(delivery)}",
        f"CA     {authority.common_name}, {_span(authority)}",
        "",
        _advice(delivery),
        f"caBundle: {bundle.ca_bundle(delivery.ca_pem)}",
    ]
    return "\n".join(lines)


def as_json(delivery: files.Delivery) -> str:
    """The same for programs; key names as Kubernetes writes them."""
    names = delivery.certificate.alt_names
    document = {
        "directory": str(delivery.directory),
        "ca": {"action": delivery.ca, **_facts(delivery.authority)},
        "certificate": {
            **_facts(delivery.certificate),
            "dnsNames": list(names.dns),
            "ipAddresses": [str(ip) for ip in names.ips],
        },
        "written": [str(path) for path in delivery.written],
        "caBundle": bundle.ca_bundle(delivery.ca_pem),
    }
    return json.dumps(document, indent=2)


def _advice(delivery: files.Delivery) -> str:
    return {
        "created": "put this under clientConfig of each webhook in your webhook configurations:",
        "reused": "the caBundle of your webhook configurations stays as it is:",
        "replaced": "put this in place of the old caBundle in all your webhook configurations:",
    }[delivery.ca]


def _shortened(delivery: files.Delivery) -> str:
    same_end = delivery.certificate.not_after == delivery.authority.not_after
    return " (it ends with its CA)" if same_end else ""


def _span(facts: bundle.Facts) -> str:
    return f"{bundle.show_time(facts.not_before)} to {bundle.show_time(facts.not_after)}"


def _facts(facts: bundle.Facts) -> dict[str, str]:
    return {
        "commonName": facts.common_name,
        "serialNumber": f"{facts.serial:x}",
        "notBefore": _rfc3339(facts.not_before),
        "notAfter": _rfc3339(facts.not_after),
    }


def _rfc3339(moment: datetime) -> str:
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
