"""`tfadmit run` on nodes: code in, results out, however a job ends."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import object_store, tools
from harness.cluster import Cluster
from harness.node import images, plan
from harness.node.nodes import Nodes
from node import jobs, trainings
from node.jobs import User

pytestmark = pytest.mark.timeout(600)

# Counts seconds, and keeps the number in its checkpoint.
_COUNT = """
import os, pathlib, sys, time
place = pathlib.Path(os.environ["TFADMIT_CHECKPOINT_DIR"], "count")
begin = int(place.read_text()) if place.exists() else 0
print("begins at", begin, "in attempt", os.environ["TFADMIT_ATTEMPT"], flush=True)
for count in range(begin + 1, int(sys.argv[1]) + 1):
    time.sleep(1)
    place.with_name("new").write_text(str(count))
    place.with_name("new").rename(place)
    print("counted", count, flush=True)
pathlib.Path(os.environ["TFADMIT_MODEL_DIR"], "model").write_text(f"counted to {count}")
"""
_ODD = {
    "odd/$HOME `id` \\n.txt": "$HOME `id` \\n\n",
    "odd/ünïcode ✓.py": "value = '✓'\n",
    "odd/tool.sh": '#!/bin/sh\necho "tool says $1"\n',
}
_DIGESTS = """
import hashlib, pathlib, subprocess
for path in sorted(pathlib.Path("odd").iterdir()):
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    print("file", oct(path.stat().st_mode & 0o777), digest, path)
print(subprocess.run(["odd/tool.sh", "$HOME"], capture_output=True, text=True).stdout)
"""


@pytest.fixture(scope="session")
def store(nodes: Nodes, tmp_path_factory) -> Iterator[object_store.ObjectStore]:
    """A store that the pods reach."""
    if not nodes.own:
        pytest.skip("the nodes of a named cluster need not reach a server on this machine")
    with object_store.running(
        directory=tmp_path_factory.mktemp("store"), host=plan.HOST
    ) as running:
        yield running


@pytest.fixture
def user(
    cluster: Cluster, tfadmit: None, training_image: str, namespace: str, store, tmp_path: Path
) -> Iterator[User]:
    made = User(cluster, namespace=namespace, store=store, folder=tmp_path / "code")
    made.may_store()
    made.write("count.py", _COUNT)
    yield made
    cluster.delete("TrainJob", jobs.NAME, namespace)


def test_rows_1_4_15_21_a_folder_arrives_byte_equal_trains_and_its_model_comes_back(user: User):
    page = (tools.ROOT / "docs" / "first-training.md").read_text()
    for name, content in re.findall(r"```python\n# (\S+)\n(.*?)```", page, re.DOTALL):
        user.write(name, _DIGESTS + content if name == "train.py" else content)
    for name, content in _ODD.items():
        user.write(name, content, mode=0o755 if name.endswith(".sh") else 0o644)
    # The image knows nothing of tfadmit.
    job = user.runs(
        "python", "train.py", "$HOME", "`id`", "\\",
        image=images.TENSORFLOW.name, options=("--workers", "2"),
    )  # fmt: skip
    printed = jobs.ends(job, code=0)
    for name, content in _ODD.items():
        mode = "0o755" if name.endswith(".sh") else "0o644"
        digest = hashlib.sha256(content.encode()).hexdigest()
        for worker in range(2):
            assert re.search(
                rf"worker-{worker} \| file {mode} {digest} {re.escape(name)}\n", printed
            ), printed
    assert "tool says $HOME" in printed
    assert "worker-0 | [tfadmit] worker 0: 2 replicas in sync" in printed
    assert "Succeeded" in user.command("ps")
    shown = user.command("show", jobs.NAME)
    assert "python train.py '$HOME' '`id`' '\\'" in shown
    user.command("pull", jobs.NAME)
    brought = user.folder.parent / jobs.NAME
    assert (brought / "model/model.keras").read_bytes()[:2] == b"PK"
    # After its deletion the logs are read from the store, and rm is as happy a second time.
    user.command("rm", jobs.NAME)
    user.command("rm", jobs.NAME)
    user.command("logs", jobs.NAME, code=2)
    logs = (user.folder.parent / jobs.NAME).rglob("*.log")
    assert {file.name for file in logs} == {"worker-0.log", "worker-1.log"}


def test_row_14_a_program_that_ends_with_3_is_tried_again_and_each_attempt_has_its_log(user: User):
    user.write(
        "fail.py", 'import os, sys; print("attempt", os.environ["TFADMIT_ATTEMPT"]); sys.exit(3)'
    )
    printed = jobs.ends(user.runs("python", "fail.py"), code=1)
    assert user.restarts() == (2, 2)
    assert "attempt 0" in printed
    assert "attempt 2" in printed
    shown = user.command("show", jobs.NAME)
    assert "Failed" in shown
    assert "exit 3" in shown or "exited with 3" in shown or "code 3" in shown, shown
    user.command("pull", jobs.NAME, code=1)
    for attempt in range(3):
        log = user.saved()[f"logs/attempt-{attempt}/worker-0.log"]
        assert log.decode().strip().endswith(f"attempt {attempt}"), log


def test_rows_23_24_an_eviction_starts_again_from_the_checkpoint_and_is_not_counted(
    user: User, cluster: Cluster
):
    job = user.runs("python", "count.py", "25")
    user.says("counted 8")
    trainings.evict(cluster, user.pod())
    printed = jobs.ends(job, code=0)
    assert user.restarts() == (1, 0)
    begin = re.search(r"begins at (\d+) in attempt 1", printed)
    assert begin, printed
    assert int(begin[1]) >= 1
    user.command("pull", jobs.NAME)
    assert (user.folder.parent / jobs.NAME / "model/model").read_text() == "counted to 25"


def test_row_21_a_deadline_leaves_the_last_checkpoint(user: User):
    job = user.runs("python", "count.py", "1000", options=("--deadline", "25s"))
    printed = jobs.ends(job, code=1)
    assert "counted 3" in printed
    assert re.search(r"deadline", user.command("show", jobs.NAME), re.IGNORECASE)
    user.command("pull", jobs.NAME, code=1)
    kept = (user.folder.parent / jobs.NAME / "checkpoints/count").read_text()
    assert int(kept) >= 3


def test_rows_21_25_a_job_that_is_stopped_goes_on_where_it_was_when_it_is_started(user: User):
    job = user.runs("python", "count.py", "25")
    user.says("counted 8")
    user.command("stop", jobs.NAME)
    user.command("stop", jobs.NAME)
    assert "Suspended" in user.command("ps")
    user.command("start", jobs.NAME)
    printed = jobs.ends(job, code=0)
    begins = [int(number) for number in re.findall(r"begins at (\d+)", printed)]
    assert begins[0] == 0
    assert begins[-1] >= 1
    assert "Succeeded" in user.command("ps")


def test_rows_14_21_memory_that_runs_out_is_named_and_costs_at_most_one_period(user: User):
    user.write(
        "greedy.py",
        _COUNT.replace(
            'print("counted", count',
            'print("counted", count if count < 5 else len(bytearray(400_000_000))',
        ),
    )
    options = ("--cpu", "500m", "--memory", "150Mi")
    job = user.runs("python", "greedy.py", "30", options=options)
    jobs.ends(job, code=1, seconds=400)
    assert "OOMKilled" in user.command("show", jobs.NAME)
    assert user.saved(), "nothing was saved"
    user.command("pull", jobs.NAME, code=1)
    assert int((user.folder.parent / jobs.NAME / "checkpoints/count").read_text()) >= 1


def test_a_store_that_would_refuse_the_results_is_told_before_the_program_starts(user: User):
    user.may_store(AWS_SECRET_ACCESS_KEY="wrong")
    printed = jobs.ends(user.runs("python", "count.py", "2"), code=1)
    assert "counted" not in printed
    assert user.restarts() == (0, 0)
    assert "check that it is the right one" in user.command("show", jobs.NAME)


def test_row_22_a_model_that_cannot_be_stored_is_a_job_that_failed(user: User, store):
    job = user.runs("python", "count.py", "8", options=("--env", "TFADMIT_SAVE_TIMEOUT=15"))
    user.says("counted 2")
    bucket = store.folder / user.bucket
    bucket.rename(store.folder / f"{user.bucket}-away")
    printed = jobs.ends(job, code=1)
    assert "counted 8" in printed
    assert "the results were not saved" in printed, printed
    assert "Failed" in user.command("ps")
    (store.folder / f"{user.bucket}-away").rename(bucket)
    status = json.loads(user.saved()["status.json"])
    assert (status.get("code"), status.get("model")) == (None, None)
    user.command("pull", jobs.NAME, code=1)
    assert not (user.folder.parent / jobs.NAME / "model").exists()
