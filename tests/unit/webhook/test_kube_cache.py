"""What is remembered of JobSets, and for how long."""

import pytest

import builders
from tfadmit_webhook.kube.cache import UNCONFIRMED_SECONDS, Cache


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def cache(clock):
    return Cache(clock=clock)


def jobset(version, *, uid="one", completions=3, **fields):
    item = builders.make_jobset(
        builders.make_replicated_job(completions=completions), uid=uid, **fields
    )
    item["metadata"]["resourceVersion"] = str(version)
    return item


def size(cache):
    found = cache.get(namespace="team", name="mnist")
    return found and found.groups[0].size


def test_only_the_projection_is_kept(cache):
    cache.put(jobset(1))
    assert cache.get(namespace="team", name="mnist").uid == "one"
    assert cache.get(namespace="other", name="mnist") is None


def test_a_list_replaces_everything(cache):
    cache.put(jobset(1, name="old"))
    cache.replace([jobset(2)])
    assert cache.get(namespace="team", name="old") is None
    assert len(cache) == 1


def test_a_live_answer_that_is_newer_is_taken(cache):
    cache.put(jobset(5, completions=3))
    assert cache.offer(jobset(7, completions=8)).groups[0].size == 8
    assert size(cache) == 8


@pytest.mark.parametrize("version", [4, 5])
def test_a_live_answer_that_is_not_newer_is_given_but_not_taken(cache, version):
    cache.put(jobset(5, completions=3))
    assert cache.offer(jobset(version, completions=8)).groups[0].size == 8
    assert size(cache) == 3


def test_versions_are_compared_as_numbers(cache):
    cache.put(jobset(99, completions=3))
    cache.offer(jobset(100, completions=8))
    assert size(cache) == 8


@pytest.mark.parametrize("version", ["abc", "", "\u0661\u0660\u0660"])
def test_a_version_that_is_no_number_never_wins_over_the_watch(cache, version):
    cache.put(jobset(99, completions=3))
    cache.offer(jobset(version, completions=8))
    assert size(cache) == 3
    cache.put(jobset(version, completions=9))
    assert size(cache) == 9


def test_an_old_event_does_not_undo_a_newer_live_answer(cache):
    cache.offer(jobset(7, completions=8))
    cache.put(jobset(5, completions=3))
    assert size(cache) == 8


def test_the_watch_confirms_a_live_answer(cache, clock):
    cache.offer(jobset(7))
    cache.put(jobset(7))
    clock.now = UNCONFIRMED_SECONDS + 1
    assert size(cache) == 3


def test_a_live_answer_after_the_deletion_does_not_live_for_ever(cache, clock):
    """The answer was on its way while the JobSet was deleted; no event will take it away."""
    cache.put(jobset(5))
    cache.remove(jobset(6))
    cache.offer(jobset(5))
    assert size(cache) == 3
    clock.now = UNCONFIRMED_SECONDS
    assert size(cache) is None
    cache.sweep()
    assert len(cache) == 0


def test_a_deletion_takes_the_jobset_away_even_when_a_live_answer_is_newer(cache):
    cache.offer(jobset(9))
    cache.remove(jobset(8))
    assert size(cache) is None


def test_a_deletion_of_the_former_one_leaves_its_successor(cache):
    cache.offer(jobset(9, uid="two"))
    cache.remove(jobset(8, uid="one"))
    assert cache.get(namespace="team", name="mnist").uid == "two"


def test_a_list_keeps_a_fresh_live_answer_and_drops_an_old_one(cache, clock):
    cache.offer(jobset(9))
    cache.replace([])
    assert size(cache) == 3
    clock.now = UNCONFIRMED_SECONDS
    cache.replace([])
    assert len(cache) == 0


def test_a_list_that_is_newer_than_a_live_answer_wins(cache):
    cache.offer(jobset(9, completions=3))
    cache.replace([jobset(10, completions=4)])
    assert size(cache) == 4


def test_not_found_takes_away_only_what_the_watch_has_not_confirmed(cache):
    cache.offer(jobset(9))
    cache.forget(namespace="team", name="mnist")
    assert len(cache) == 0
    cache.put(jobset(9))
    cache.forget(namespace="team", name="mnist")
    assert len(cache) == 1
