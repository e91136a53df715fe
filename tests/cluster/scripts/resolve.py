"""What TensorFlow itself makes of each TF_CONFIG: a JSON list of texts in, a list of facts out."""

import json
import os
import sys

import tensorflow as tf

# What MultiWorkerMirroredStrategy and ParameterServerStrategy ask first; nothing public does
# without a server.
from tensorflow.python.distribute import multi_worker_util


def facts(text):
    os.environ["TF_CONFIG"] = text
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    spec, role, index = resolver.cluster_spec(), resolver.task_type, resolver.task_id
    multi_worker_util._validate_cluster_spec(
        multi_worker_util.normalize_cluster_spec(spec), role, index
    )
    return {
        "cluster": spec.as_dict(),
        "task": [role, index],
        "own": spec.task_address(role, index),
        "chief": multi_worker_util.is_chief(spec, role, index),
    }


json.dump([facts(text) for text in json.load(sys.stdin)], sys.stdout)
