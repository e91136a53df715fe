"""Generated pods: whatever the API server can send, the patch applies and loses nothing.

One test with all properties, so that a run with N examples means N pods (`--hypothesis-profile`;
10,000 in CI).
"""

import copy
import json
import os

import jsonpatch
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import admission
import builders
from tfadmit_webhook import facts, review

# Ten thousand pods take a minute or two.
pytestmark = pytest.mark.timeout(1800)

KNOWN_NAMES = [
    "TF_CONFIG",
    "TF_TASK_INDEX",
    "TFADMIT_CLUSTER",
    "NCCL_DEBUG",
    "EPOCHS",
    "JOB_COMPLETION_INDEX",
]
RESOURCES = ["cpu", "nvidia.com/gpu", "nvidia.com/hostdev", "rdma/hca", "memory"]

STORAGE = [
    {"tfadmit.dev/data": "train=s3://bucket/train,pvc://claim/a"},
    {"tfadmit.dev/output": "s3://bucket/results", "tfadmit.dev/store-secret": "keys"},
    {"tfadmit.dev/output": "pvc://claim", "tfadmit.dev/data": "https://example.org/x?a=1,2"},
]
MOUNTS = st.sampled_from(
    [
        None,
        {"name": "mine", "mountPath": "/workspace/"},
        {"name": "mine", "mountPath": "/workspace/output", "subPath": "x"},
        {"name": "mine", "mountPath": "/elsewhere"},
        {"name": "mine", "mountPath": None},
    ]
)

words = st.text(alphabet="ab~/.0", min_size=1, max_size=6)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
# Names that no Kubernetes API has: fields from a version that we do not know.
unknown_fields = st.dictionaries(words.map(lambda word: f"x{word}"), json_values, max_size=2)


def nullable(strategy):
    return st.none() | strategy


variables = st.one_of(
    st.none(),
    st.builds(
        lambda name, value, more: {"name": name, "value": value, **more},
        st.sampled_from(KNOWN_NAMES) | words,
        st.text(max_size=3),
        unknown_fields,
    ),
    st.builds(
        lambda name: {"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        st.sampled_from(KNOWN_NAMES),
    ),
)
quantities = st.sampled_from(["0", "1", "8"]) | st.integers(0, 8)
resources = st.fixed_dictionaries(
    {},
    optional={
        "limits": nullable(st.dictionaries(st.sampled_from(RESOURCES), quantities, max_size=3)),
        "requests": nullable(st.dictionaries(st.sampled_from(RESOURCES), quantities, max_size=3)),
    },
)


@st.composite
def containers(draw, name):
    optional = {
        "env": nullable(st.lists(variables, max_size=4)),
        "resources": nullable(resources),
        "ports": nullable(st.lists(nullable(st.just({"containerPort": 80})), max_size=1)),
    }
    fields = draw(st.fixed_dictionaries({}, optional=optional))
    return {**draw(unknown_fields), **fields, "name": name}


@st.composite
def container_lists(draw):
    names = draw(
        st.lists(st.sampled_from(["node", "tensorflow", "logs", "train", "x"]), min_size=1,
                 max_size=3, unique=True)
    )  # fmt: skip
    items = [draw(containers(name)) for name in names]
    if draw(st.booleans()):
        items.insert(draw(st.integers(0, len(items))), None)
    return items


@st.composite
def pods(draw):
    """A pod of JobSet `mnist`, replicated job `node`: tasks 0 to 2."""
    index = draw(st.integers(0, 2))
    pod = builders.make_pod(index=index, containers=draw(container_lists()))
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["labels"] |= draw(st.dictionaries(words, st.text(max_size=3), max_size=2))
    metadata["annotations"] |= draw(st.dictionaries(words, st.text(max_size=3), max_size=2))
    networks = st.sampled_from(["", "macvlan", "a/b@c, d", "[]", '[{"name":"hostdevice-net"}]'])
    if draw(st.booleans()):
        metadata["annotations"]["k8s.v1.cni.cncf.io/networks"] = draw(networks)
    if draw(st.booleans()):
        value = draw(st.sampled_from(["none", "my-net", "ops/a@b,c"]))
        metadata["annotations"]["tfadmit.dev/network"] = value
    if draw(st.booleans()):
        metadata["annotations"] |= draw(st.sampled_from(STORAGE))
        for container in filter(None, spec["containers"]):
            container["volumeMounts"] = draw(nullable(st.lists(MOUNTS, max_size=2)))
    for name in ("namespace", "name", "ownerReferences", "managedFields", "finalizers"):
        if draw(st.booleans()):
            metadata[name] = None
    for name in ("initContainers", "ephemeralContainers", "volumes"):
        if draw(st.booleans()):
            spec[name] = draw(nullable(st.just([]) | st.just([None])))
    return {**draw(unknown_fields), **pod, "spec": {**draw(unknown_fields), **spec}}


def foreign_injector(pod):
    """What a service mesh does: one more container, annotation and variable, at either end."""
    changed = copy.deepcopy(pod)
    spec = changed["spec"]
    spec["containers"] = [*spec["containers"], {"name": "mesh", "env": None}]
    changed["metadata"]["annotations"]["mesh.example/injected"] = "yes"
    return changed


def order_free(pod):
    """The pod without the order of variables, which two injectors may interleave."""
    copied = copy.deepcopy(pod)
    for container in copied["spec"]["containers"]:
        if container and container.get("env"):
            container["env"] = sorted(map(json.dumps, container["env"]))
    return copied


def survives(before, after):
    """Whether everything in `before` is still in `after`; null counts as absent."""
    if isinstance(before, dict):
        return isinstance(after, dict) and all(
            value is None or survives(value, after.get(key)) for key, value in before.items()
        )
    if isinstance(before, list) and isinstance(after, list):
        tail = after[len(after) - len(before) :] if before else []
        return all(map(survives, before, tail)) and len(tail) == len(before)
    return before == after


GIVEN = admission.context(builders.make_jobset())


def round_of(pod):
    decision = admission.decide("/mutate/pods", pod, given=GIVEN)
    assert decision.allowed, decision.message
    review.render(decision, uid="u")
    return jsonpatch.apply_patch(copy.deepcopy(pod), list(decision.patch)), decision


NETWORKS = "k8s.v1.cni.cncf.io/networks"


# Pods are what comes most, and what everything else is for: ten thousand where nobody waits.
@settings(max_examples=10_000 if os.environ.get("CI") == "true" else settings().max_examples)
@given(pods())
def test_any_pod_is_admitted_completely_once_and_in_any_order(pod):
    once, _ = round_of(pod)

    # nothing of the user's is lost or changed (the networks annotation is extended)
    before, after = copy.deepcopy(pod), copy.deepcopy(once)
    listed = before["metadata"]["annotations"].pop(NETWORKS, None)
    extended = after["metadata"]["annotations"].pop(NETWORKS, None)
    assert survives(before, after)
    assert listed is None or extended is not None

    # a second round changes nothing
    again, second = round_of(once)
    assert second.patch == []
    assert again == once

    # before or after another injector, with the API server's second round, it is the same pod
    we_first = round_of(foreign_injector(once))[0]
    we_last = round_of(foreign_injector(pod))[0]
    assert order_free(we_first) == order_free(we_last)


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))


def replaced(value, path, junk):
    if not path:
        return junk
    copied = copy.copy(value)
    copied[path[0]] = replaced(value[path[0]], path[1:], junk)
    return copied


@st.composite
def damaged(draw, originals):
    """An object with a value of any type at one or two of its places."""
    content = draw(originals)
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(list(places(content))[1:]))
        content = replaced(content, path, draw(json_values))
        if not isinstance(content, dict):
            break
    return content


runtimes = st.sampled_from(
    [
        builders.make_runtime(),
        builders.make_runtime(
            builders.make_trainer_job(labels={"a": "b"}, annotations={"c": "d"}),
            builders.make_trainer_job("ps", step=None),
        ),
    ]
)
WORKLOADS = st.sampled_from(
    [
        builders.make_jobset(builders.make_replicated_job(annotations={"tfadmit.dev/port": "1"})),
        builders.make_jobset(builders.make_replicated_job("chief", replicas=None)),
    ]
)


@given(damaged(pods()), damaged(WORKLOADS))
def test_no_value_of_the_wrong_type_makes_admission_fail(pod, workload):
    given_context = admission.context(workload if isinstance(workload, dict) else {})
    decision = admission.decide("/mutate/pods", pod, given=given_context)
    jsonpatch.apply_patch(copy.deepcopy(pod), list(decision.patch))
    review.render(decision, uid="u")


@given(damaged(runtimes), damaged(runtimes))
def test_no_value_of_the_wrong_type_makes_the_judging_of_a_runtime_fail(new, old):
    for path in ("/mutate/runtimes", "/validate/runtimes"):
        decision = admission.decide(path, new, operation="UPDATE", old=old)
        jsonpatch.apply_patch(copy.deepcopy(new), list(decision.patch))
        review.render(decision, uid="u")


trainjobs = st.sampled_from(
    [
        builders.make_trainjob(
            numNodes=2, image="x", env=[{"name": "TF_CONFIG", "value": "{}"}, {"name": "A"}]
        ),
        builders.make_trainjob(kind="ClusterTrainingRuntime"),
    ]
)


@given(damaged(trainjobs), damaged(trainjobs), runtimes | damaged(runtimes))
def test_no_value_of_the_wrong_type_makes_the_judging_of_a_trainjob_fail(new, old, runtime):
    class Reader(facts.StaticReader):
        def runtime(self, **_):
            return runtime if isinstance(runtime, dict) else None

    given_context = admission.context(reader=Reader())
    for operation, earlier in (("CREATE", None), ("UPDATE", old)):
        decision = admission.decide(
            "/validate/trainjobs", new, given=given_context, operation=operation, old=earlier
        )
        review.render(decision, uid="u")


# --- JobSets ------------------------------------------------------------------------------------

STEP = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
COUNTS = st.sampled_from([None, 0, 1, 2, 7, "1"])
# Mostly what can be had: zeros take roles away, a wish for nobody's role is refused.
wishes = st.lists(
    st.tuples(
        st.sampled_from(["chief", "ps", "evaluator", "ps", "evaluator", "worker", "boss"]),
        st.sampled_from([0, 0, 0, 1, 2, 4, -1]),
    ),
    max_size=3,
    unique_by=lambda wish: wish[0],
).map(lambda wished: ",".join(f"{role}={count}" for role, count in wished))


@st.composite
def replicated_jobs(draw, name):
    """A job of any form; its container may be a placeholder."""
    job = builders.make_replicated_job(
        name,
        replicas=draw(st.sampled_from([None, 1, 2])),
        completions=draw(COUNTS),
        labels=draw(st.sampled_from([*[builders.LABEL] * 6, {}, None])),
        containers=draw(container_lists()),
    )
    if draw(st.booleans()):
        job["dependsOn"] = draw(nullable(st.just([{"name": "chief"}, {"name": "ps"}])))
    if name == "node" or draw(st.integers(0, 9)) == 0:
        job["template"]["metadata"] = draw(st.sampled_from([STEP, STEP, STEP, None]))
    if name == "node" and draw(st.booleans()):
        for item in filter(None, containers_of(job)):
            item |= {"image": "mine:1", "command": ["c"]}
    return {**draw(unknown_fields), **job}


@st.composite
def jobsets(draw):
    names = st.sampled_from(["chief", "node", "ps", "evaluator", "helper"])
    chosen = draw(st.lists(names, min_size=3, max_size=5, unique=True))
    content = builders.make_jobset(*(draw(replicated_jobs(name)) for name in chosen))
    content["metadata"]["labels"] = builders.LABEL
    content["metadata"]["annotations"] = draw(
        nullable(wishes.map(lambda text: {"tfadmit.dev/replicas": text}))
    )
    targets = draw(nullable(st.lists(names, max_size=3)))
    if draw(st.booleans()):
        content["spec"]["successPolicy"] = {"operator": "All", "targetReplicatedJobs": targets}
    if draw(st.booleans()):
        rules = [{"name": "a", "targetReplicatedJobs": targets}, {"name": "b"}, None]
        content["spec"]["failurePolicy"] = {
            "maxRestarts": 1,
            "rules": draw(nullable(st.just(rules))),
        }
    return {**draw(unknown_fields), **content}


def shape(content, **request):
    decision = admission.decide("/mutate/jobsets", content, **request)
    review.render(decision, uid="u")
    return admission.apply(content, decision), decision


def names_in(spec):
    """The replicated jobs that something in a spec names."""
    policies = [spec.get("successPolicy"), *((spec.get("failurePolicy") or {}).get("rules") or [])]
    for policy in policies:
        yield from (policy or {}).get("targetReplicatedJobs") or []
    for job in spec["replicatedJobs"]:
        yield from (item["name"] for item in job.get("dependsOn") or [])


@given(jobsets())
def test_any_jobset_is_shaped_once_and_an_apply_of_the_same_changes_nothing(content):
    once, decision = shape(content)
    if not decision.allowed:
        assert once == content
        assert decision.message
        return

    # a second round changes nothing
    again, second = shape(once)
    assert (again, list(second.patch)) == (once, [])

    # nothing that is left names what was taken away
    before = {job["name"] for job in content["spec"]["replicatedJobs"]}
    gone = before - {job["name"] for job in once["spec"]["replicatedJobs"]}
    assert gone.isdisjoint(names_in(once["spec"]))

    # the user's own fields survive in every job that is left
    for job in once["spec"]["replicatedJobs"]:
        (given_job,) = [
            one for one in content["spec"]["replicatedJobs"] if one["name"] == job["name"]
        ]
        for one, other in zip(containers_of(given_job), containers_of(job), strict=True):
            kept = {key: value for key, value in (one or {}).items() if value}
            assert survives(kept, other or {})
        assert {key for key in given_job if key.startswith("x")} <= set(job)

    # what a controller applies again, with its own numbers, comes out as it was created
    if (once["metadata"].get("annotations") or {}).get("tfadmit.dev/status"):
        live = copy.deepcopy(once)
        resent = copy.deepcopy(once)
        sizes = {job["name"]: job for job in content["spec"]["replicatedJobs"]}
        for job in resent["spec"]["replicatedJobs"]:
            job["replicas"] = sizes[job["name"]].get("replicas")
            for key in ("completions", "parallelism"):
                job["template"]["spec"][key] = sizes[job["name"]]["template"]["spec"].get(key)
        after, third = shape(resent, operation="UPDATE", old=live)
        assert third.allowed, third.message
        assert totals(after) == totals(live)


def containers_of(job):
    return job["template"]["spec"]["template"]["spec"]["containers"]


def totals(content):
    return [(group.name, group.size) for group in admission.views([content])[0].groups]


@given(damaged(jobsets()), damaged(jobsets()))
def test_no_value_of_the_wrong_type_makes_the_shaping_of_a_jobset_fail(new, old):
    for operation, earlier in (("CREATE", None), ("UPDATE", old)):
        shape(new, operation=operation, old=earlier)
