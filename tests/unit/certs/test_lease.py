"""The Lease: one holder, taken over when it is not renewed, at once when it is given away."""

from datetime import datetime, timezone
from typing import Any

import pytest

from tfadmit_certs import kube, lease


class Objects:
    """The Lease of an API server; `fails` are errors of the next requests."""

    def __init__(self):
        self.item: dict[str, Any] | None = None
        self.version = 0
        self.fails = []

    def read(self):
        if self.fails:
            raise self.fails.pop(0)
        return self.item

    def create(self, spec):
        if self.item:
            raise kube.ConflictError("409", status=409)
        self._store(spec)

    def replace(self, item, spec):
        assert self.item
        if item["metadata"]["resourceVersion"] != self.item["metadata"]["resourceVersion"]:
            raise kube.ConflictError("409", status=409)
        self._store(spec)

    def _store(self, spec):
        self.version += 1
        self.item = {"metadata": {"resourceVersion": str(self.version)}, "spec": dict(spec)}


class Clock:
    now = 100.0


@pytest.fixture(name="objects")
def make_objects():
    return Objects()


@pytest.fixture(name="clock")
def make_clock():
    return Clock()


@pytest.fixture(name="candidate")
def make_candidate(objects, clock):
    def candidate(identity):
        timing = lease.Timing(
            monotonic=lambda: clock.now,
            wall=lambda: datetime.fromtimestamp(1_900_000_000 + clock.now, tz=timezone.utc),
            chance=lambda: 0.5,
        )
        return lease.Lease(objects, identity=identity, timing=timing)

    return candidate


def test_the_first_gets_it_and_the_second_waits(candidate, objects):
    one, two = candidate("one"), candidate("two")
    one.attempt()
    two.attempt()
    assert (one.held, two.held) == (True, False)
    assert objects.item["spec"] == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 10,
        "acquireTime": "2030-03-17T17:48:20.000000Z",
        "renewTime": "2030-03-17T17:48:20.000000Z",
        "leaseTransitions": 0,
    }


def test_renewed_it_is_kept(candidate, objects, clock):
    one, two = candidate("one"), candidate("two")
    for _ in range(20):
        one.attempt()
        two.attempt()
        clock.now += 2
    assert (one.held, two.held) == (True, False)
    assert objects.item["spec"]["acquireTime"] < objects.item["spec"]["renewTime"]
    assert objects.item["spec"]["leaseTransitions"] == 0


def test_not_renewed_its_holder_stops_before_another_begins(candidate, objects, clock):
    one, two = candidate("one"), candidate("two")
    one.attempt()
    held = []
    for _ in range(15):
        two.attempt()
        held.append((one.held, two.held))
        clock.now += 1
    assert (True, True) not in held
    assert held[6] == (True, False)
    assert held[7] == (False, False)
    # Taken after 10 s without a renewal.
    assert held[11] == (False, True)
    assert objects.item["spec"]["leaseTransitions"] == 1


def test_clocks_need_not_agree(candidate, objects, clock):
    """What the other writes about time is only compared with what he wrote before."""
    two = candidate("two")
    objects.create({"holderIdentity": "one", "renewTime": "1999-01-01T00:00:00.000000Z"})
    two.attempt()
    assert not two.held
    clock.now += 5
    two.attempt()
    assert not two.held


def test_given_away_it_is_taken_at_once(candidate, objects):
    one, two = candidate("one"), candidate("two")
    one.attempt()
    one.release()
    assert not one.held
    assert objects.item["spec"]["holderIdentity"] == ""
    two.attempt()
    assert two.held


def test_one_that_never_held_it_gives_nothing_away(candidate, objects):
    one, two = candidate("one"), candidate("two")
    one.attempt()
    two.attempt()
    two.release()
    assert objects.item["spec"]["holderIdentity"] == "one"


def test_a_holder_that_comes_back_under_its_name_goes_on(candidate, clock):
    candidate("one").attempt()
    again = candidate("one")
    again.attempt()
    assert again.held


def test_errors_do_not_lose_it_before_the_deadline(candidate, objects, clock):
    one = candidate("one")
    one.attempt()
    objects.fails = [kube.ApiError("no")] * 2
    for _ in range(2):
        clock.now += 3
        with pytest.raises(kube.ApiError):
            one.attempt()
        assert one.held
    clock.now += 2
    assert not one.held


def test_somebody_faster_wins(candidate, objects, monkeypatch):
    one, two = candidate("one"), candidate("two")
    seen = objects.read

    def read():
        found = seen()
        monkeypatch.setattr(objects, "read", seen)
        two.attempt()
        return found

    monkeypatch.setattr(objects, "read", read)
    one.attempt()
    assert (one.held, two.held) == (False, True)


def test_a_slow_answer_counts_from_the_question(candidate, objects, clock, monkeypatch):
    one = candidate("one")
    create = objects.create

    def slow(spec):
        create(spec)
        clock.now += 6.5

    monkeypatch.setattr(objects, "create", slow)
    one.attempt()
    assert one.held
    clock.now += 1
    assert not one.held
