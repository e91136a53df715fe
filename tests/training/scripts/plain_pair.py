"""What plain TensorFlow does with two workers; no part of the library is used.

`IDLE`     index of a worker that sleeps for so long before it would take part again, `IDLE_SECONDS`
`FOREVER`  go on with sums until something breaks
"""

import os
import time

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
index = strategy.cluster_resolver.task_id
print(f"REPLICAS {strategy.num_replicas_in_sync}", flush=True)


@tf.function
def total():
    return strategy.reduce("SUM", strategy.run(lambda: tf.constant(1.0)), axis=None)


print(f"SUM {float(total()):.0f}", flush=True)
if os.environ.get("IDLE") == str(index):
    time.sleep(float(os.environ["IDLE_SECONDS"]))
    print("AWAKE", flush=True)
began = time.monotonic()
print(f"SUM {float(total()):.0f} after {time.monotonic() - began:.1f} s", flush=True)
while os.environ.get("FOREVER"):
    total()
    time.sleep(0.1)
