"""A training in its smallest form: sums over all workers, with the library. Traps by environment.

`STEPS`    how many sums
`PAUSE`    seconds between two
`IDLE`     index of a worker that goes to sleep before the step `sum 2`
`FAIL`     index of a worker that raises an exception there
`BEFORE`   use TensorFlow before the strategy is created
"""

import os
import time

from tfadmit_trainer import collective, setup, strategy

context = setup()
if os.environ.get("BEFORE"):
    import tensorflow as tf

    tf.constant(1) + 1
chosen = strategy.create(context)
for step in range(int(os.environ.get("STEPS", "3"))):
    if step == 2 and os.environ.get("IDLE") == str(context.index):
        print("IDLE", flush=True)
        time.sleep(60)
    if step == 2 and os.environ.get("FAIL") == str(context.index):
        raise ValueError("a fault of the program")
    collective.together(chosen, step=f"sum {step}", context=context)
    rows = collective.exchange(chosen, [context.index + 1.0])
    print(f"STEP {step} {sum(row[0] for row in rows):.0f}", flush=True)
    time.sleep(float(os.environ.get("PAUSE", "0")))
print(f"DONE {chosen.num_replicas_in_sync} replicas", flush=True)
