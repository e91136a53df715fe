"""How long 10,000 tasks take, without any connection: `setup()` and the resolver object."""

import os
import resource
import subprocess
import sys
import time

from tfadmit_trainer import resolver, setup


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


before, began = megabytes(), time.perf_counter()
context = setup()
print(f"SETUP {1000 * (time.perf_counter() - began):.1f} ms, {megabytes() - before:.1f} MB")

import tensorflow as tf  # noqa: E402 - after setup, as in a training

before, began = megabytes(), time.perf_counter()
spec = resolver.of(context).cluster_spec()
count = spec.num_tasks("worker")
print(f"RESOLVER {1000 * (time.perf_counter() - began):.1f} ms, {megabytes() - before:.1f} MB")
print(f"TASKS {count} {spec.task_address('worker', count - 1)} {tf.__version__}")
print(f"LONGEST {max(len(value) for value in os.environ.values())}")
print("CHILD", subprocess.run([sys.executable, "-c", ""], check=False).returncode)
