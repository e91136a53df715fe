"""Manifests as a source of look-ups."""

import json

import builders
from tfadmit_webhook import objects_file

NAME = "tensorflow-distributed"


def load(*objects):
    content = objects_file.load("\n---\n".join(json.dumps(item) for item in objects))
    assert isinstance(content, objects_file.Content)
    return content


def test_runtimes_of_both_kinds_are_found():
    content = load(builders.make_runtime(), {**builders.make_runtime(), "kind": "TrainingRuntime"})
    reader = objects_file.Objects(content.workloads, runtimes=content.runtimes)
    assert reader.runtime(kind="ClusterTrainingRuntime", namespace="", name=NAME, timeout=1)
    # kubectl would put it into `default`
    assert reader.runtime(kind="TrainingRuntime", namespace="default", name=NAME, timeout=1)
    assert reader.runtime(kind="TrainingRuntime", namespace="team", name=NAME, timeout=1) is None


def test_jobsets_and_runtimes_stand_in_one_file():
    content = load(builders.make_jobset(), builders.make_runtime())
    assert [work.name for work in content.workloads] == ["mnist"]
    assert [item["metadata"]["name"] for item in content.runtimes] == [NAME]
