"""One script for every role of a training with parameter servers, as TFJob users had it.

`EPOCHS`   how many
`FAIL`     the chief raises an exception in this epoch
`PLAIN`    the chief makes its strategy without the library
"""

import os
import time
from pathlib import Path

from tfadmit_trainer import checkpoint, evaluator, setup, strategy

context = setup()
import tensorflow as tf  # noqa: E402 - after setup, as in any training

if os.environ.get("PLAIN") and context.role == "chief":
    chosen = tf.distribute.ParameterServerStrategy(
        tf.distribute.cluster_resolver.TFConfigClusterResolver()
    )
else:
    chosen = strategy.create(context)  # ps and workers serve here and do not return

if context.role == "evaluator":
    for path in evaluator.checkpoints(context, look=1):
        print(f"EVALUATED {Path(path).name}", flush=True)
    raise SystemExit(0)

coordinator = tf.distribute.coordinator.ClusterCoordinator(chosen)
with chosen.scope():
    weights = tf.Variable(tf.zeros((3, 1)), name="weights")
seen = checkpoint.counter(chosen, name="seen")
saver = checkpoint.Saver(chosen, context=context, weights=weights, seen=seen)
saver.restore()
TRUTH = tf.constant([[1.0], [-2.0], [3.0]])


def numbers(_=None):
    given = tf.random.stateless_normal((64, 3), seed=(1, 2))
    return tf.data.Dataset.from_tensor_slices((given, given @ TRUTH)).repeat().batch(16)


batches = iter(
    coordinator.create_per_worker_dataset(lambda: chosen.distribute_datasets_from_function(numbers))
)


@tf.function
def step(iterator):
    def replica(batch):
        given, wanted = batch
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(given @ weights - wanted))
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        seen.assign_add(1)
        return loss

    return chosen.run(replica, args=(next(iterator),))


for epoch in range(int(os.environ.get("EPOCHS", "3"))):
    losses = [coordinator.schedule(step, args=(batches,)) for _ in range(8)]
    coordinator.join()
    saver.save()
    print(f"EPOCH {epoch} loss {sum(loss.fetch() for loss in losses) / 8:.4f}", flush=True)
    if os.environ.get("FAIL") == str(epoch):
        raise ValueError("a fault of the program")
    time.sleep(float(os.environ.get("PAUSE", "0")))
print("CHIEF DONE", flush=True)
