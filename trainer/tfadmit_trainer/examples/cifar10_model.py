"""The network and the steps of the CIFAR-10 example. TensorFlow is imported inside of functions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tfadmit_trainer.untyped import Array, Dataset, Model, Optimizer, Strategy, Tensor

Step = Callable[[Any], Any]


@dataclass(frozen=True, kw_only=True)
class Steps:
    """What is done with one batch of image numbers, on all workers together."""

    train: Step
    """Give the mean loss of the batch."""

    evaluate: Step
    """Give the sums of losses, right answers and images of the batch."""


def build(*, seed: int, learning_rate: float, width: int) -> tuple[Any, Any]:
    """Make the network and its optimizer; call it in the scope of the strategy."""
    import tensorflow as tf  # noqa: PLC0415 - only where it is used

    tf.keras.utils.set_random_seed(seed)
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((32, 32, 3))])
    for filters, dropout in ((width, 0.2), (2 * width, 0.3), (4 * width, 0.4)):
        model.add(layers.Conv2D(filters, 3, padding="same", activation="relu"))
        # Keras' momentum of 0.99 needs hundreds of steps; many replicas make few steps an epoch.
        model.add(layers.BatchNormalization(momentum=0.9))
        model.add(layers.MaxPooling2D())
        model.add(layers.Dropout(dropout))
    model.add(layers.Flatten())
    model.add(layers.Dense(10))
    optimizer = tf.keras.optimizers.Adam(learning_rate)
    # Variables must be made in the scope, and before a checkpoint is restored.
    optimizer.build(model.trainable_variables)
    return model, optimizer


def steps(
    strategy: Strategy,
    *,
    model: Model,
    optimizer: Optimizer,
    images: Array,
    labels: Array,
    batch: int,
) -> Steps:
    """Make the two steps for one set of images; `batch` is the number of images of all workers."""
    import tensorflow as tf  # noqa: PLC0415

    pixels, answers = tf.constant(images), tf.constant(labels)

    def losses(numbers: Tensor, *, training: bool) -> tuple[Any, Any, Any]:
        given = tf.cast(tf.gather(pixels, numbers), tf.float32) / 255.0
        right = tf.gather(answers, numbers)
        logits = model(given, training=training)
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(right, logits)
        return each, logits, right

    def train(numbers: Tensor) -> Tensor:
        with tf.GradientTape() as tape:
            each, _, _ = losses(numbers, training=True)
            # Divided by the images of all workers: the sum over workers is the mean.
            loss = tf.nn.compute_average_loss(each, global_batch_size=batch)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    def evaluate(numbers: Tensor) -> Tensor:
        each, logits, right = losses(numbers, training=False)
        hits = tf.cast(tf.argmax(logits, axis=-1) == right, tf.float32)
        return tf.stack([tf.reduce_sum(each), tf.reduce_sum(hits), float_size(each)])

    def float_size(value: Tensor) -> Tensor:
        return tf.cast(tf.size(value), tf.float32)

    def summed(step: Step) -> Step:
        def everywhere(numbers: Tensor) -> Tensor:
            result = strategy.run(step, args=(numbers,))
            return strategy.reduce(tf.distribute.ReduceOp.SUM, result, axis=None)

        function: Step = tf.function(everywhere, reduce_retracing=True)
        return function

    return Steps(train=summed(train), evaluate=summed(evaluate))


def numbers(strategy: Strategy, order: Array, *, batch: int, whole: bool) -> Dataset:
    """Give batches of image numbers, of which each worker gets its share.

    Sharded by DATA on purpose: each worker takes every n-th number of the same order. The default
    (AUTO) does the same here, but would shard by files if this read files, and give workers
    without a file nothing.
    """
    import tensorflow as tf  # noqa: PLC0415

    options = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy.DATA
    options.experimental_distribute.auto_shard_policy = policy
    data = tf.data.Dataset.from_tensor_slices(order).batch(batch, drop_remainder=whole)
    return strategy.experimental_distribute_dataset(data.with_options(options))
