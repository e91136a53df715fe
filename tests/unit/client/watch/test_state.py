"""The state of a job and the reason for it, from objects alone (rows 13, 14, 17, 30)."""

import copy
import itertools
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fake_jobs as make
from tfadmit_client.watch import belong, detail, event, job, reason, seen, state, why_failed
from tfadmit_trainer import exits

SLIPS: tuple[object, ...] = (None, [], {}, "text", 3, True, [None], {"a": None})
TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 9, in <module>
    fit()
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "train.py", line 12, in <module>
    save()
tensorflow.errors.ResourceExhaustedError: OOM when allocating tensor
Hint: add report_tensor_allocations_upon_oom
"""
OUT_OF_GPU = (
    "0/3 nodes are available: 1 node(s) had untolerated taint {gpu: true}, 2 Insufficient cpu."
)
PULL_DENIED = "pull access denied, repository does not exist or may require authorization"


def index(**parts: Any) -> belong.Index:
    events = [event.parse(item) for item in parts.pop("events", ())]
    return belong.Index(belong.Parts(events=events, **parts))


def watch(*pods: make.Json, trainjob: make.Json | None = None, **parts: Any) -> job.Job:
    """The job `mnist` of two workers."""
    parts.setdefault("jobsets", [make.jobset("mnist")])
    return job.job(index(pods=pods, **parts).seen(trainjob or make.trainjob("mnist")))


def both(builder, **fields):
    return [builder("mnist", number, **fields) for number in range(2)]


# --- the state ----------------------------------------------------------------------------------

CONDITIONS = (
    make.condition("Suspended", status="False"),
    make.condition("Failed", status="False"),
    make.condition("Complete", status="False"),
)


@pytest.mark.parametrize("conditions", list(itertools.permutations(CONDITIONS)))
def test_conditions_that_do_not_hold_decide_nothing_in_any_order(conditions):
    found = watch(*both(make.running), trainjob=make.trainjob("mnist", *conditions))
    assert found.state.text == "Running"


@pytest.mark.parametrize(("kind", "word"), [("Complete", "Succeeded"), ("Failed", "Failed")])
def test_a_condition_that_holds_decides_wherever_it_stands(kind, word):
    for conditions in itertools.permutations((make.condition(kind), *CONDITIONS[:1])):
        found = watch(*both(make.running), trainjob=make.trainjob("mnist", *conditions))
        assert found.state.word == word


@pytest.mark.parametrize(("kind", "word"), [("Completed", "Succeeded"), ("Failed", "Failed")])
def test_the_jobset_is_believed_before_trainer_has_looked(kind, word):
    parts = [make.jobset("mnist", conditions=(make.condition(kind),))]
    assert watch(*both(make.running), jobsets=parts).state.word == word


def test_suspended_is_what_the_spec_says_not_what_the_condition_says():
    stopped = make.trainjob("mnist", spec={"suspend": True})
    assert watch(*both(make.running), trainjob=stopped).state.word == "Suspended"
    resumed = make.trainjob("mnist", make.condition("Suspended"))
    assert watch(*both(make.running), trainjob=resumed).state.word == "Running"


def test_one_task_that_does_not_run_makes_the_job_pending():
    found = watch(make.running("mnist"), make.waiting("mnist", 1, reason="ContainerCreating"))
    assert (found.state.text, found.running, found.tasks) == ("Pending", 1, 2)


def test_pods_of_an_attempt_that_is_over_do_not_count():
    parts = [make.jobset("mnist", restarts=1)]
    found = watch(*both(make.running, attempt=0), jobsets=parts)
    assert found.state.text == "Restarting(1)"
    assert watch(*both(make.running, attempt=1), jobsets=parts).state.text == "Running"


def test_pods_of_an_earlier_job_of_this_name_do_not_count():
    old = make.running("mnist")
    old["metadata"]["annotations"]["jobset.sigs.k8s.io/jobset-uid"] = "another"
    assert watch(old).running == 0


def test_a_jobset_that_belongs_to_something_else_is_in_the_way():
    other = make.jobset("mnist")
    other["metadata"]["ownerReferences"] = []
    found = watch(*both(make.running), jobsets=[other])
    assert (found.state.text, found.reason.code) == ("Pending", "not-created")


def test_a_pod_that_its_job_replaces_is_a_restart():
    retrying = make.job("mnist")
    retrying["status"]["failed"] = 2
    new = make.waiting("mnist", 1, reason="ContainerCreating")
    assert watch(make.running("mnist"), new, jobs=[retrying]).state.text == "Restarting(2)"
    single = make.jobset("mnist")
    single["status"]["replicatedJobsStatus"] = [{"name": "node", "jobRestarts": [0, 1]}]
    assert watch(make.running("mnist"), new, jobsets=[single]).state.text == "Restarting(1)"


def test_a_container_that_crashes_again_and_again_is_no_running_job():
    before: make.Json = {
        "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "message": TRACEBACK}}
    }
    crashed = [
        make.waiting("mnist", number, reason="CrashLoopBackOff", restarts=2, **before)
        for number in range(2)
    ]
    found = watch(*crashed)
    assert found.state.text == "Restarting(3)"
    assert found.reason == reason.Reason(
        code="crash-loop",
        text="crashed 3 times: exit 1: tensorflow.errors.ResourceExhaustedError: OOM when "
        "allocating tensor",
    )


def test_a_job_whose_pods_are_cleaned_away_after_success_is_not_pending():
    parts = [make.jobset("mnist", make.replicated("chief", completions=1), make.replicated())]
    done = make.job("mnist", make.condition("Complete"), replicated_job="chief")
    assert watch(*both(make.running), jobsets=parts, jobs=[done]).state.word == "Running"


def test_tasks_are_named_by_role_across_replicated_jobs():
    parts = [
        make.jobset(
            "mnist",
            make.replicated("a", completions=2),
            make.replicated("master", completions=1),
            make.replicated("b", completions=1),
        )
    ]
    content = index(jobsets=parts).seen(make.trainjob("mnist"))
    names = [item.name for item in detail.detail(content, job.job(content)).replicas]
    assert names == ["worker-0", "worker-1", "chief-0", "worker-2"]


def test_another_frameworks_tasks_go_by_the_name_of_their_job():
    torch = make.replicated("node", completions=1)
    torch["template"]["spec"]["template"]["metadata"]["labels"] = {}
    assert list(watch(jobsets=[make.jobset("mnist", torch)]).roles) == ["node"]


# --- the reason ---------------------------------------------------------------------------------

CLAIMS = (
    "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 "
    "nodes are available: 2 Preemption is not helpful for scheduling."
)
REASONS: list[tuple[str, list[make.Json], str, str]] = [
    ("no node", both(make.unscheduled, message=OUT_OF_GPU), "unschedulable",
     "0/3 nodes: 1 taint gpu: true, 2 Insufficient cpu"),
    ("image", both(make.waiting, reason="ImagePullBackOff",
                   message='Back-off pulling image "x": ErrImagePull: x: not found'),
     "image", "image not found: example.com/train:1"),
    ("claims", both(make.unscheduled, message=CLAIMS), "unschedulable",
     "0/2 nodes: 2 Insufficient cpu"),
    ("one tries, one waits", [
        make.waiting("mnist", 0, reason="ErrImagePull", message="dial tcp: refused"),
        make.waiting("mnist", 1, reason="ImagePullBackOff",
                     message='Back-off pulling image "x": ErrImagePull: dial tcp: refused')],
     "image", "image example.com/train:1 cannot be pulled: dial tcp: refused"),
    ("private image", both(make.waiting, reason="ErrImagePull", message=PULL_DENIED), "image",
     "image example.com/train:1: no right to pull it, or not there; is an imagePullSecret needed?"),
    ("registry away", both(make.waiting, reason="ErrImagePull", message="dial tcp: no such host"),
     "image", "image example.com/train:1 cannot be pulled: dial tcp: no such host"),
    ("image name", both(make.waiting, reason="InvalidImageName"), "image",
     "the name of image example.com/train:1 is invalid"),
    ("one of two", [make.running("mnist"),
                    make.waiting("mnist", 1, reason="CreateContainerConfigError",
                                 message='secret "keys" not found')],
     "config", 'worker-1: secret "keys" not found'),
    ("held", both(make.unscheduled, message="", reason="SchedulingGated"), "gated",
     "held back by a scheduling gate"),
    ("gone pod", both(make.waiting, reason="PodInitializing", node=""), "scheduling",
     "default-scheduler has not looked at it yet"),
]  # fmt: skip


@pytest.mark.parametrize(("pods", "code", "text"), [item[1:] for item in REASONS],
                         ids=[item[0] for item in REASONS])  # fmt: skip
def test_why_a_job_waits(pods, code, text):
    found = watch(*pods)
    assert (found.state.text, found.reason) == ("Pending", reason.Reason(code=code, text=text))


GPUS = (
    "requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=8, "
    "limited: requests.nvidia.com/gpu=8"
)
QUOTA = f'Error creating: pods "mnist-node-0-0-" is forbidden: exceeded quota: team, {GPUS}'
DENIED = 'Error creating: admission webhook "pods.tfadmit.dev" denied the request: it has no index'
SILENT = (
    'Error creating: Internal error occurred: failed calling webhook "pods.tfadmit.dev": failed to '
    'call webhook: Post "https://x": connection refused'
)
ROBOT = (
    'Error creating: pods "a" is forbidden: error looking up service account team/robot: '
    'serviceaccount "robot" not found'
)
WARNINGS = [
    ("TrainJob", 'admission webhook "trainjobs.example" denied the request: too long', "refused",
     "refused by trainjobs.example: too long"),
    ("TrainJob", "TrainJob resources reconciliation failed: something new", "not-created",
     "something new"),
    ("Job", QUOTA, "quota", f"quota team is used up: {GPUS}"),
    ("Job", DENIED, "refused", "refused by pods.tfadmit.dev: it has no index"),
    ("Job", SILENT, "webhook-down",
     'the webhook pods.tfadmit.dev fails: Post "https://x": connection refused'),
    ("Job", ROBOT, "refused",
     'error looking up service account team/robot: serviceaccount "robot" not found'),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "message", "code", "text"), WARNINGS)
def test_why_objects_cannot_be_created(kind, message, code, text):
    name = "mnist" if kind == "TrainJob" else "mnist-node-0"
    told = make.warning(kind, name, reason="FailedCreate", message=message)
    has: dict[str, Any] = {"jobs": [make.job("mnist")]}
    if kind == "TrainJob":
        has = {"jobsets": []}
    assert watch(events=[told], **has).reason == reason.Reason(code=code, text=text)


def test_what_cannot_be_had_explains_more_than_what_is_on_its_way():
    told = make.warning("Job", "mnist-node-0", reason="FailedCreate", message=QUOTA)
    first = make.waiting("mnist", 0, reason="ContainerCreating")
    assert watch(first, events=[told], jobs=[make.job("mnist")]).reason.code == "quota"


def test_an_older_kubelet_says_in_an_event_why_an_image_is_not_there():
    waits = 'Back-off pulling image "x"'
    pods = both(make.waiting, reason="ImagePullBackOff", message=waits)
    said = 'Failed to pull image "x": manifest unknown'
    events = [
        make.warning("Pod", item["metadata"]["name"], reason="Failed", message=said)
        for item in pods
    ]
    found = watch(*pods, events=events).reason
    assert found == reason.Reason(code="image", text="image not found: example.com/train:1")


def test_a_volume_that_cannot_be_mounted_is_told_by_the_pods_event():
    pods = both(make.waiting, reason="ContainerCreating")
    message = 'MountVolume.SetUp failed for volume "data": pvc "data" not found'
    events = [
        make.warning("Pod", item["metadata"]["name"], reason="FailedMount", message=message)
        for item in pods
    ]
    assert watch(*pods, events=events).reason == reason.Reason(code="volume", text=message)


FAILURES: list[tuple[str, dict[str, Any], str, str]] = [
    ("traceback", {"code": 1, "message": TRACEBACK}, "exit",
     "worker-1 exit 1: tensorflow.errors.ResourceExhaustedError: OOM when allocating tensor"),
    ("sentence", {"code": 3, "message": "worker-3 is not there\nsee the log"}, "exit",
     "worker-1 exit 3: worker-3 is not there"),
    ("from the log", {"code": 1, "message": "loading\nno space left on device\n",
                      "spec": {"terminationMessagePolicy": "FallbackToLogsOnError"}}, "exit",
     "worker-1 exit 1: no space left on device"),
    ("memory", {"code": 137, "reason": "OOMKilled",
                "spec": {"resources": {"limits": {"memory": "8Gi"}}}}, "oom",
     "worker-1 exit 137 OOMKilled (limit 8Gi)"),
    ("killed", {"code": 137}, "exit", "worker-1 exit 137 SIGKILL"),
    ("crash", {"code": 139}, "exit", "worker-1 exit 139 SIGSEGV"),
    ("save", {"code": 74}, "exit", "worker-1 exit 74: the results could not be saved"),
    ("no command", {"code": 127}, "exit", "worker-1 exit 127: the command was not found"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "code", "text"), [item[1:] for item in FAILURES],
                         ids=[item[0] for item in FAILURES])  # fmt: skip
def test_why_a_job_failed(fields, code, text):
    failed = make.trainjob("mnist", make.condition("Failed", message="jobset failed"))
    # its peer lost it a second earlier by its own clock
    peer = make.ended("mnist", 0, code=76, at="2026-01-01T10:03:59Z")
    found = watch(peer, make.ended("mnist", 1, **fields), trainjob=failed)
    assert found.reason == reason.Reason(code=code, text=text)


def test_an_eviction_is_no_fault_of_the_program():
    failed = make.trainjob("mnist", make.condition("Failed"))
    taken = make.ended("mnist", 1, code=143)
    taken["status"]["conditions"] = [
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler",
         "message": "Preempted by team/big"}
    ]  # fmt: skip
    found = watch(taken, trainjob=failed).reason
    assert found.code == "disrupted"
    assert found.text == "worker-1 was taken away (PreemptionByScheduler): Preempted by team/big"


def test_a_task_that_is_being_taken_away_runs_until_it_is_replaced():
    leaving = make.running("mnist", 1)
    leaving["metadata"]["deletionTimestamp"] = make.CREATED
    resumed = watch(make.running("mnist"), leaving)
    assert (resumed.state.text, resumed.running) == ("Pending", 1)
    leaving["status"]["conditions"] = [
        {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager",
         "message": "Taint manager: deleting due to NoExecute taint"}
    ]  # fmt: skip
    lost = watch(make.running("mnist"), leaving)
    assert lost.state.text == "Running"
    assert lost.reason.text == (
        "worker-1 is being taken away (DeletionByTaintManager): Taint manager: deleting due to "
        "NoExecute taint"
    )


def test_a_deadline_is_named_with_its_length():
    mark = make.condition("Failed", reason="DeadlineExceeded")
    late = make.trainjob("mnist", mark, spec={"activeDeadlineSeconds": 7200})
    assert watch(trainjob=late, jobsets=[]).reason.text == "its deadline of 2h was exceeded"


def test_the_jobs_own_words_are_taken_when_its_pods_are_gone():
    said = "Container node for pod team/x failed with exit code 3"
    failed = make.trainjob("mnist", make.condition("Failed", message="jobset failed"))
    child = make.job("mnist", make.condition("Failed", message=said))
    assert watch(trainjob=failed, jobs=[child]).reason.text == f"Job mnist-node-0: {said}"


def test_a_failed_task_explains_a_job_that_still_runs():
    found = watch(make.running("mnist"), make.ended("mnist", 1, code=3))
    assert (found.state.text, found.reason.text) == ("Running", "worker-1 exit 3")


def test_exit_codes_mean_what_the_library_in_the_container_says():
    ours = {code: text for code, text in why_failed.MEANING.items() if code != 74}
    assert ours == {code: text for code, text in exits.MEANING.items() if code != 0}


def test_events_are_read_by_any_of_their_times():
    for name in ("eventTime", "lastTimestamp", "firstTimestamp"):
        content = make.warning("Pod", "x", reason="a", message="b")
        del content["eventTime"]
        assert event.parse({**content, name: make.CREATED}).at == make.NOW - 300


# --- whatever stands in an object -----------------------------------------------------------------


def objects():
    return {
        "trainjob": make.trainjob("mnist", make.condition("Failed"), spec={"suspend": False}),
        "jobset": make.jobset("mnist", restarts=1),
        "job": make.job("mnist", make.condition("Failed")),
        "pod": make.ended("mnist", 1, code=1, message=TRACEBACK, attempt=1),
        "event": make.warning("Pod", "mnist-node-0-1-1", reason="Failed", message="x"),
    }


def places(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from places(item, (*path, number))


def replaced(value, path, slip):
    changed = copy.deepcopy(value)
    parent = changed
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = slip
    return changed


PLACES = [path for path in places(objects()) if len(path) > 1]


@given(path=st.sampled_from(PLACES), slip=st.sampled_from(SLIPS))
def test_an_object_that_makes_no_sense_is_told_as_a_job(path, slip):
    """Row 17: one broken job never breaks a list."""
    parts = replaced(objects(), path, slip)
    content = index(
        jobsets=[parts["jobset"]], jobs=[parts["job"]], pods=[parts["pod"]], events=[parts["event"]]
    ).seen(parts["trainjob"])
    found = job.safe(content)
    assert found.state.word in get_args(state.Word)
    assert found.reason.code in reason.CODES
    assert "\n" not in found.reason.text
    assert detail.safe(content, found).job == found


def test_a_job_that_cannot_be_read_is_unknown(monkeypatch):
    def fail(_):
        raise KeyError("spec")

    monkeypatch.setattr(job, "job", fail)
    found = job.safe(seen.Seen(trainjob=make.trainjob("mnist")))
    assert (found.name, found.state.text) == ("mnist", "Unknown")
    assert found.reason.text == "it cannot be read: KeyError: 'spec'"
