"""`model.fit` under the library, on several workers or on several logical CPUs of one process.

`LOCAL`      number of logical CPUs for MirroredStrategy; without it the task's own strategy
`MAKE`       what to do: `fit`, `optimizer`, `evaluate on the chief`, `diverge`, `plain fit`
"""

import os
import time

import numpy as np

from tfadmit_trainer import collective, contract, keras_gate, keras_progress, setup, strategy
from tfadmit_trainer import context as contexts


def local(count):
    import tensorflow as tf  # noqa: PLC0415 - before the strategy

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * count
    )
    single = contract.Task(contract.Cluster(worker=("127.0.0.1:1",)), "worker", 0)
    task = contexts.of(single, source="single", environ={})
    if count == 1:
        return tf.distribute.get_strategy(), task
    chosen = tf.distribute.MirroredStrategy([f"CPU:{n}" for n in range(count)])
    if os.environ["MAKE"] != "plain fit":
        keras_gate.install(chosen, context=task)
    return chosen, task


if count := int(os.environ.get("LOCAL", "0")):
    chosen, context = local(count)
elif os.environ["MAKE"] == "plain fit":
    context = setup()
    import tensorflow as tf

    chosen = tf.distribute.MultiWorkerMirroredStrategy()
else:
    context = setup()
    chosen = strategy.create(context)

import tensorflow as tf  # noqa: E402 - after the strategy, as in any training

keras = tf.keras
make = os.environ["MAKE"]
rng = np.random.default_rng(0)
given = rng.random((96, 8), dtype="float32")
wanted = rng.integers(0, 3, 96)
keras.utils.set_random_seed(7)
with chosen.scope():
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(3)])
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    model.compile(
        optimizer=optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
data = tf.data.Dataset.from_tensor_slices((given, wanted)).batch(24).with_options(options)
if make == "diverge":
    from tfadmit_trainer import fingerprint

    check = fingerprint.Fingerprint(chosen, model.trainable_variables)
    print(f"SAME {check.check(when='before'):.6f}", flush=True)
    kernel = model.trainable_variables[0]
    variable = kernel if callable(getattr(kernel, "value", None)) else kernel.value
    last = chosen.experimental_local_results(variable)[-1]
    if os.environ.get("LOCAL") or context.index == context.replicas - 1:
        last.assign_add(tf.fill(last.shape, 1e-3))
    check.check(when="after one replica changed its weights by 0.001")
if make == "evaluate on the chief":
    print("EVALUATE", flush=True)
    if context.is_chief:
        model.evaluate(data, verbose=0)
    time.sleep(60)
told = [] if make == "plain fit" else [keras_progress.callback(context)]
history = model.fit(
    data, epochs=3, shuffle=False, verbose=0, validation_data=data, callbacks=told
).history
print("LOSS", " ".join(f"{loss:.6f}" for loss in history["loss"]), flush=True)
result = model.evaluate(data, verbose=0, return_dict=True)
print(f"EVALUATED {result['loss']:.6f} {result['accuracy']:.4f}", flush=True)
weights = sum(float(np.abs(part).sum()) for part in model.get_weights())
print(f"WEIGHTS {weights:.5f}", flush=True)
rows = collective.exchange(chosen, [weights])
print(f"DONE {len(rows)} {keras.__name__}", flush=True)
