"""Subject alternative names: the DNS names and IP addresses that a certificate may stand for.

Here: checking and normalising what people type, with all faults at once. Not here: X.509 (that is
`bundle` and `issue`). Standard library only, so that the command line can import it early. No I/O.
"""

import contextlib
import ipaddress
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from tfadmit_certs import fault

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
_Name = TypeVar("_Name")

# RFC 1123 §2.1: letters, digits, inner hyphens, 63 octets (RFC 1035 §2.3.4) and no underscore.
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
# RFC 1035 §2.3.4 allows 255 octets on the wire: 253 as text, without the final dot.
_MAX_NAME = 253


class NamesError(fault.CertsError):
    """Names that cannot stand in a certificate; `problems` holds one sentence per bad name."""

    def __init__(self, headline: str, *, problems: Iterable[str] = ()) -> None:
        self.problems = tuple(problems)
        super().__init__("\n  ".join((headline, *self.problems)))


@dataclass(frozen=True, kw_only=True)
class Names:
    """Checked names: DNS names in lower case, A-labels for IDN; no duplicates, order kept."""

    dns: tuple[str, ...] = ()
    ips: tuple[IPAddress, ...] = ()

    def __str__(self) -> str:
        """The names as people write them, DNS names first."""
        return ", ".join((*self.dns, *map(str, self.ips)))

    def __len__(self) -> int:
        """How many names there are."""
        return len(self.dns) + len(self.ips)


def check(*, dns: Iterable[str] = (), ips: Iterable[str] = ()) -> Names:
    """The names, normalised.

    Raises:
        NamesError: names every bad one, or says that there is none at all.
    """
    problems: list[str] = []
    names = Names(
        dns=_collect("DNS name", dns, _dns_name, problems),
        ips=_collect("IP address", ips, _ip_address, problems),
    )
    if problems:
        count = f"{len(problems)} name{'s' if len(problems) > 1 else ''}"
        raise NamesError(f"{count} cannot stand in a certificate:", problems=problems)
    if not names:
        raise NamesError("a certificate needs a name: give a DNS name or an IP address")
    return names


def _collect(
    kind: str, values: Iterable[str], parse: Callable[[str], _Name], problems: list[str]
) -> tuple[_Name, ...]:
    good: dict[_Name, None] = {}  # a dict keeps the order and drops duplicates
    for value in values:
        with _noting(problems, what=f"{kind} {value!r}"):
            good[parse(value)] = None
    return tuple(good)


@contextlib.contextmanager
def _noting(problems: list[str], *, what: str) -> Iterator[None]:
    try:
        yield
    except ValueError as reason:
        problems.append(f"{what}: {reason}")


def _dns_name(value: str) -> str:
    """Normalise one DNS name; ValueError says what is wrong with it."""
    if is_ip(value):
        raise ValueError("this is an IP address: give it as one (--ip)")
    # A final dot is right in a zone file; X.509 (RFC 5280 §4.2.1.6) and SNI have none.
    name = _to_ascii(value.removesuffix("."))
    if len(name) > _MAX_NAME:
        raise ValueError(f"{len(name)} characters are too many, {_MAX_NAME} fit")
    wildcard = name.startswith("*.")
    labels = name.removeprefix("*.").split(".")
    for label in labels:
        _check_label(label)
    # OpenSSL, and so Python, matches no wildcard directly below a top-level name.
    if wildcard and len(labels) < 2:
        raise ValueError("a wildcard needs two labels after it, such as '*.team.svc'")
    # RFC 1123 §2.1: the last label is never all digits, or '10.0.0' could not be told from an IP.
    if labels[-1].isdigit():
        raise ValueError("the last label is a number: this looks like a broken IP address")
    return name


def _check_label(label: str) -> None:
    if not label:
        raise ValueError("a label is empty: remove the surplus dot")
    if label == "*":
        raise ValueError("a wildcard must be the first label, with a name after it")
    if len(label) > 63:
        raise ValueError(f"the label '{label[:12]}…' has {len(label)} characters, 63 fit")
    if not _LABEL.fullmatch(label):
        raise ValueError(f"the label {label!r} may hold only a-z, 0-9 and hyphens inside")


def _to_ascii(name: str) -> str:
    """Lower case, and A-labels (`xn--…`) where the name is not ASCII.

    Python's codec speaks IDNA 2003, browsers and resolvers IDNA 2008. Both agree on every name that
    survives the way there and back; the others ('ß' would become 'ss') are refused, not guessed.
    """
    if name.isascii():
        return name.lower()
    wildcard = "*." if name.startswith("*.") else ""
    plain = unicodedata.normalize("NFC", name.removeprefix("*.")).lower()
    try:
        encoded = plain.encode("idna")
        same = encoded.decode("idna") == plain
    except UnicodeError:
        same = False
    if not same:
        raise ValueError("it has no unambiguous ASCII form: write its A-labels ('xn--…') yourself")
    return wildcard + encoded.decode("ascii")


def _ip_address(value: str) -> IPAddress:
    """Parse one address; ValueError says what is wrong with it."""
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        hint = ": leave out the brackets" if value.startswith("[") else ""
        hint = ": name the address, not the network" if "/" in value else hint
        raise ValueError(f"neither an IPv4 nor an IPv6 address{hint}") from None
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id:
        raise ValueError(f"leave out the zone '%{address.scope_id}': X.509 has no place for it")
    return address


def is_ip(value: str) -> bool:
    """Is it an IP address, in the form that `check` takes?"""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True
