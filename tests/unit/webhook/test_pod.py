"""Pods in, admitted pods out: the whole pipeline below HTTP."""

import json

import pytest

import admission
import builders
from builders import make_container, make_jobset, make_pod, make_replicated_job
from tfadmit_webhook.decision import Reason
from tfadmit_webhook.settings import NetworkProfile, Settings

STATUS = "tfadmit.dev/status"
NETWORKS = "k8s.v1.cni.cncf.io/networks"


def status(pod):
    return json.loads(pod["metadata"]["annotations"][STATUS])


def workers(pod):
    return json.loads(admission.env(pod)["TF_CONFIG"])["cluster"]["worker"]


# --- index and list, by every shape of a JobSet -------------------------------------------------


@pytest.mark.parametrize("index", [0, 1, 2])
def test_the_index_of_a_worker_is_its_completion_index(index):
    pod = admission.admit(make_pod(index=index))
    env = admission.env(pod)
    assert env["TF_TASK_INDEX"] == str(index)
    assert json.loads(env["TF_CONFIG"])["task"] == {"type": "worker", "index": index}
    assert workers(pod) == [
        f"mnist-node-0-{i}.mnist.team.svc.cluster.local:12345" for i in range(3)
    ]


def test_one_job_per_node_counts_by_the_job_index():
    jobset = make_jobset(make_replicated_job(replicas=4, completions=1))
    pod = admission.admit(make_pod(job_index=3, index=0), jobset)
    assert admission.env(pod)["TF_TASK_INDEX"] == "3"
    assert [host.partition(".")[0] for host in workers(pod)] == [
        f"mnist-node-{j}-0" for j in range(4)
    ]


@pytest.mark.parametrize(("job_index", "index", "task"), [(0, 2, 2), (1, 0, 3), (1, 2, 5)])
def test_jobs_of_several_pods_count_by_both_indexes(job_index, index, task):
    jobset = make_jobset(make_replicated_job(replicas=2, completions=3))
    pod = admission.admit(make_pod(job_index=job_index, index=index), jobset)
    assert admission.env(pod)["TF_TASK_INDEX"] == str(task)
    assert workers(pod)[task].startswith(f"mnist-node-{job_index}-{index}.")


def test_several_replicated_jobs_of_one_role_share_one_list():
    jobset = make_jobset(
        make_replicated_job("big", completions=2),
        make_replicated_job("small", replicas=2, completions=1),
    )
    pod = admission.admit(make_pod(job="small", job_index=1, index=0), jobset)
    assert admission.env(pod)["TF_TASK_INDEX"] == "3"
    assert [host.partition(".")[0] for host in workers(pod)] == [
        "mnist-big-0-0",
        "mnist-big-0-1",
        "mnist-small-0-0",
        "mnist-small-1-0",
    ]


def test_a_single_worker_gets_the_same_variables():
    pod = admission.admit(make_pod(), make_jobset(make_replicated_job(completions=1)))
    assert admission.env(pod)["TF_NUM_WORKERS"] == "1"
    assert workers(pod) == ["mnist-node-0-0.mnist.team.svc.cluster.local:12345"]


def test_replicas_and_completions_default_as_in_their_apis():
    job = make_replicated_job(replicas=None, completions=None)
    pod = admission.admit(make_pod(), make_jobset(job))
    assert len(workers(pod)) == 1


def test_completions_default_to_parallelism():
    job = make_replicated_job(completions=2)
    del job["template"]["spec"]["completions"]
    assert len(workers(admission.admit(make_pod(), make_jobset(job)))) == 2


def test_the_subdomain_of_the_jobset_is_used():
    pod = admission.admit(make_pod(), make_jobset(subdomain="ring"))
    assert workers(pod)[0] == "mnist-node-0-0.ring.team.svc.cluster.local:12345"


def test_a_jobset_without_host_names_is_refused():
    jobset = make_jobset()
    jobset["spec"]["network"]["enableDNSHostnames"] = False
    decision = admission.decide("/mutate/pods", make_pod(), given=admission.context(jobset))
    assert decision.reason is Reason.CLUSTER_INVALID
    assert "spec.network.enableDNSHostnames is false" in decision.message


def test_short_addresses_are_written_on_demand():
    job = make_replicated_job(annotations={"tfadmit.dev/address": "short"})
    pod = admission.admit(make_pod(), make_jobset(job))
    assert workers(pod)[0] == "mnist-node-0-0.mnist:12345"


def test_the_domain_of_the_cluster_comes_from_the_settings():
    pod = admission.admit(make_pod(), settings=Settings(cluster_domain="k8s.corp"))
    assert workers(pod)[0] == "mnist-node-0-0.mnist.team.svc.k8s.corp:12345"


def test_replicated_jobs_without_the_label_are_no_members():
    jobset = make_jobset(
        make_replicated_job("dataset-initializer", completions=1, labels={}),
        make_replicated_job("node", completions=2),
    )
    pod = admission.admit(make_pod(index=1), jobset)
    assert admission.env(pod)["TF_TASK_INDEX"] == "1"
    assert len(workers(pod)) == 2


# --- roles --------------------------------------------------------------------------------------

ROLES = make_jobset(
    make_replicated_job("master", completions=1),
    make_replicated_job("node", completions=2),
    make_replicated_job(
        "params", completions=1, labels=builders.LABEL | {"tfadmit.dev/role": "ps"}
    ),
    make_replicated_job("evaluator", completions=1),
)


@pytest.mark.parametrize(
    ("job", "role"),
    [("master", "chief"), ("node", "worker"), ("params", "ps"), ("evaluator", "evaluator")],
)
def test_the_role_comes_from_the_label_or_the_name_of_the_replicated_job(job, role):
    env = admission.env(admission.admit(make_pod(job=job), ROLES))
    assert env["TF_TASK_TYPE"] == role
    listed = json.loads(env["TF_CONFIG"])["cluster"]
    expected = ["chief", "worker", "ps"] + (["evaluator"] if role == "evaluator" else [])
    assert list(listed) == expected
    assert env["TF_NUM_WORKERS"] == "2"


def test_two_chiefs_are_refused():
    jobset = make_jobset(make_replicated_job("chief", completions=2))
    decision = admission.decide(
        "/mutate/pods", make_pod(job="chief"), given=admission.context(jobset)
    )
    assert decision.reason is Reason.CLUSTER_INVALID
    assert decision.message == "JobSet team/mnist: TensorFlow allows one chief, there are 2"


def test_an_unknown_role_is_refused_with_the_known_ones():
    job = make_replicated_job(labels=builders.LABEL | {"tfadmit.dev/role": "boss"})
    decision = admission.decide(
        "/mutate/pods", make_pod(), given=admission.context(make_jobset(job))
    )
    assert not decision.allowed
    assert decision.message == (
        "JobSet team/mnist: node: label tfadmit.dev/role is 'boss': "
        "use chief, worker, ps, evaluator"
    )


# --- the port -----------------------------------------------------------------------------------


def with_env(*pairs, **fields):
    return [make_container(env=[{"name": n, "value": v} for n, v in pairs], **fields)]


@pytest.mark.parametrize(
    ("job", "port"),
    [
        ({"containers": with_env(("TF_WORKER_PORT", "23456"))}, "23456"),
        ({"annotations": {"tfadmit.dev/port": "2300"}}, "2300"),
        (
            {"containers": [make_container(ports=[{"name": "tfjob-port", "containerPort": 2222}])]},
            "2222",
        ),
        (
            {
                "containers": with_env(
                    ("TF_WORKER_PORT", "1"), ports=[{"name": "tfjob-port", "containerPort": 3}]
                ),
                "annotations": {"tfadmit.dev/port": "2"},
            },
            "1",
        ),
        (
            {
                "containers": [make_container(ports=[{"name": "tfjob-port", "containerPort": 3}])],
                "annotations": {"tfadmit.dev/port": "2"},
            },
            "2",
        ),
        ({}, "12345"),
    ],
)
def test_every_address_ends_in_the_stated_port(job, port):
    pod = admission.admit(make_pod(), make_jobset(make_replicated_job(**job)))
    assert {host.rpartition(":")[2] for host in workers(pod)} == {port}
    assert admission.env(pod)["TF_WORKER_PORT"] == port


@pytest.mark.parametrize("value", ["http", "0", "65536", "", "$(PORT)", "\u0661"])
def test_a_port_that_is_no_number_is_refused(value):
    job = make_replicated_job(containers=with_env(("TF_WORKER_PORT", value)))
    decision = admission.decide(
        "/mutate/pods", make_pod(), given=admission.context(make_jobset(job))
    )
    assert decision.reason is Reason.CLUSTER_INVALID
    assert f"env TF_WORKER_PORT is {value!r}" in decision.message


def test_a_port_from_a_reference_is_refused():
    env = [{"name": "TF_WORKER_PORT", "valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}}]
    job = make_replicated_job(containers=[make_container(env=env)])
    decision = admission.decide(
        "/mutate/pods", make_pod(), given=admission.context(make_jobset(job))
    )
    assert "must be written as a number" in decision.message


# --- the environment ----------------------------------------------------------------------------


def test_user_env_is_never_overwritten():
    mine = [
        {"name": "TF_CONFIG", "value": "{}"},
        {"name": "EPOCHS", "value": "3"},
        {"name": "TF_TASK_INDEX", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
    ]
    pod = admission.admit(make_pod(containers=[make_container(env=mine)]))
    assert pod["spec"]["containers"][0]["env"][-3:] == mine
    assert admission.env(pod)["TF_CONFIG"] == "{}"
    assert status(pod)["kept"] == ["TF_TASK_INDEX", "TF_CONFIG"]


def test_new_variables_come_before_the_users_in_a_fixed_order():
    pod = admission.admit(make_pod(containers=with_env(("A", "$(TF_TASK_INDEX)"))))
    assert list(admission.env(pod)) == [
        "TF_TASK_TYPE",
        "TF_TASK_INDEX",
        "TF_NUM_WORKERS",
        "TF_WORKER_PORT",
        "TFADMIT_CLUSTER",
        "TF_WORKER_HOSTS",
        "TF_CONFIG",
        "A",
    ]


def test_the_restart_attempt_of_the_jobset_is_passed_on():
    pod = make_pod(annotations={"jobset.sigs.k8s.io/restart-attempt": "2"})
    assert admission.env(admission.admit(pod))["TFADMIT_ATTEMPT"] == "2"
    assert "TFADMIT_ATTEMPT" not in admission.env(admission.admit(make_pod()))


def targets(pod):
    return [
        container["name"]
        for kind in ("initContainers", "containers")
        for container in pod["spec"].get(kind) or []
        if any(entry["name"] == "TF_CONFIG" for entry in container.get("env") or [])
    ]


@pytest.mark.parametrize(
    ("names", "annotation", "expected"),
    [
        (["istio", "node"], None, ["node"]),
        (["istio", "tensorflow"], None, ["tensorflow"]),
        (["tensorflow", "node"], None, ["node"]),
        (["train", "logs"], None, ["train", "logs"]),
        (["node", "logs"], "logs", ["logs"]),
        (["node", "logs"], " node , logs ", ["node", "logs"]),
        (["node", "logs"], "prepare", ["prepare"]),
        (["node", "logs"], " , ", ["node"]),
    ],
)
def test_the_containers_that_get_the_environment(names, annotation, expected):
    annotations = {} if annotation is None else {"tfadmit.dev/containers": annotation}
    pod = admission.admit(
        make_pod(
            containers=[make_container(name) for name in names],
            annotations=annotations,
            initContainers=[make_container("prepare")],
        )
    )
    assert targets(pod) == expected


def test_a_container_that_is_not_there_is_refused_with_those_that_are():
    pod = make_pod(annotations={"tfadmit.dev/containers": "nodes"})
    decision = admission.decide("/mutate/pods", pod)
    assert decision.reason is Reason.ANNOTATION_INVALID
    assert decision.message == (
        "annotation tfadmit.dev/containers names 'nodes', and the pod's containers are node: "
        "name one of these, or remove the annotation"
    )


# --- the network --------------------------------------------------------------------------------


def requesting(*names, kind="limits"):
    return [make_container(resources={kind: dict.fromkeys(names, "2")})]


def nccl(pod):
    return {k: v for k, v in admission.env(pod).items() if k.startswith("NCCL")}


@pytest.mark.parametrize("kind", ["limits", "requests"])
@pytest.mark.parametrize("resource", ["nvidia.com/hostdev", "rdma/hca_shared"])
def test_pods_with_a_host_device_get_infiniband(resource, kind):
    pod = admission.admit(make_pod(containers=requesting(resource, "nvidia.com/gpu", kind=kind)))
    assert nccl(pod) == {
        "NCCL_IB_DISABLE": "0",
        "NCCL_SOCKET_IFNAME": "net",
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,NET,IB",
    }
    assert pod["metadata"]["annotations"][NETWORKS] == "hostdevice-net"
    assert status(pod)["network"] == "infiniband"


def test_gpu_pods_without_a_host_device_get_tcp():
    pod = admission.admit(make_pod(containers=requesting("nvidia.com/gpu")))
    assert nccl(pod) == {
        "NCCL_IB_DISABLE": "1",
        "NCCL_SOCKET_IFNAME": "eth0",
        "NCCL_DEBUG": "INFO",
    }
    assert NETWORKS not in pod["metadata"]["annotations"]


def test_cpu_pods_get_no_network_settings():
    pod = admission.admit(make_pod(containers=requesting("cpu", "memory")))
    assert nccl(pod) == {}
    assert "network" not in status(pod)


@pytest.mark.parametrize("zero", ["0", 0])
def test_zero_devices_are_none(zero):
    pod = admission.admit(
        make_pod(containers=[make_container(resources={"limits": {"nvidia.com/hostdev": zero}})])
    )
    assert nccl(pod) == {}


@pytest.mark.parametrize(
    ("existing", "expected"),
    [
        ("macvlan", "macvlan,hostdevice-net"),
        ("macvlan, ", "macvlan,hostdevice-net"),
        ("hostdevice-net@net1", "hostdevice-net@net1"),
        ("kube-system/hostdevice-net", "kube-system/hostdevice-net,hostdevice-net"),
        # written with the pod's own namespace, it is the same network
        ("team/hostdevice-net", "team/hostdevice-net"),
        ('[{"name":"hostdevice-net","namespace":"team"}]',
         '[{"name":"hostdevice-net","namespace":"team"}]'),
        ("", "hostdevice-net"),
        ('[{"name":"macvlan","ips":["10.1.1.1"]}]',
         '[{"name":"macvlan","ips":["10.1.1.1"]},{"name":"hostdevice-net"}]'),
        (' [ {"name":"hostdevice-net"} ]', ' [ {"name":"hostdevice-net"} ]'),
        ("[null]", '[null,{"name":"hostdevice-net"}]'),
    ],
)  # fmt: skip
def test_an_existing_network_list_is_extended_in_its_own_form(existing, expected):
    pod = make_pod(annotations={NETWORKS: existing}, containers=requesting("nvidia.com/hostdev"))
    assert admission.admit(pod)["metadata"]["annotations"][NETWORKS] == expected


def test_a_network_list_that_cannot_be_read_is_refused():
    pod = make_pod(annotations={NETWORKS: "[{"}, containers=requesting("nvidia.com/hostdev"))
    decision = admission.decide("/mutate/pods", pod)
    assert decision.reason is Reason.ANNOTATION_INVALID
    assert NETWORKS in decision.message


def test_a_stated_network_replaces_the_profiles_own():
    pod = make_pod(
        annotations={"tfadmit.dev/network": "ops/ib-a@net1,ib-b"},
        containers=requesting("nvidia.com/hostdev"),
    )
    admitted = admission.admit(pod)
    assert admitted["metadata"]["annotations"][NETWORKS] == "ops/ib-a@net1,ib-b"
    assert nccl(admitted)["NCCL_IB_DISABLE"] == "0"


def test_a_stated_network_joins_a_json_list_as_an_object():
    pod = make_pod(annotations={"tfadmit.dev/network": "ops/ib@net1", NETWORKS: "[]"})
    assert admission.admit(pod)["metadata"]["annotations"][NETWORKS] == (
        '[{"name":"ib","namespace":"ops","interface":"net1"}]'
    )


def test_a_pod_that_forbids_networks_gets_the_next_profile():
    pod = make_pod(
        annotations={"tfadmit.dev/network": "none"},
        containers=requesting("nvidia.com/hostdev", "nvidia.com/gpu"),
    )
    admitted = admission.admit(pod)
    assert NETWORKS not in admitted["metadata"]["annotations"]
    assert nccl(admitted)["NCCL_IB_DISABLE"] == "1"


def test_profiles_are_a_matter_of_settings_alone():
    settings = Settings(
        network_profiles=(
            NetworkProfile(
                name="efa",
                resources=("vpc.amazonaws.com/efa",),
                attach="efa-net",
                env={"FI_PROVIDER": "efa"},
            ),
        )
    )
    pod = admission.admit(
        make_pod(containers=requesting("vpc.amazonaws.com/efa", "nvidia.com/hostdev")),
        settings=settings,
    )
    assert admission.env(pod)["FI_PROVIDER"] == "efa"
    assert nccl(pod) == {}
    assert pod["metadata"]["annotations"][NETWORKS] == "efa-net"


def test_the_users_nccl_settings_win():
    container = make_container(
        env=[{"name": "NCCL_DEBUG", "value": "WARN"}],
        resources={"limits": {"nvidia.com/gpu": 8}},
    )
    pod = admission.admit(make_pod(containers=[container]))
    assert nccl(pod)["NCCL_DEBUG"] == "WARN"
    assert status(pod)["kept"] == ["NCCL_DEBUG"]


# --- the status, and pods that are left alone ---------------------------------------------------


def test_the_status_says_what_was_decided():
    pod = admission.admit(make_pod(index=2, containers=requesting("nvidia.com/gpu")))
    assert status(pod) == {
        "v": 1,
        "role": "worker",
        "index": 2,
        "tasks": 3,
        "source": "jobset",
        "inline": True,
        "network": "tcp",
    }


def test_a_large_cluster_says_that_it_is_not_inline():
    pod = admission.admit(make_pod(), make_jobset(make_replicated_job(completions=10_000)))
    assert status(pod)["inline"] is False
    assert "TF_CONFIG" not in admission.env(pod)
    assert len(json.dumps(pod)) < 3_000


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"labels": {"trainer.kubeflow.org/framework": "torch"}}, Reason.NOT_OURS),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, Reason.MIRROR_POD),
        ({"annotations": {"tfadmit.dev/inject": "false"}}, Reason.OPTED_OUT),
    ],
)
def test_a_pod_that_is_not_for_us_is_left_alone(change, reason):
    decision = admission.decide("/mutate/pods", make_pod(**change))
    assert (decision.allowed, decision.reason, decision.patch) == (True, reason, ())


@pytest.mark.parametrize("operation", ["UPDATE", "DELETE", "CONNECT"])
def test_only_creation_is_changed(operation):
    decision = admission.decide("/mutate/pods", make_pod(), operation=operation)
    assert (decision.allowed, decision.reason) == (True, Reason.OTHER_OPERATION)


def test_subresources_are_left_alone():
    decision = admission.decide("/mutate/pods", make_pod(), subResource="ephemeralcontainers")
    assert decision.reason is Reason.OTHER_OPERATION


def test_a_word_that_looks_like_opting_out_is_answered_with_a_warning():
    decision = admission.decide("/mutate/pods", make_pod(annotations={"tfadmit.dev/inject": "no"}))
    assert decision.allowed
    assert decision.reason is Reason.MUTATED
    assert list(decision.warnings) == [
        "tfadmit.dev/inject is 'no'; only \"false\" leaves a pod out"
    ]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"annotations": {"tfadmit.dev/netwrok": "none"}},
            "annotation tfadmit.dev/netwrok means nothing to tfadmit; did you mean tfadmit.dev/ne",
        ),
        (
            {"annotations": {"tfadmit.dev/role": "ps"}},
            "annotation tfadmit.dev/role means nothing to tfadmit",
        ),
        ({"labels": {"tfadmit.dev/xyz": "1"}}, "label tfadmit.dev/xyz means nothing to tfadmit"),
        (
            {"annotations": {"tfadmit.dev/replicas": "ps=2"}},
            "annotation tfadmit.dev/replicas has no effect on a pod: it belongs on the JobSet",
        ),
    ],
)
def test_a_name_of_ours_that_does_not_exist_is_answered_with_a_warning(change, words):
    decision = admission.decide("/mutate/pods", make_pod(**change))
    assert decision.reason is Reason.MUTATED
    assert len(decision.warnings) == 1
    assert decision.warnings[0].startswith(words)


# --- where the cluster is stated or looked up ---------------------------------------------------


def stated(text, **pod):
    return make_pod(
        jobset=None, index=pod.pop("index", None),
        annotations={"tfadmit.dev/cluster": text} | pod.pop("annotations", {}), **pod,
    )  # fmt: skip


def test_a_stated_cluster_needs_no_look_up():
    pod = stated('{"worker":["w-{0..3}.svc:2222"]}', hostname="w-2")
    env = admission.env(admission.admit(pod))
    assert env["TF_TASK_INDEX"] == "2"
    assert env["TF_WORKER_HOSTS"] == "w-0.svc:2222,w-1.svc:2222,w-2.svc:2222,w-3.svc:2222"
    assert env["TF_WORKER_PORT"] == "2222"


def test_the_host_name_finds_the_role_too():
    pod = stated('{"chief":["c-0:1"],"worker":["w-0:1"],"ps":["p-{0..1}:1"]}', hostname="p-1")
    env = admission.env(admission.admit(pod))
    assert (env["TF_TASK_TYPE"], env["TF_TASK_INDEX"]) == ("ps", "1")


def test_role_label_and_completion_index_find_the_task():
    pod = stated(
        '{"chief":["c:1"],"ps":["p-{0..1}:1"]}', labels={"tfadmit.dev/role": "ps"}, index=1
    )
    assert admission.env(admission.admit(pod))["TF_TASK_INDEX"] == "1"


def test_a_cluster_of_one_task_needs_no_index():
    assert admission.env(admission.admit(stated('{"worker":["w:1"]}')))["TF_TASK_INDEX"] == "0"


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (stated('{"worker":["w-{0..1}:1"]}'), Reason.INDEX_MISSING),
        (stated('{"chief":["c:1"],"worker":["w:1"]}'), Reason.INDEX_MISSING),
        (stated('{"worker":["w-{0..1}:1"]}', index=2), Reason.INDEX_BEYOND_CLUSTER),
        (stated("nonsense"), Reason.CLUSTER_INVALID),
        (stated('{"worker":["w:1"]}', labels={"tfadmit.dev/role": "x"}), Reason.CLUSTER_INVALID),
        (make_pod(jobset=None), Reason.NO_CLUSTER),
        (make_pod(jobset="gone"), Reason.JOBSET_MISSING),
        (make_pod(uid="jobset-uid-0"), Reason.OTHER_JOBSET),
        (make_pod(index=3), Reason.INDEX_BEYOND_CLUSTER),
        (make_pod(job_index=1), Reason.INDEX_BEYOND_CLUSTER),
        (make_pod(index=None), Reason.INDEX_MISSING),
        (make_pod(job="helper"), Reason.NOT_A_MEMBER),
    ],
)
def test_a_size_or_an_index_is_never_guessed(pod, reason):
    decision = admission.decide("/mutate/pods", pod)
    assert (decision.allowed, decision.reason, decision.code) == (False, reason, 403)
    assert decision.message
    assert decision.patch == ()


def test_a_cluster_that_no_process_could_be_started_with_is_refused():
    hosts = [f"host-{i}.some-service.team.svc.cluster.local:12345" for i in range(3000)]
    pod = stated(json.dumps({"worker": hosts}), hostname="host-3")
    decision = admission.decide("/mutate/pods", pod)
    assert decision.reason is Reason.CLUSTER_INVALID
    assert decision.message.startswith("TFADMIT_CLUSTER would have 160,925 bytes")
    assert "write ranges" in decision.message


def owned(index=1, uid="job-uid-1"):
    pod = make_pod(jobset=None, index=index, containers=[make_container("tensorflow")])
    pod["metadata"]["ownerReferences"] = [
        {"kind": "Job", "name": "plain", "uid": uid, "controller": True}
    ]
    return pod


def test_a_plain_indexed_job_is_a_cluster_of_workers():
    pod = admission.admit(owned(), builders.make_job())
    env = admission.env(pod)
    assert env["TF_WORKER_HOSTS"].split(",") == [
        f"plain-{i}.plain-svc.team.svc.cluster.local:12345" for i in range(3)
    ]
    assert env["TF_TASK_INDEX"] == "1"
    assert status(pod)["source"] == "job"


def test_a_plain_job_without_a_subdomain_is_refused_with_the_way_out():
    given = admission.context(builders.make_job(subdomain=None))
    decision = admission.decide("/mutate/pods", owned(), given=given)
    assert decision.reason is Reason.CLUSTER_INVALID
    assert "spec.template.spec.subdomain" in decision.message


@pytest.mark.parametrize("jobs", [[], [builders.make_job(uid="other")]])
def test_a_pod_whose_job_is_gone_is_refused(jobs):
    given = admission.context(*jobs)
    decision = admission.decide("/mutate/pods", owned(), given=given)
    assert decision.reason is Reason.JOB_MISSING
