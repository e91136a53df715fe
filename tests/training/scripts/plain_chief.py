"""A chief without the library: variables on the parameter servers, steps on the workers."""

import tensorflow as tf

strategy = tf.distribute.ParameterServerStrategy(
    tf.distribute.cluster_resolver.TFConfigClusterResolver()
)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    total = tf.Variable(0.0)


@tf.function
def step():
    total.assign_add(1.0)


for _ in range(20):
    coordinator.schedule(step)
coordinator.join()
# Two workers may add at the same time, and one of them be lost.
print("steps taken" if total.numpy() > 0 else "no steps", "on", total.device, flush=True)
