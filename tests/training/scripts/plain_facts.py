"""What plain TensorFlow does with one process; no part of the library is used. One line a fact."""

import json
import os
import sys

import tensorflow as tf

Resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver


def fact(name, text):
    print(f"FACT {name}: {text}", flush=True)


def attempt(name, function):
    try:
        fact(name, f"no error, {function()}")
    except Exception as error:  # noqa: BLE001 - whatever it is, is the fact
        fact(name, f"{type(error).__name__}: {' '.join(str(error).split())[:160]}")


def resolve(text):
    os.environ["TF_CONFIG"] = text
    return Resolver().cluster_spec()


def config(first):
    workers = [f"127.0.0.1:{os.environ[first]}", "127.0.0.1:1"]
    return json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": 0}})


def create():
    return f"{tf.distribute.MultiWorkerMirroredStrategy().num_replicas_in_sync} replica"


if sys.argv[1] == "config":
    attempt("empty TF_CONFIG", lambda: resolve(""))
    attempt("trailing brace", lambda: resolve(config("FREE_PORT") + "}"))
    attempt("empty object", lambda: resolve("{}"))
    del os.environ["TF_CONFIG"]
    attempt("strategy before TF_CONFIG", create)
    os.environ["TF_CONFIG"] = config("FREE_PORT")
    attempt("strategy again", create)
elif sys.argv[1] == "late":
    tf.constant(1) + 1
    os.environ["TF_CONFIG"] = config("FREE_PORT")
    attempt("TF_CONFIG after use", create)
else:
    os.environ["TF_CONFIG"] = config("BUSY_PORT")
    attempt("port in use", create)
