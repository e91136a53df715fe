"""Creating a job and its ConfigMap where others act at the same moment, and older clusters.

A fake stands for the API server only in what cannot be caused for real: races and refusals of other
releases. Everything else is in tests/cluster/test_run.py.
"""

import signal
from typing import Any

import pytest

from tfadmit_client import fault
from tfadmit_client.cluster import listing
from tfadmit_client.console import interrupts
from tfadmit_client.submit import create, repeat
from tfadmit_client.submit.objects import Submission
from tfadmit_client.submit.resource import CONFIG_MAP, TRAINJOB

MADE = Submission(
    trainjob={"apiVersion": "v", "kind": "TrainJob", "metadata": {"name": "mnist"}},
    config_map={
        "kind": "ConfigMap", "metadata": {"name": "tfadmit-code-1"}, "immutable": True,
        "binaryData": {"code.tgz": "YQ=="},
    },
)  # fmt: skip
GONE = listing.StatusError(404, 'configmaps "tfadmit-code-1" not found')
TAKEN = listing.StatusError(409, 'configmaps "tfadmit-code-1" already exists')


class Api:
    """Answers as it was told, in that order, and keeps what was done."""

    flags = ""

    def __init__(self, **answers):
        self._answers = {name: list(items) for name, items in answers.items()}
        self.done = []

    def _next(self, name, *, otherwise):
        answers = self._answers.get(name, [])
        answer = answers.pop(0) if answers else otherwise
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def get(self, kind, *, namespace, name):
        return self._next("get", otherwise=GONE)

    def items(self, kind, *, namespace, selector):
        return []

    def create(self, kind, content, *, namespace, dry_run):
        self.done.append(("try" if dry_run else "create", kind.plural))
        made = {"metadata": {"name": "mnist", "uid": "uid-1"}} if kind is TRAINJOB else content
        return self._next(f"create_{kind.plural}", otherwise=made)

    def own(self, kind, *, namespace, name, owner):
        self._next("own", otherwise=None)
        self.done.append(("own", owner["uid"]))

    def delete(self, kind, *, namespace, name, uid):
        self.done.append(("delete", kind.plural, uid))
        self._next("delete", otherwise=None)


def made(api):
    return create.create(api, MADE, namespace="team")


def test_the_job_comes_first_so_that_its_code_has_an_owner_at_once():
    api = Api()
    made(api)
    assert api.done == [("create", "trainjobs"), ("create", "configmaps")]


def test_two_runs_that_bring_the_same_code_at_once_share_it():
    api = Api(get=[GONE, MADE.config_map], create_configmaps=[TAKEN])
    made(api)
    assert api.done[-1] == ("own", "uid-1")


def test_code_whose_last_owner_goes_at_this_moment_is_made_anew():
    api = Api(get=[MADE.config_map, GONE], own=[GONE])
    made(api)
    assert api.done == [("create", "trainjobs"), ("create", "configmaps")]


def test_code_that_is_on_its_way_out_is_not_relied_on():
    metadata = {**MADE.config_map["metadata"], "deletionTimestamp": "now"}
    going = {**MADE.config_map, "metadata": metadata}
    api = Api(get=[going])
    made(api)
    assert api.done[-1] == ("create", "configmaps")


def test_code_that_comes_and_goes_ends_in_a_sentence_and_without_the_job():
    api = Api(get=[MADE.config_map] * 9, own=[GONE] * 9)
    with pytest.raises(fault.ClientError, match="came and went 5 times"):
        made(api)
    assert api.done[-1] == ("delete", "trainjobs", "uid-1")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), listing.UnreachableError("away")])
def test_whatever_ends_it_between_the_two_the_job_is_taken_back(error):
    api = Api(create_configmaps=[error])
    with pytest.raises(type(error)):
        made(api)
    assert api.done[-1] == ("delete", "trainjobs", "uid-1")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_ended_between_the_two_takes_the_job_back(number):
    class Ended(Api):
        def create(self, kind, content, *, namespace, dry_run):
            if kind is CONFIG_MAP:
                signal.raise_signal(number)
            return super().create(kind, content, namespace=namespace, dry_run=dry_run)

    before = signal.getsignal(number)
    api = Ended()
    with pytest.raises(KeyboardInterrupt), interrupts.as_ctrl_c():
        made(api)
    assert api.done == [("create", "trainjobs"), ("delete", "trainjobs", "uid-1")]
    assert signal.getsignal(number) == before


def test_a_job_that_cannot_be_taken_back_is_named():
    away = listing.UnreachableError("away")
    api = Api(create_configmaps=[away], delete=[away])
    with pytest.raises(fault.ClientError, match="kubectl -n team delete trainjob mnist"):
        made(api)


# As Trainer 2.3 says it.
WEBHOOK = 'admission webhook "defaulter.trainjob.trainer.kubeflow.org" denied the request: json: '
FIELD = (
    "PodSpecPatch.spec.runtimePatches.trainingRuntimeSpec.template.spec.replicatedJobs.template."
    "spec.template.spec."
)
REFUSALS = {
    "older Trainer": (
        400,
        'strict decoding error: unknown field "spec.runtimePatches"',
        "it needs 2.2 or newer",
    ),
    "no Trainer": (
        404,
        "the server could not find the requested resource",
        "install Kubeflow Trainer 2.x",
    ),
    "no namespace": (404, 'namespaces "team" not found', "name one with -n"),
    "a webhook": (
        403,
        'admission webhook "x" denied the request: no',
        "refuses the TrainJob mnist: admission",
    ),
    "a number for a text": (
        403,
        f"{WEBHOOK}cannot unmarshal number into Go struct field {FIELD}nodeSelector of type string",
        '--patch: nodeSelector takes text (put it in quotes, as in "5"), and has a number',
    ),
    "a text for a list": (
        403,
        f"{WEBHOOK}cannot unmarshal string into Go struct field {FIELD}tolerations of type []v1.X",
        "--patch: tolerations takes a list (write `- ` before each item), and has text",
    ),
    "quota": (403, "exceeded quota: jobs", "refuses the TrainJob mnist: exceeded quota: jobs"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_refusal_says_what_helps(case):
    status, said, sentence = REFUSALS[case]
    api = Api(create_trainjobs=[listing.StatusError(status, said)])
    with pytest.raises(fault.ClientError) as caught:
        create.attempt(api, MADE, namespace="team")
    assert sentence in str(caught.value)
    assert api.done == [("try", "trainjobs")]


def test_configmaps_that_may_not_be_read_name_the_role():
    api = Api(get=[listing.StatusError(403, "forbidden")])
    with pytest.raises(fault.ClientError, match="get, create and patch on configmaps"):
        create.attempt(api, MADE, namespace="team")


NO = listing.StatusError(500, "no")
NEXT: dict[str, dict[str, Any]] = {
    "tfadmit rm -n team{} mnist": {"create_trainjobs": [TAKEN]},
    "`kubectl get ns{}`": {
        "create_trainjobs": [listing.StatusError(404, 'namespaces "team" not found')]
    },
    "kubectl -n team{} delete configmap tfadmit-code-1": {
        "get": [{**MADE.config_map, "binaryData": {}}]
    },
    "kubectl -n team{} delete trainjob mnist": {"create_configmaps": [NO], "delete": [NO]},
}


@pytest.mark.parametrize("command", NEXT)
def test_what_to_run_next_reaches_the_same_cluster(command):
    api = Api(**NEXT[command])
    api.flags = " --context blue"
    with pytest.raises(fault.ClientError) as caught:
        made(api)
    assert command.format(" --context blue") in str(caught.value)


@pytest.mark.parametrize(
    ("found", "command"),
    [
        (GONE, "tfadmit ps -n team --context blue"),
        ({"metadata": {}}, "kubectl -n team --context blue get trainjob mnist -o yaml"),
    ],
)
def test_what_to_run_instead_of_a_repetition_reaches_the_same_cluster(found, command):
    api = Api(get=[found])
    api.flags = " --context blue"
    with pytest.raises(fault.ClientError) as caught:
        repeat.said(api, namespace="team", name="mnist")
    assert command in str(caught.value)
