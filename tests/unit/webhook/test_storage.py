"""Pods that ask for data or for results: what they get, and what of theirs stays."""

import pytest
import yaml

import admission
import builders
from tfadmit_webhook import settings_file
from tfadmit_webhook.settings import Settings, Transfer

OUTPUT = {"tfadmit.dev/output": "s3://results/team-a"}


def admitted(annotations, *, settings=None, index=0, jobset=None, **fields):
    pod = builders.make_pod(annotations=annotations, index=index, **fields)
    objects = [jobset] if jobset else []
    return admission.admit(pod, *objects, settings=settings)


def refused(annotations, **settings):
    pod = builders.make_pod(annotations=annotations)
    given = admission.context(
        builders.make_jobset(), settings=Settings(transfer=Transfer(**settings))
    )
    decision = admission.decide("/mutate/pods", pod, given=given)
    assert not decision.allowed
    assert decision.reason == "annotation-invalid"
    return decision.message


def containers(pod):
    return {item["name"]: item for item in pod["spec"].get("initContainers", [])}


def variables(container):
    return {item["name"]: item["value"] for item in container["env"]}


def status(pod):
    return yaml.safe_load(pod["metadata"]["annotations"]["tfadmit.dev/status"])


def test_a_pod_that_asks_for_nothing_gets_nothing():
    pod = admitted({"tfadmit.dev/store-secret": "keys"})
    assert "initContainers" not in pod["spec"]
    assert "volumes" not in pod["spec"]
    assert "TFADMIT_MODEL_DIR" not in admission.env(pod)
    assert "transfer" not in status(pod)


def test_data_alone_needs_no_sidecar():
    pod = admitted({"tfadmit.dev/data": "train=s3://bucket/train"})
    assert list(containers(pod)) == ["tfadmit-fetch"]
    assert admission.env(pod)["TFADMIT_DATA_TRAIN"] == "/workspace/dataset/train"
    assert status(pod)["transfer"] == {"data": ["train"]}


def test_the_sidecar_is_a_native_one_and_comes_before_the_users_init_containers():
    """It starts before the program, is asked to end after it, and keeps no Job from ending."""
    pod = admitted(OUTPUT, initContainers=[{"name": "prepare", "image": "busybox"}])
    names = [item["name"] for item in pod["spec"]["initContainers"]]
    assert names == ["tfadmit-fetch", "tfadmit-sync", "prepare"]
    assert containers(pod)["tfadmit-sync"]["restartPolicy"] == "Always"
    assert "restartPolicy" not in containers(pod)["tfadmit-fetch"]


def test_variables_of_an_init_container_that_is_a_task_reach_that_one():
    annotations = {**OUTPUT, "tfadmit.dev/containers": "prepare"}
    pod = admitted(annotations, initContainers=[{"name": "prepare", "image": "busybox"}])
    assert "TF_CONFIG" in variables(containers(pod)["prepare"])
    assert "TF_CONFIG" not in variables(containers(pod)["tfadmit-fetch"])


@pytest.mark.parametrize(
    ("roles", "job", "index", "saves"),
    [
        (["node"], "node", 0, "true"),
        (["node"], "node", 1, "false"),
        (["chief", "node"], "chief", 0, "true"),
        (["chief", "node"], "node", 0, "false"),
        (["ps", "node"], "ps", 0, "false"),
        (["ps", "node"], "node", 0, "true"),
    ],
)
def test_one_task_of_a_job_saves_model_and_checkpoints(roles, job, index, saves):
    jobs = [
        builders.make_replicated_job(name, completions=1 if name == "chief" else 2)
        for name in roles
    ]
    pod = admitted(OUTPUT, jobset=builders.make_jobset(*jobs), job=job, index=index)
    assert variables(containers(pod)["tfadmit-sync"])["TFADMIT_SAVES"] == saves
    assert status(pod)["transfer"]["saves"] is (saves == "true")


def test_credentials_are_named_and_never_in_the_pod():
    """Row 9: by reference only, and not in the training container."""
    pod = admitted({**OUTPUT, "tfadmit.dev/store-secret": "keys"})
    for name in ("tfadmit-fetch", "tfadmit-sync"):
        assert containers(pod)[name]["envFrom"] == [{"secretRef": {"name": "keys"}}]
    assert "envFrom" not in pod["spec"]["containers"][0]


@pytest.mark.parametrize(
    ("pod_user", "program_user", "ours"),
    [
        (None, None, None),
        (1000, None, 1000),
        (None, 1000, 1000),
        (0, None, 65532),
        (0, 1000, 1000),
        (1000, 0, None),
    ],
)
def test_both_containers_run_as_the_programs_user_and_never_as_root(pod_user, program_user, ours):
    container = builders.make_container()
    if program_user is not None:
        container["securityContext"] = {"runAsUser": program_user}
    fields = {} if pod_user is None else {"securityContext": {"runAsUser": pod_user}}
    pod = admitted(OUTPUT, containers=[container], **fields)
    for found in containers(pod).values():
        security = dict(found["securityContext"])
        assert security.pop("runAsUser", None) == ours
        # The restricted Pod Security Standard, and a file system that cannot be written.
        assert security == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        }


def test_a_workspace_of_the_user_is_shared_and_no_other_one_is_made():
    mine = {"name": "scratch", "mountPath": "/workspace", "subPath": "job"}
    nested = {"name": "logs", "mountPath": "/workspace/output/logs"}
    container = builders.make_container(volumeMounts=[mine, nested])
    volumes = [{"name": "scratch", "emptyDir": {}}, {"name": "logs", "emptyDir": {}}]
    pod = admitted(OUTPUT, containers=[container], volumes=volumes)
    assert pod["spec"]["volumes"] == volumes
    assert pod["spec"]["containers"][0]["volumeMounts"] == [mine, nested]
    assert containers(pod)["tfadmit-sync"]["volumeMounts"] == [mine, nested]


@pytest.mark.parametrize("path", ["/workspace/", "//workspace", "/workspace/.", "workspace"])
def test_a_workspace_of_the_user_is_known_however_its_path_is_written(path):
    mine = {"name": "scratch", "mountPath": path}
    container = builders.make_container(volumeMounts=[mine])
    pod = admitted(OUTPUT, containers=[container], volumes=[{"name": "scratch", "emptyDir": {}}])
    assert pod["spec"]["containers"][0]["volumeMounts"] == [mine]
    assert containers(pod)["tfadmit-sync"]["volumeMounts"] == [mine]


def test_what_only_a_privileged_container_may_mount_is_mounted_without_that():
    """The API server would refuse the pod: ours have no privileges."""
    plain = {"name": "a", "mountPath": "/workspace"}
    nested = {"name": "b", "mountPath": "/workspace/dataset/b"}
    mine = [{**item, "mountPropagation": "Bidirectional"} for item in (plain, nested)]
    container = builders.make_container(volumeMounts=mine, securityContext={"privileged": True})
    pod = admitted(OUTPUT, containers=[container], volumes=[])
    assert pod["spec"]["containers"][0]["volumeMounts"] == mine
    assert containers(pod)["tfadmit-sync"]["volumeMounts"] == [plain, nested]


def test_the_variables_come_along_of_which_a_mount_takes_its_folder():
    """Without them neither container could be made: all see the same folder of the volume."""
    name = {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    place = {"name": "PLACE", "value": "runs/$(POD)"}
    other = {"name": "TOKEN", "value": "hush"}
    mine = {"name": "a", "mountPath": "/workspace", "subPathExpr": "$(PLACE)/$(TF_TASK_INDEX)"}
    apart = {"name": "a", "mountPath": "/apart", "subPathExpr": "$(TOKEN)"}
    container = builders.make_container(env=[name, other, place], volumeMounts=[mine, apart])
    pod = admitted(OUTPUT, containers=[container], volumes=[{"name": "a", "emptyDir": {}}])
    for found in (containers(pod)["tfadmit-fetch"], containers(pod)["tfadmit-sync"]):
        assert found["volumeMounts"] == [mine]
        assert found["env"][:2] == [name, place]
        assert other not in found["env"]
        assert [item["name"] for item in found["env"]].count("TF_TASK_INDEX") == 1
    assert admission.admit(pod) == pod


def test_the_users_own_variables_and_containers_stay():
    container = builders.make_container(env=[{"name": "SM_MODEL_DIR", "value": "/mine"}])
    own = {"name": "tfadmit-fetch", "image": "mine"}
    pod = admitted(OUTPUT, containers=[container], initContainers=[own])
    assert admission.env(pod)["SM_MODEL_DIR"] == "/mine"
    assert containers(pod)["tfadmit-fetch"] == own
    assert "SM_MODEL_DIR" in status(pod)["kept"]


def test_a_claim_with_data_is_mounted_and_not_copied():
    pod = admitted({"tfadmit.dev/data": "train=pvc://datasets/cifar10/train"})
    assert {
        "name": "tfadmit-data-0",
        "persistentVolumeClaim": {"claimName": "datasets", "readOnly": True},
    } in pod["spec"]["volumes"]
    assert {
        "name": "tfadmit-data-0",
        "mountPath": "/workspace/dataset/train",
        "readOnly": True,
        "subPath": "cifar10/train",
    } in pod["spec"]["containers"][0]["volumeMounts"]
    mounts = containers(pod)["tfadmit-fetch"]["volumeMounts"]
    assert mounts == [{"name": "tfadmit-workspace", "mountPath": "/workspace"}]


def test_a_claim_can_take_the_results():
    pod = admitted({"tfadmit.dev/output": "pvc://results/team-a"})
    sync = containers(pod)["tfadmit-sync"]
    assert {"name": "tfadmit-output", "mountPath": "/tfadmit/output"} in sync["volumeMounts"]
    assert variables(sync)["TFADMIT_OUTPUT_MOUNT"] == "/tfadmit/output/team-a/mnist"
    mounts = pod["spec"]["containers"][0]["volumeMounts"]
    assert [mount["name"] for mount in mounts] == ["tfadmit-workspace"]


def test_a_folder_of_the_node_is_mounted_where_the_platform_allows_it():
    settings = Settings(transfer=Transfer(host_paths=("/mnt/datasets",)))
    pod = admitted({"tfadmit.dev/data": "train=file:///mnt/datasets/cifar10"}, settings=settings)
    assert {
        "name": "tfadmit-data-0",
        "hostPath": {"path": "/mnt/datasets/cifar10", "type": "Directory"},
    } in pod["spec"]["volumes"]


@pytest.mark.parametrize("path", ["/etc", "/mnt/datasets-of-others", "/mnt", "/mnt/datasets/../x"])
def test_no_other_folder_of_the_node_is_mounted(path):
    message = refused({"tfadmit.dev/data": f"file://{path}"}, host_paths=("/mnt/datasets",))
    assert "file://" in message
    assert "transfer.hostPaths" in message or "has . or .." in message


@pytest.mark.parametrize(
    ("annotations", "sentence"),
    [
        ({"tfadmit.dev/data": "train"}, "tfadmit.dev/data: 'train' is no address of data"),
        ({"tfadmit.dev/data": "hf://a/b"}, "has the scheme hf: Trainer's own initializer"),
        ({"tfadmit.dev/data": "a=s3://bbb/a\na=s3://bbb/b"}, "two inputs are named 'a' and 'a'"),
        ({"tfadmit.dev/data": "a b=s3://bbb/a"}, "'a b=s3://bbb/a' is no address of data"),
        ({"tfadmit.dev/output": "https://x/y"}, "results cannot be saved by https"),
        ({"tfadmit.dev/output": "s3://B"}, "names the bucket 'B'"),
        ({**OUTPUT, "tfadmit.dev/store-secret": "My Keys"}, "'My Keys' is no name of a Secret"),
        ({"tfadmit.dev/data": "file:///data"}, "the platform allows none"),
    ],
)
def test_what_cannot_be_had_is_refused_with_a_sentence(annotations, sentence):
    assert sentence in refused(annotations)


def test_what_kubernetes_would_expand_stays_as_it_is_written():
    pod = admitted({"tfadmit.dev/data": "s3://bucket/$(HOME)/x"})
    inputs = variables(containers(pod)["tfadmit-fetch"])["TFADMIT_FETCH"]
    assert inputs == "data=s3://bucket/$$(HOME)/x"


def test_no_variable_of_a_secret_gets_into_a_path_or_a_number():
    annotations = {
        "tfadmit.dev/output": "pvc://claim/$(AWS_SECRET_ACCESS_KEY)",
        "tfadmit.dev/store-secret": "keys",
        "jobset.sigs.k8s.io/restart-attempt": "$(AWS_SECRET_ACCESS_KEY)",
    }
    given = variables(containers(admitted(annotations))["tfadmit-sync"])
    assert given["TFADMIT_OUTPUT_URI"] == "pvc://claim/$$(AWS_SECRET_ACCESS_KEY)/mnist"
    assert given["TFADMIT_OUTPUT_MOUNT"] == "/tfadmit/output/$$(AWS_SECRET_ACCESS_KEY)/mnist"
    assert given["TFADMIT_ATTEMPT"] == "$$(AWS_SECRET_ACCESS_KEY)"


def test_image_and_resources_come_from_the_settings():
    settings = settings_file.load(
        "transfer: {image: 'mirror/transfer:1', resources: {cpu: '1', memory: 1Gi}}", rules=()
    )
    fetch = containers(admitted(OUTPUT, settings=settings))["tfadmit-fetch"]
    assert fetch["image"] == "mirror/transfer:1"
    wanted = {"cpu": "1", "memory": "1Gi"}
    assert fetch["resources"] == {"requests": wanted, "limits": wanted}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("image: ''", "transfer.image: is '': write the name of an image"),
        ("resources: {cpu: some}", "transfer.resources.cpu: is 'some', which is no quantity"),
        ("resources: {cpu: 1}", "transfer.resources.cpu: is 1, which is no text in YAML: quote it"),
        ("hostPaths: [data]", "transfer.hostPaths[0]: is 'data': write a path of the nodes"),
        ("hostPaths: [/]", "transfer.hostPaths[0]: is the whole file system of the nodes"),
        ("hostPaths: [/a/../b]", "transfer.hostPaths[0]: is '/a/../b': write it without"),
        ("hostPath: [/a]", "transfer.hostPath: there is no such setting: did you mean hostPaths?"),
    ],
)
def test_settings_of_the_section_that_make_no_sense_are_told(text, sentence):
    found = settings_file.load(f"transfer: {{{text}}}", rules=())
    assert isinstance(found, list)
    assert sentence in "\n".join(map(str, found))


def test_a_pod_of_nobody_has_no_name_for_its_results():
    cluster = {"tfadmit.dev/cluster": '{"worker":["a:1"]}'}
    pod = builders.make_pod(jobset=None, annotations={**OUTPUT, **cluster})
    del pod["metadata"]["generateName"]
    decision = admission.decide("/mutate/pods", pod)
    assert not decision.allowed
    assert "belongs to no JobSet or Job" in decision.message


def test_a_runtime_may_ask_for_all_its_jobs():
    annotations = {**OUTPUT, "tfadmit.dev/data": "s3://bucket/x"}
    job = builders.make_trainer_job(annotations=annotations)
    decision = admission.decide("/validate/runtimes", builders.make_runtime(job))
    assert decision.allowed, decision.message


def test_a_runtime_with_a_wrong_address_is_refused_before_any_pod():
    job = builders.make_trainer_job(annotations={"tfadmit.dev/output": "s4://results"})
    decision = admission.decide("/validate/runtimes", builders.make_runtime(job))
    assert not decision.allowed
    assert "TFA020" in decision.message
    assert "s4://results" in decision.message
