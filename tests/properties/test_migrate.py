"""Generated TFJobs: each one is translated, passes lint as the report says, and loses nothing.

The TFJobs are such as the API server took: the operator's schema lets unknown fields through when
the file is read by us, and every field may be null.
"""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import operator_v1
from tfadmit_client.files import manifest, yamltext
from tfadmit_client.lint import linting
from tfadmit_client.migrate import document, migrating, summary, translate
from tfadmit_webhook import raw
from tfadmit_webhook.settings import Settings

pytestmark = pytest.mark.timeout(1800)

TRICKY = [
    "y",
    "N",
    "on",
    "08",
    "0777",
    "1_0",
    "1:30",
    "~",
    "",
    "null",
    "<<",
    "=",
    "- a",
    "a: b",
    "#",
]
words = st.sampled_from(
    [*TRICKY, "2026-01-01", "é\u2028x", "a\nb\n", " a\n  b", "tab\tx", "$(TF_CONFIG)"]
)
words |= st.text(max_size=8)
keys = st.text(alphabet="abc", min_size=1, max_size=3).map(lambda word: f"x-{word}")
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)


def some(**fields):
    """Any of these fields, null too; the others are absent."""
    return st.fixed_dictionaries(
        {}, optional={key: st.none() | value for key, value in fields.items()}
    )


def with_unknown(strategy):
    return st.builds(
        lambda known, more: {**more, **known}, strategy, st.dictionaries(keys, values, max_size=2)
    )


variables = st.one_of(
    st.builds(
        lambda name, value: {"name": name, "value": value},
        st.sampled_from(
            [
                "TF_CONFIG",
                "TF_TASK_INDEX",
                "TF_WORKER_PORT",
                "TFADMIT_CLUSTER",
                "EPOCHS",
                "NCCL_DEBUG",
            ]
        ),
        words,
    ),
    st.builds(
        lambda name: {"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        st.sampled_from(["TF_CONFIG", "TF_TASK_INDEX", "TF_WORKER_PORT", "POD"]),
    ),
)
resources = st.sampled_from(
    [
        {"limits": {"memory": "1Gi"}},
        {"limits": {"nvidia.com/gpu": 8}, "requests": {"cpu": "500m"}},
        {"requests": {"cpu": 1}},
        {},
    ]
)
ports = st.lists(
    st.sampled_from(
        [{"name": "http", "containerPort": 80}, {"name": "tfjob-port", "containerPort": 3333}]
    ),
    max_size=2,
    unique_by=json.dumps,
)
arguments = words | st.sampled_from(["--ps=mnist-ps-0:2222", "mnist-worker-12", "mnist-chief"])


@st.composite
def containers(draw):
    names = draw(st.permutations(["tensorflow", "node", "node-2", "helper"]))
    kept = [name for name in names if name == "tensorflow" or draw(st.booleans())]
    return [
        draw(
            with_unknown(
                some(
                    command=st.lists(arguments, max_size=2),
                    args=st.lists(arguments, max_size=2),
                    env=st.lists(variables, max_size=4),
                    resources=resources,
                    ports=ports,
                    volumeMounts=st.just([{"name": "data", "mountPath": "/data"}]),
                )
            )
        )
        | {"name": name, "image": "registry.example.com/a:1"}
        for name in kept
    ]


selectors = st.sampled_from(
    [
        {"matchLabels": {"training.kubeflow.org/job-name": "mnist"}},
        {"matchLabels": {"app": "a"}},
        {"matchExpressions": [{"key": "training.kubeflow.org/replica-type", "operator": "Exists"}]},
    ]
)
pod_specs = st.builds(
    lambda spec, items: {**spec, "containers": items},
    with_unknown(
        some(
            restartPolicy=st.sampled_from(["Always", "Never"]),
            hostNetwork=st.booleans(),
            dnsPolicy=st.sampled_from(["ClusterFirst", "Default", "ClusterFirstWithHostNet"]),
            hostname=st.just("a"),
            subdomain=st.just("b"),
            schedulerName=st.sampled_from(["volcano", "default-scheduler", "scheduler-plugins"]),
            priorityClassName=st.just("high"),
            initContainers=st.just([{"name": "init", "image": "registry.example.com/i:1"}]),
            volumes=st.just([{"name": "data", "emptyDir": {}}]),
            topologySpreadConstraints=st.lists(
                st.builds(lambda selector: {"labelSelector": selector}, selectors), max_size=2
            ),
        )
    ),
    containers(),
)
labels = st.dictionaries(
    st.sampled_from(["app", "tfadmit.dev/role", "trainer.kubeflow.org/framework", "a.b/c"]), words
)
annotations = st.dictionaries(
    st.sampled_from(
        ["note", "tfadmit.dev/inject", "tfadmit.dev/containers", "sidecar.istio.io/inject"]
    ),
    words,
)
templates = st.builds(
    lambda more, spec: {**more, "spec": spec},
    some(metadata=some(labels=labels, annotations=annotations, name=st.just("x"))),
    pod_specs,
)
counts = st.integers(0, 4)


def replicas(number):
    return st.builds(
        lambda more, template: {**more, "template": template},
        with_unknown(
            some(
                replicas=number,
                restartPolicy=st.sampled_from(["", "Never", "OnFailure", "Always", "ExitCode"]),
            )
        ),
        templates,
    )


policies = with_unknown(
    some(
        cleanPodPolicy=st.sampled_from(["", "None", "Running", "All"]),
        ttlSecondsAfterFinished=counts,
        activeDeadlineSeconds=st.integers(1, 2**40),
        backoffLimit=counts,
        suspend=st.booleans(),
        managedBy=st.sampled_from(["kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"]),
        schedulingPolicy=some(
            minAvailable=counts,
            queue=st.just("research"),
            minResources=st.just({"cpu": 3}),
            priorityClass=st.just("high"),
            scheduleTimeoutSeconds=counts,
        ),
    )
)


@st.composite
def tfjobs(draw):
    chief = draw(st.sampled_from(["Chief", "Master", "chief", "MASTER", ""]))
    worker = draw(st.sampled_from(["Worker", "worker", "WORKER"] if chief else ["Worker"]))
    specs = {worker: draw(replicas(counts if chief else st.integers(1, 4)))}
    if chief:
        specs[chief] = draw(replicas(st.just(1)))
    for key, number in (("PS", counts), ("ps", counts), ("Evaluator", st.integers(0, 1))):
        if draw(st.booleans()) and not (key == "ps" and "PS" in specs):
            specs[key] = draw(replicas(number))
    specs = {key: specs[key] for key in draw(st.permutations(sorted(specs)))}
    spec = draw(
        with_unknown(
            some(
                successPolicy=st.sampled_from(["", "AllWorkers"]),
                enableDynamicWorker=st.booleans(),
                runPolicy=policies,
                cleanPodPolicy=st.just("Running"),
            )
        )
    )
    metadata = draw(
        with_unknown(
            some(
                namespace=st.just("team"),
                labels=st.dictionaries(
                    st.sampled_from(["app", "kueue.x-k8s.io/queue-name"]), words
                ),
                annotations=st.dictionaries(st.sampled_from(["a", "b.c/d"]), words),
                uid=st.just("0a"),
                finalizers=st.just(["a/b"]),
            )
        )
    )
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {**metadata, "name": "mnist"},
        "spec": {**spec, "tfReplicaSpecs": specs},
    }


options = st.builds(
    translate.Options,
    scheduler=st.sampled_from([None, "volcano", "coscheduling", "none"]),
    gang_restart=st.booleans(),
    name=st.sampled_from([None, "mnist-2"]),
)


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    elif value is not None:
        yield path, value


def result_of(tfjob, chosen):
    (found,) = migrating.from_files(
        [manifest.Manifest(content=tfjob, file="job.yaml", line=1)], names=[]
    ).sources
    (result,) = migrating.results([found], options=chosen, settings=Settings())
    return result


def findings(text):
    manifests = [
        manifest.Manifest(
            content=item.content, file="out", line=item.line, text=text, place=item.place
        )
        for item in yamltext.documents(text)
    ]
    return linting.lint(manifests, settings=Settings()).findings


def unsaid(tfjob, result):
    """The leaves that are neither in the output nor in the report."""
    told = {entry["field"] for entry in summary.fields([result])[0]["entries"]}
    for path, value in leaves(tfjob):
        # The entry for a whole pod template says nothing of a field in it.
        above = [path[:length] for length in range(1, len(path) + 1)]
        if any(raw.dotted(part) in told for part in above if part[3:] != ("template",)):
            continue
        if path[3:4] != ("template",) or not carried(path, value, result):
            yield path, value


def carried(path, value, result):
    """Whether a leaf of a pod template stands where it stood; variables are found by their name."""
    role = operator_v1.ROLE[path[2].lower()]
    for job in result.made.runtime["spec"]["template"]["spec"]["replicatedJobs"]:
        template = job["template"]["spec"]["template"]
        stated = (
            (template.get("metadata") or {}).get("labels", {}).get("tfadmit.dev/role", "worker")
        )
        if role == (stated if job["name"] == "node" else job["name"]):
            found = dict(leaves(template))
            rest = path[4:]
            if "env" in rest:
                at = rest.index("env")
                return any(
                    other[: at + 1] == rest[: at + 1]
                    and other[at + 2 :] == rest[at + 2 :]
                    and found[other] == value
                    for other in found
                )
            return found.get(rest) == value
    return False


# Each example is written, read and judged: a tenth of a second or two, so fewer of them.
@settings(max_examples=min(400, settings().max_examples // 3))
@given(tfjobs(), options)
def test_every_tfjob_is_translated_and_nothing_is_lost_in_silence(tfjob, chosen):
    before = copy.deepcopy(tfjob)
    result = result_of(tfjob, chosen)
    assert tfjob == before
    assert list(unsaid(tfjob, result)) == []

    text = document.as_yaml([result])
    written = [item.content for item in yamltext.documents(text)]
    assert written == [result.made.runtime, result.made.trainjob]
    assert json.loads(document.as_json([result]))["items"] == [
        result.made.runtime,
        result.made.trainjob,
    ]

    named = {(entry.what.partition(":")[0], entry.target) for entry in result.entries}
    for item in findings(text):
        rule = item.violation.rule.id
        where = f"{item.manifest.kind} {raw.dotted(item.violation.finding.path)}"
        assert (rule, where) in {(id_, target.label) for id_, target in named if target}
    refused = any(item.violation.level == "deny" for item in findings(text))
    assert migrating.is_refused(result) is refused
