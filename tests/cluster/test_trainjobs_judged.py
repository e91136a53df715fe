"""TrainJobs at `kubectl apply`: refused, warned of, or untouched, by the runtime that they name."""

import pytest
import yaml

import builders
from cluster import support
from tfadmit_webhook import policy

EXAMPLES = support.ROOT / "webhook/tfadmit_webhook/policy/examples"
GOLDEN = support.ROOT / "tests/golden/policy"
RULES = [rule for rule in policy.rules() if "runtime" not in rule.subjects]
BY_ID = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
# The API server shows no more of a warning.
WARNING = 256
LONG = "mnist-with-a-learning-rate-of-0-0005-and-batches-of-1024"


@pytest.fixture
def runtime(cluster, namespace, tfadmit):
    """A TensorFlow runtime of the test's own namespace."""
    cluster.apply(support.shipped_runtime(name="tensorflow", namespace=namespace))
    return "tensorflow"


@pytest.fixture
def torch(cluster, namespace, tfadmit):
    """The same for another framework."""
    content = support.shipped_runtime(name="torch", namespace=namespace)
    content["metadata"]["labels"] = {"trainer.kubeflow.org/framework": "torch"}
    cluster.apply(content)
    return "torch"


def example(cluster, namespace, name):
    """Apply the two objects of an example in the test's namespace; tell of the TrainJob."""
    runtime, trainjob = yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text())
    runtime["kind"] = "TrainingRuntime"
    runtime["metadata"]["namespace"] = trainjob["metadata"]["namespace"] = namespace
    trainjob["spec"]["runtimeRef"]["kind"] = "TrainingRuntime"
    trainjob["spec"]["suspend"] = True
    cluster.apply(runtime)
    return support.applied(cluster, trainjob)


def expected(rule, namespace, level):
    """The promised sentences; examples name a runtime of the cluster, tests one of a namespace."""
    lines = (GOLDEN / f"{rule.id}.txt").read_text().splitlines()
    sentences = [line.partition(": ")[2] for line in lines if line.startswith(level)]
    assert all(len(sentence) <= WARNING for sentence in sentences) or level == "deny"
    return [
        sentence.replace(
            "ClusterTrainingRuntime tensorflow", f"TrainingRuntime {namespace}/tensorflow"
        ).replace("get clustertrainingruntime`", f"get trainingruntime -n {namespace}`")
        for sentence in sentences
    ]


@BY_ID
def test_a_failing_example_gets_exactly_its_sentences(cluster, namespace, tfadmit, rule):
    result = example(cluster, namespace, f"{rule.id}-failing")
    denied, warned = (expected(rule, namespace, level) for level in ("deny", "warn"))
    assert support.warnings(result) == warned
    if rule.id == "TFA015":
        # Trainer itself refuses it, and our warning says where it was looked for.
        assert result.returncode == 1
        assert "validator.trainjob.trainer.kubeflow.org" in result.stderr
        return
    assert support.denied(result) == denied
    assert result.returncode == (1 if denied else 0), result.stderr


@BY_ID
def test_a_passing_example_is_accepted_in_silence(cluster, namespace, tfadmit, rule):
    result = example(cluster, namespace, f"{rule.id}-passing")
    assert (result.returncode, result.stderr) == (0, "")


def test_the_longest_name_that_is_told_is_the_longest_that_jobset_takes(
    cluster, namespace, runtime
):
    told = support.applied(
        cluster, support.trainjob(namespace, runtime=runtime, name=LONG, numNodes=11)
    )
    assert told.returncode == 1
    assert "TFA014 metadata.name has 56 characters" in told.stderr
    assert told.stderr.rstrip().endswith("fix: a name of at most 47 characters")
    job = support.trainjob(namespace, runtime=runtime, name="x" * 47, numNodes=11)
    assert support.applied(cluster, job).returncode == 0
    made = support.pods(cluster, namespace, count=11)
    assert max(len(pod["metadata"]["name"]) for pod in made) == 63
    group = builders.make_replicated_job(completions=11)
    longer = support.jobset(namespace, group, name="x" * 48)
    assert "will exceed 63 characters" in support.refusal(cluster, longer, dry_run=True)


def test_warnings_are_shown(cluster, namespace, runtime):
    env = [{"name": "TF_CONFIG", "value": "{}"}]
    image = "nvcr.io/nvidia/tensorflow:25.02-tf2-py3"
    job = support.trainjob(namespace, runtime=runtime, numNodes=2, env=env, image=image)
    result = support.applied(cluster, job, dry_run=True)
    assert result.returncode == 0
    assert "Warning: TFA010 spec.trainer.env[0] sets TF_CONFIG" in result.stderr
    assert "Warning: TFA017 spec.trainer.image nvcr.io/nvidia/tensorflow:25.02" in result.stderr


def test_a_runtime_that_is_being_deleted_is_warned_of(cluster, namespace, runtime):
    # Trainer's own finalizer keeps it while TrainJobs use it; this one stands for it.
    held = support.shipped_runtime(name=runtime, namespace=namespace)
    held["metadata"]["finalizers"] = ["tfadmit.dev/test"]
    cluster.apply(held)
    cluster.delete("TrainingRuntime", runtime, namespace)
    job = support.trainjob(namespace, runtime=runtime)
    result = support.applied(cluster, job, dry_run=True)
    held["metadata"]["finalizers"] = []
    cluster.apply(held)
    assert f"Warning: TFA015 spec.runtimeRef.name names TrainingRuntime {namespace}/" in (
        result.stderr
    )
    assert "which is being deleted" in result.stderr


def test_a_trainjob_of_another_framework_is_untouched(cluster, namespace, torch):
    env = [{"name": "TF_CONFIG", "value": "{}"}]
    job = support.trainjob(namespace, runtime=torch, name=LONG, numNodes=11, env=env)
    result = support.applied(cluster, job, dry_run=True)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_trainjob_that_was_there_before_can_be_resumed_and_deleted(
    cluster, namespace, runtime, tfadmit
):
    job = support.trainjob(namespace, runtime=runtime, name=LONG, numNodes=11)
    job["spec"]["suspend"] = True
    with tfadmit.stopped():
        assert support.applied(cluster, job).returncode == 0
    job["spec"]["suspend"] = False
    resumed = support.applied(cluster, job)
    assert (resumed.returncode, resumed.stderr) == (0, "")
    cluster.delete("TrainJob", LONG, namespace)


def test_with_the_server_stopped_trainjobs_are_accepted(
    cluster, namespace, runtime, torch, tfadmit
):
    jobs = [
        support.trainjob(namespace, runtime=name, name=f"{name}-{'x' * 45}", numNodes=11)
        for name in (runtime, torch)
    ]
    with tfadmit.stopped():
        result = support.applied(cluster, *jobs, dry_run=True)
    assert (result.returncode, result.stderr) == (0, "")
    # once it is back they are judged again
    assert support.applied(cluster, *jobs, dry_run=True).returncode == 1
