"""Each fault of a TF_CONFIG that facts-tensorflow.md lists, and what we say instead."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfadmit_trainer import contract, tfconfig
from tfadmit_trainer.fault import SetupError

WORKERS = {"worker": ["a.j:1", "b.j:1"]}


def config(cluster=WORKERS, task=None):
    return json.dumps({"cluster": cluster, "task": task or {"type": "worker", "index": 1}})


def task_of(text):
    task = tfconfig.read(text).task
    assert task
    return task


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "set but empty"),
        ("  ", "set but empty"),
        (config() + "}", "a brace too many at the end"),
        (config()[:-1] + ",}", "a comma before the closing brace"),
        ("{'cluster': {}}", "JSON wants double quotes"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "must be a JSON object"),
        ('{"cluster":{"worker":["a:1"]}}', "does not say which task this is"),
        (config(task={"type": "worker"}), "does not say which task this is"),
        (config(task={"type": "worker", "index": 2}), "only worker 0 to 1"),
        (config(task={"type": "ps", "index": 0}), "has no ps at all"),
        (config(task={"type": "worker", "index": -1}), "write a number from 0"),
        (config(task={"type": "worker", "index": True}), "write a number from 0"),
        (config(task={"type": "worker", "index": "one"}), "write a number from 0"),
        (config(task={"type": "Worker", "index": 0}), "write it in small letters, 'worker'"),
        (config({"Worker": ["a:1"]}), "write it in small letters, 'worker'"),
        (config({"master": ["a:1"]}), "TensorFlow 2 calls it chief"),
        (config({"gpu": ["a:1"]}), "use chief, worker, ps, evaluator"),
        (config({"worker": "a:1"}), "cluster.worker must be a list"),
        (config({"worker": [1]}), "cluster.worker must be a list"),
        (config([1]), "cluster must be an object of lists"),
        (config({"worker": ["127.0.0.1", "b:1"]}), "cluster.worker[0]: '127.0.0.1'"),
        (config({"worker": ["a:1", "http://b:1"]}), "leave out the scheme, write 'b:1'"),
        (config({"worker": ["a-{0..3}:1"]}), "wants each one written out"),
        (config({"worker": ["a:1", "a:1"]}), "lists 'a:1' twice"),
        (config({"chief": ["a:1", "b:1"]}), "more than one chief"),
    ],
)
def test_a_broken_tf_config_is_refused_with_a_sentence(text, says):
    with pytest.raises(SetupError) as caught:
        tfconfig.read(text)
    assert says in str(caught.value)
    assert str(caught.value).startswith("TF_CONFIG")
    assert len(str(caught.value)) < 400


def test_a_sound_one_gives_the_task_and_its_cluster():
    task = task_of(config())
    assert (task.role, task.index) == ("worker", 1)
    assert task.cluster == contract.Cluster(worker=("a.j:1", "b.j:1"))


def test_an_index_in_quotes_is_accepted_as_tensorflow_does():
    assert task_of(config(task={"type": "worker", "index": "1"})).index == 1


@pytest.mark.parametrize("text", ["{}", '{"task":{"type":"worker","index":0}}', '{"cluster":{}}'])
def test_one_without_a_cluster_is_a_task_alone(text):
    assert tfconfig.read(text).task is None


def test_an_evaluator_need_not_stand_in_the_cluster():
    task = task_of(config(task={"type": "evaluator", "index": 0}))
    assert task.role == "evaluator"
    assert task.cluster.worker == ("a.j:1", "b.j:1")


def test_an_evaluator_in_the_cluster_of_a_worker_is_left_out_and_told():
    read = tfconfig.read(config({**WORKERS, "evaluator": ["e.j:1"]}))
    assert read.evaluator_for_all
    assert read.task
    assert read.task.cluster.evaluator == ()


def test_it_is_the_same_whatever_its_spaces_and_order():
    task = contract.Task(contract.Cluster(worker=("a.j:1", "b.j:1")), "worker", 1)
    assert tfconfig.same(json.dumps(json.loads(config()), indent=2, sort_keys=True), task=task)
    assert not tfconfig.same(config(task={"type": "worker", "index": 0}), task=task)
    assert not tfconfig.same("{", task=task)


@given(
    st.text(max_size=60)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["cluster", "task", "type", "index", "worker", "ps"]), inner
            )
        ),
    ).map(json.dumps)
)
def test_whatever_it_is_it_is_read_or_refused(text):
    with contextlib.suppress(SetupError):
        tfconfig.read(text)
