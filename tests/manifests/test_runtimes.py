"""The runtimes with several roles or one task, and their variants: a gang, an evaluator."""

from __future__ import annotations

import subprocess
import sys

import pytest

import admission
from manifests import shipped
from tfadmit_webhook import policy
from tfadmit_webhook.settings import Settings

VARIANTS = {
    "volcano": ["tensorflow-ps-volcano", "tensorflow-single-volcano"],
    "coscheduling": ["tensorflow-ps-coscheduling", "tensorflow-single-coscheduling"],
    "evaluator": ["tensorflow-ps-evaluator"],
}


def variant(name):
    rendered = shipped.kustomize(shipped.DEPLOY / "variants" / name)
    assert rendered.returncode == 0, rendered.stderr
    return {item["metadata"]["name"]: item for item in shipped.parse(rendered.stdout)}


def jobs(runtime):
    spec = runtime["spec"]["template"]["spec"]
    return {job["name"]: job["template"]["spec"] for job in spec["replicatedJobs"]}


def pod(job):
    return job["template"]["spec"]


def container(job):
    (found,) = pod(job)["containers"]
    return found


@pytest.fixture
def ps():
    (found,) = shipped.read("runtimes/tensorflow-ps.yaml")
    return found


@pytest.fixture
def single():
    (found,) = shipped.read("runtimes/tensorflow-single.yaml")
    return found


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_has_these_runtimes_and_no_finding(name):
    found = variant(name)
    assert list(found) == VARIANTS[name]
    for content in found.values():
        labelled = admission.admit(content, path="/mutate/runtimes")
        assert policy.judge_runtime(labelled, settings=Settings()) == ()


@pytest.mark.parametrize("name", ["volcano", "coscheduling"])
def test_a_gang_differs_by_its_policy_and_its_scheduler_only(name, ps, single):
    scheduler = {"volcano": "volcano", "coscheduling": "scheduler-plugins-scheduler"}[name]
    for original, content in zip((ps, single), variant(name).values(), strict=True):
        assert list(content["spec"].pop("podGroupPolicy")) == [name]
        for job in jobs(content).values():
            assert pod(job).pop("schedulerName") == scheduler
        assert content["spec"] == original["spec"]


def test_the_evaluator_is_one_more_job_and_all_else_is_the_same(ps):
    (content,) = variant("evaluator").values()
    evaluator = content["spec"]["template"]["spec"]["replicatedJobs"].pop()
    assert evaluator["name"] == "evaluator"
    chief = jobs(ps)["chief"]
    assert evaluator["template"]["spec"] == chief
    assert content["spec"] == ps["spec"]


def test_the_workers_are_the_step_of_trainer_and_the_chief_ends_the_training(ps):
    spec = ps["spec"]["template"]["spec"]
    assert [job["name"] for job in spec["replicatedJobs"]] == ["chief", "node", "ps"]
    steps = [job["template"].get("metadata") for job in spec["replicatedJobs"]]
    step = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    assert steps == [None, step, None]
    assert spec["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["chief"]}


def test_failures_follow_the_recipe_of_the_other_runtimes(ps, single):
    (other,) = shipped.read("runtimes/tensorflow-distributed.yaml")
    (recipe,) = jobs(other).values()
    for runtime in (ps, single):
        spec = runtime["spec"]["template"]["spec"]
        assert spec["failurePolicy"] == other["spec"]["template"]["spec"]["failurePolicy"]
        assert spec["network"] == {"publishNotReadyAddresses": True}
        for job in jobs(runtime).values():
            assert job["podFailurePolicy"] == recipe["podFailurePolicy"]
            assert job["backoffLimit"] == 0
            assert pod(job)["restartPolicy"] == "Never"


def test_a_single_task_has_one_job_as_the_sdk_wants_it(single):
    assert list(jobs(single)) == ["node"]
    assert single["spec"]["mlPolicy"] == {"numNodes": 1}
    assert container(jobs(single)["node"])["name"] == "node"


def test_all_roles_run_the_program_of_the_workers(ps):
    (with_evaluator,) = variant("evaluator").values()
    found = {**jobs(with_evaluator), **jobs(ps)}
    assert list(found) == ["chief", "node", "ps", "evaluator"]
    assert "image" in container(found.pop("node"))
    assert [container(job) for job in found.values()] == [
        {"name": "node", "terminationMessagePolicy": "FallbackToLogsOnError"}
    ] * 3


def without_a_cluster(ps, role):
    """What the program of the runtime says in a task of this role that has no TF_CONFIG."""
    _, *words = container(jobs(ps)["node"])["command"]
    ended = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env={"TF_TASK_TYPE": role},
    )
    assert ended.returncode == 1  # not started again: podFailurePolicy
    return ended.stderr


@pytest.mark.parametrize("role", ["chief", "evaluator"])
def test_a_chief_or_evaluator_without_a_program_says_so_and_fails_at_once(ps, role):
    said = f"The {role} has no program: spec.trainer.command of the TrainJob brings it.\n"
    assert without_a_cluster(ps, role) == said


@pytest.mark.parametrize("role", ["worker", "ps"])
def test_a_server_without_a_cluster_says_so_and_fails_at_once(ps, role):
    assert without_a_cluster(ps, role).startswith("no TF_CONFIG: is tfadmit there")
