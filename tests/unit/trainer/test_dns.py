"""The barrier against a real DNS server: what it asks, how often, how fast (see `dns_load`)."""

import json
import pathlib
import shutil
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).with_name("dns_load.py")
INSIDE = ["unshare", "--map-root-user", "--net", "--mount"]


def possible():
    return (
        shutil.which("unshare")
        and shutil.which("ip")
        and not subprocess.run([*INSIDE, "true"], check=False, capture_output=True).returncode
    )


pytestmark = pytest.mark.skipif(not possible(), reason="needs the right to make a namespace")


def load(*arguments):
    done = subprocess.run(
        [*INSIDE, sys.executable, str(SCRIPT), *map(str, arguments)],
        capture_output=True, text=True, timeout=100, check=True,
    )  # fmt: skip
    seen = json.loads(done.stdout)
    print(f"\n{arguments[0]} tasks: {seen['queries']} queries, {seen['seconds']} s, "
          f"peak {seen['peak_per_second']} a second")  # fmt: skip
    return seen


def test_each_name_is_one_query_and_search_domains_are_left_alone():
    seen = load(100)
    assert seen["error"] == ""
    assert (seen["queries"], seen["names"], seen["searched"]) == (100 + seen["aaaa"], 100, 0)


def test_a_late_name_is_asked_for_a_few_times_and_found():
    seen = load(8, 2)
    assert seen["error"] == ""
    assert 2 <= seen["most_for_one_name"] <= 6
    assert seen["said"][0] == "waiting for worker 6, 7 (2 of 8), 5 s"


def test_a_name_that_never_comes_is_told():
    seen = load(8, 1, 7)
    assert "worker 7 (1 of 8) not found in 7 s" in seen["error"]
    assert "the other 7 names exist" in seen["error"]


def test_where_not_even_the_own_name_is_published_the_hosts_file_does_not_hide_it():
    assert "not even this task's own" in load(3, 3, 1)["error"]
