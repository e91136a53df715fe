"""What the types of the settings do not say: bounds of numbers and forms of texts, with reasons.

Checked on the values as they stand in the file, so that a wrong type elsewhere hides nothing. A
value of a wrong type is passed by: the types are checked in `settings_file`. Pure.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tfadmit_trainer import contract
from tfadmit_webhook import raw, settings_duration
from tfadmit_webhook.settings import Certificates, Server

Finding = tuple[raw.Path, str]


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The range of a number, both ends included, and why it ends there."""

    low: float
    high: float
    why: str = ""


_MEBIBYTE = 1024 * 1024

NUMBERS: Final[Mapping[tuple[str, ...], Bound]] = {
    ("defaultPort",): Bound(low=1, high=65535),
    ("maxInlineBytes",): Bound(
        low=1024,
        # 32 pages for the name, "=", the value and the closing zero byte: execve refuses more.
        high=131072 - len("TF_CONFIG=") - 1,
        why="Linux refuses an environment string of 128 KiB (MAX_ARG_STRLEN)",
    ),
    ("server", "processes"): Bound(low=1, high=16),
    ("server", "threads"): Bound(low=1, high=1024),
    ("server", "maxInFlight"): Bound(low=1, high=100_000),
    ("server", "maxBodyBytes"): Bound(
        low=64 * 1024, high=64 * _MEBIBYTE, why="a review carries up to two objects of 3 MiB"
    ),
    ("server", "keepAliveSeconds"): Bound(
        low=91,
        high=3600,
        why="the API server keeps idle connections for 90 s and does not ask again on a closed one",
    ),
    ("server", "defaultTimeoutSeconds"): Bound(
        low=1, high=30, why="the API server waits 30 s at most"
    ),
    ("server", "drainSeconds"): Bound(low=0, high=600),
    ("server", "drainQuietSeconds"): Bound(low=0, high=60),
    ("server", "drainLimitSeconds"): Bound(low=0, high=600),
}


@dataclass(frozen=True, kw_only=True)
class DurationBound:
    """The range of a duration, both ends included, and why it ends there."""

    low: str
    high: str
    why: str = ""


DURATIONS: Final[Mapping[str, DurationBound]] = {
    "caLifetime": DurationBound(low="1h", high="87600h"),
    "caRenewBefore": DurationBound(low="1m", high="87600h"),
    "leafLifetime": DurationBound(
        low="10m", high="9528h", why="as long as public CAs once allowed"
    ),
    "leafRenewBefore": DurationBound(low="1m", high="9528h"),
    "clockSkew": DurationBound(low="0s", high="24h"),
    "settle": DurationBound(
        low="1s", high="1h", why="API servers hear of a new caBundle within seconds"
    ),
}

# Without these an exemption would say nothing; blanks say nothing either.
EXEMPTION_TEXTS: Final = {
    "name": "write the name of the objects, * for all",
    "reason": "say why, for those who find the exemption later",
}

_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
# As the API server checks it (validation.IsRelaxedEnvVarName): printable ASCII without "=".
_ENV_NAME = re.compile(r"[ -<>-~]+")
_OWN_ENV = frozenset(
    (
        contract.TASK_TYPE_ENV,
        contract.TASK_INDEX_ENV,
        contract.NUM_WORKERS_ENV,
        contract.PORT_ENV,
        contract.CHIEF_HOSTS_ENV,
        contract.WORKER_HOSTS_ENV,
        contract.PS_HOSTS_ENV,
        contract.CLUSTER_ENV,
        contract.ATTEMPT_ENV,
        contract.TF_CONFIG_ENV,
    )
)


def number_faults(values: Mapping[str, Any]) -> Iterator[Finding]:
    """Find numbers out of their bounds."""
    for path, bound in NUMBERS.items():
        value = raw.at(values, path)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if not bound.low <= value <= bound.high:
            reason = f": {bound.why}" if bound.why else ""
            yield path, f"is {value}, must be from {bound.low} to {bound.high}{reason}"


def relation_faults(values: Mapping[str, Any]) -> Iterator[Finding]:
    """Find numbers that do not go together."""
    default = Server()
    server = raw.mapping(values.get("server"))
    threads = raw.count(server.get("threads"), default=default.threads)
    in_flight = raw.count(server.get("maxInFlight"), default=default.max_in_flight)
    if in_flight < threads:
        why = "reviews would be sent away while threads are idle"
        path = ("server", "maxInFlight")
        yield path, f"is {in_flight}, fewer than the {threads} threads: {why}"
    limit = _number(server.get("drainLimitSeconds"), default=default.drain_limit_seconds)
    for name, usual in (
        ("drainSeconds", default.drain_seconds),
        ("drainQuietSeconds", default.drain_quiet_seconds),
    ):
        least = _number(server.get(name), default=usual)
        if least > limit:
            why = f"it would never be waited for, drainLimitSeconds is {limit}"
            yield ("server", name), f"is {least}: {why}"


def _number(value: object, *, default: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return default
    return value


def duration_faults(values: Mapping[str, Any]) -> Iterator[Finding]:
    """Find durations that are none, out of their bounds, or that do not go together."""
    stated = raw.mapping(values.get("certificates"))
    found: dict[str, float] = {}
    sound = True
    for name, bound in DURATIONS.items():
        text = stated.get(name, _default_duration(name))
        if not isinstance(text, str):
            sound = False
            continue
        fault = _duration_fault(text, bound, found, name=name)
        if fault:
            sound = False
            yield ("certificates", name), fault
    if sound:
        yield from _certificate_relations(found)


def _duration_fault(text: str, bound: DurationBound, found: dict[str, float], *, name: str) -> str:
    try:
        found[name] = settings_duration.parse(text)
    except ValueError as error:
        return str(error)
    low, high = settings_duration.parse(bound.low), settings_duration.parse(bound.high)
    if low <= found[name] <= high:
        return ""
    reason = f": {bound.why}" if bound.why else ""
    return f"is {text}, must be from {bound.low} to {bound.high}{reason}"


def _certificate_relations(found: Mapping[str, float]) -> Iterator[Finding]:
    if found["leafRenewBefore"] > found["leafLifetime"] * 0.9:
        why = "a new one would be due nearly at once"
        yield ("certificates", "leafRenewBefore"), f"is over nine tenths of leafLifetime: {why}"
    if found["caRenewBefore"] > found["caLifetime"] * 0.9:
        why = "a new one would be due nearly at once"
        yield ("certificates", "caRenewBefore"), f"is over nine tenths of caLifetime: {why}"
    if found["caRenewBefore"] < found["leafLifetime"] + found["settle"]:
        why = "leaves would end with their CA instead of living their time"
        yield ("certificates", "caRenewBefore"), f"is shorter than leafLifetime and settle: {why}"


def _default_duration(name: str) -> str:
    field = re.sub(r"[A-Z]", lambda letter: f"_{letter.group().lower()}", name)
    default: str = getattr(Certificates(), field)
    return default


def text_faults(values: Mapping[str, Any]) -> Iterator[Finding]:
    """Find texts that name nothing."""
    domain = values.get("clusterDomain")
    if isinstance(domain, str) and not _DOMAIN.fullmatch(domain):
        yield ("clusterDomain",), f"is {domain!r}, which is no DNS domain such as cluster.local"
    profiles = [raw.mapping(item) for item in raw.sequence(values.get("networkProfiles"))]
    names = Counter(raw.text(profile.get("name")) for profile in profiles)
    for index, profile in enumerate(profiles):
        path: raw.Path = ("networkProfiles", index)
        name = profile.get("name")
        if name == "":
            yield (*path, "name"), "is empty: the status of the pods carries it"
        elif isinstance(name, str) and names[name] > 1:
            yield (*path, "name"), f"{name!r} stands {names[name]} times: names must differ"
        yield from _resource_faults(profile, path=path)
        yield from _env_faults(profile, path=path)
    for index, item in enumerate(raw.sequence(values.get("exemptions"))):
        yield from _exemption_faults(raw.mapping(item), path=("exemptions", index))


def _resource_faults(profile: raw.JsonObject, *, path: raw.Path) -> Iterator[Finding]:
    resources = profile.get("resources")
    if resources == []:
        yield (*path, "resources"), "is empty, so that no pod ever gets this profile"
    for index, resource in enumerate(raw.sequence(resources)):
        if resource == "":
            yield (*path, "resources", index), "is empty: write the name of a resource"
    if profile.get("attach") == "":
        yield (*path, "attach"), "is empty: leave it out to attach no network"


def _env_faults(profile: raw.JsonObject, *, path: raw.Path) -> Iterator[Finding]:
    for name in raw.mapping(profile.get("env")):
        if name in _OWN_ENV:
            yield (*path, "env", name), "is computed for each pod, a profile cannot set it"
        elif not _ENV_NAME.fullmatch(name):
            yield (*path, "env", name), "is no name of an environment variable"


def _exemption_faults(exemption: raw.JsonObject, *, path: raw.Path) -> Iterator[Finding]:
    for name, advice in EXEMPTION_TEXTS.items():
        value = exemption.get(name)
        if isinstance(value, str) and not value.strip():
            yield (*path, name), f"is empty: {advice}"
    if exemption.get("namespace") == "":
        yield (*path, "namespace"), "is empty: leave it out to mean all"
    elif exemption.get("kind") == "ClusterTrainingRuntime" and exemption.get("namespace"):
        why = "a ClusterTrainingRuntime has none, so that nothing is meant"
        yield (*path, "namespace"), f"{why}: leave it out"
