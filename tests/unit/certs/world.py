"""A cluster in memory for the controller: two Secrets, two configurations, servers with leaves.

After every write it checks what must never be: a leaf that lives and was trusted by a webhook is
not trusted by it any more, or a new leaf that a webhook does not trust.
"""

import base64
import copy
from datetime import datetime, timedelta
from typing import Any

import jsonpatch

from tfadmit_certs import (
    bundle,
    controller,
    hooks,
    issue,
    kube,
    names,
    plan,
    san,
    secret,
    state,
    steps,
)
from tfadmit_certs.lifetimes import Lifetimes
from unit.certs import builders

NAMES = names.Names(namespace="team", service="hook")
WISH = plan.Wish(names=san.check(dns=["hook.team.svc"]), lifetimes=Lifetimes())
WORKSHOP = steps.Workshop(wish=WISH, entropy=issue.system_entropy())
OURS = {"service": {"namespace": "team", "name": "hook", "path": "/x"}}


class World:
    def __init__(self, *, now=builders.NOW):
        self.now = now
        self.monotonic = 0.0
        self.secrets = {}
        self.configurations = {}
        self.leaves = set()
        self.writes = []
        self.violations = []
        self._version = 0
        self._trusted_pairs = set()
        self._held_since = {}
        # Called before each request: what others do between two of them.
        self.before_request = lambda: None
        self.leading = True
        self.monitor = Monitor()

    def __repr__(self):
        """What hypothesis shows of a state that fails."""
        view, elapsed = self.look(), self.now - builders.NOW
        return f"{elapsed} later: {view}\nafter {self.writes}"

    # What tests put there.

    def put(self, which, data, annotations=None, **fields):
        self.secrets[which] = self._stamped(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": NAMES.secret(which), "annotations": annotations or {}},
                "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
                **fields,
            }
        )

    def configure(self, kind, *bundles):
        """A configuration with a webhook of ours per bundle (None: no caBundle), one foreign."""
        entries = [
            {
                "name": f"w{number}.tfadmit.dev",
                "clientConfig": {
                    **OURS,
                    **({} if pem is None else {"caBundle": bundle.ca_bundle(pem)}),
                },
            }
            for number, pem in enumerate(bundles)
        ]
        foreign = {"service": {"namespace": "team", "name": "other"}, "caBundle": "Zm9yZWlnbg=="}
        entries.append({"name": "foreign.example.com", "clientConfig": foreign})
        metadata = {"name": "tfadmit", "uid": f"uid-{kind}"}
        self.configurations[kind] = self._stamped({"metadata": metadata, "webhooks": entries})

    def begin(self):
        """From here on the checks hold: what is trusted now must stay so."""
        self._remember_leaf()
        self._trusted_pairs = set(self._pairs())
        # What stands there at the beginning has done so for long.
        self._held_since = dict.fromkeys(self._held(), self.monotonic - 3600)

    # What the API server does (kube.Api), for secret.Store.

    def request(self, method, path, *, query=None, body=None, content_type=None):
        self.before_request()
        kind = path.split("/")[4] if path.startswith("/apis") else "secrets"
        items, key = self._place(kind, path)
        if method == "POST":
            if self.secrets.get(which := self._which(body["metadata"]["name"])):
                raise kube.ConflictError("exists", status=409)
            return self._store(self.secrets, which, body)
        item = items.get(key)
        if item is None:
            raise kube.NotFoundError("404", status=404)
        if method == "GET":
            return copy.deepcopy(item)
        if method == "PUT":
            self._guard(item, body["metadata"]["resourceVersion"])
            return self._store(items, key, body)
        if content_type == kube.JSON_PATCH:
            try:
                return self._store(items, key, jsonpatch.apply_patch(item, body))
            except jsonpatch.JsonPatchTestFailed as error:
                raise kube.ConflictError(str(error), status=409) from error
        self._guard(item, body["metadata"]["resourceVersion"])
        return self._store(items, key, self._applied(item, body))

    def _objects(self):
        api: Any = self
        return secret.Store(api, names=NAMES)

    def _applied(self, item, body):
        """Server-side apply, as far as it is used: entries by name, known ones only."""
        changed = copy.deepcopy(item)
        by_name = {entry["name"]: entry for entry in changed["webhooks"]}
        for entry in body["webhooks"]:
            by_name[entry["name"]]["clientConfig"] |= entry["clientConfig"]
        managers = [{"manager": "kubectl"}, {"manager": "tfadmit-certs"}]
        changed["metadata"]["managedFields"] = managers
        return changed

    def _place(self, kind, path):
        if kind == "secrets":
            return self.secrets, self._which(path.rpartition("/")[2])
        kinds = {name.lower() + "s": name for name in hooks.KINDS}
        return self.configurations, kinds[kind]

    def _which(self, name):
        return {NAMES.secret("ca"): "ca", NAMES.secret("leaf"): "leaf"}.get(name)

    def _guard(self, item, version):
        if item["metadata"]["resourceVersion"] != version:
            raise kube.ConflictError("409", status=409)

    def _store(self, items, key, item):
        old = self._shown(items.get(key))
        items[key] = self._stamped(copy.deepcopy(item))
        if items is self.configurations:
            items[key]["kind"] = key
        self.writes.append(key)
        self._check(new_leaf=key == "leaf" and self._shown(items[key]) != old)
        return items[key]

    def _shown(self, item):
        return ((item or {}).get("data") or {}).get("tls.crt")

    def look(self):
        waiting, self.before_request = self.before_request, lambda: None
        try:
            return self._objects().look()
        finally:
            self.before_request = waiting

    # How time goes by.

    def controller(self):
        """A fresh process: it remembers nothing of the one before."""
        clock = controller.Clock(
            wall=lambda: self.now, monotonic=lambda: self.monotonic, chance=lambda: 0.5
        )
        return controller.Controller(
            self._objects(),
            workshop=WORKSHOP,
            leading=lambda: self.leading,
            monitor=self.monitor,
            clock=clock,
        )

    def pass_time(self, seconds):
        self.now += timedelta(seconds=seconds)
        self.monotonic += seconds
        # A leaf that has ended is nobody's concern.
        self.leaves = {leaf for leaf in self.leaves if leaf.not_valid_after_utc > self.now}

    def settle(self, *, process=None, rounds=200):
        """Rounds of one process, with time jumping over waits, until nothing is left to do soon."""
        process = process or self.controller()
        waits = 0
        for _ in range(rounds):
            wait = process.round()
            # Settling takes 60 s in waits of at most as long: two in a row with nothing in between.
            waits = waits + 1 if wait else 0
            if waits > 2:
                return process
            self.pass_time(wait or 0.01)
        raise AssertionError(f"no rest after {rounds} rounds: {[str(w) for w in self.writes[-8:]]}")

    def decide(self):
        return plan.decide(self.look(), wish=WISH, trusted={}, now=self.now)

    @property
    def authority(self):
        return self.look().authority

    @property
    def leaf(self):
        return self.look().leaf

    def bundles(self):
        return {
            (kind, entry.name): entry.trusts
            for kind, item in self.configurations.items()
            for entry in hooks.read(item, kind=kind, names=NAMES).hooks
        }

    def _check(self, *, new_leaf):
        self._remember_leaf()
        pairs = set(self._pairs())
        for leaf, where in self._trusted_pairs - pairs:
            if leaf in self.leaves:
                self.violations.append(f"{where} stopped trusting a leaf after {self.writes[-1]}")
        held = set(self._held())
        self._held_since = {key: self._held_since.get(key, self.monotonic) for key in held}
        if new_leaf and (leaf := self.leaf.certificate):
            self._check_settled(leaf, pairs)
            self.violations += [
                f"{where} never trusted the new leaf"
                for where in self.bundles()
                if (leaf, where) not in pairs
            ]
        self._trusted_pairs = pairs

    def _check_settled(self, new, pairs):
        """An API server may be a minute behind: only what was there before counts for it."""
        for old, where in pairs:
            if old == new or old not in self.leaves:
                continue
            since = {
                authority: moment
                for (place, authority), moment in self._held_since.items()
                if place == where and bundle.is_issuer(authority, new)
            }
            # With the same CA, whoever trusts the old leaf trusts the new one.
            same = any(bundle.is_issuer(authority, old) for authority in since)
            if not same and self.monotonic - min(since.values(), default=self.monotonic) < 60:
                self.violations.append(f"{where} could not know the CA of the new leaf yet")

    def _held(self):
        for where, pem in self.bundles().items():
            yield from ((where, authority) for authority in bundle.parse_readable(pem or b""))

    def _pairs(self):
        for where, pem in self.bundles().items():
            authorities = bundle.parse_readable(pem or b"")
            for leaf in self.leaves:
                in_date = [a for a in authorities if self.now < a.not_valid_after_utc]
                if any(bundle.is_issuer(authority, leaf) for authority in in_date):
                    yield leaf, where

    def _remember_leaf(self):
        leaf = self.leaf
        if leaf and leaf.certificate and leaf.certificate.not_valid_after_utc > self.now:
            self.leaves.add(leaf.certificate)

    def _stamped(self, item):
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        return item


class Monitor:
    """What the controller tells, in order."""

    def __init__(self):
        self.done = []
        self.healed = []
        self.failures = []
        self.refused = False

    def saw(self, view, *, refused, phase):
        self.refused = refused

    def did(self, step, *, healed):
        self.done.append((step.name, step.word))
        if healed:
            self.healed.append(step.target.kind)

    def failed(self, reason):
        self.failures.append(reason)


def moment(at: datetime) -> str:
    return state.show_moment(at)
