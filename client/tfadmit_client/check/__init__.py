"""Whether a cluster is ready for TensorFlow on Kubeflow Trainer.

`checking` puts the parts in their order: `hooks`, `runtimes`, `sdk`, `storage`. `line` is what they
share, `tls_pair` what a TLS client would say to a certificate. Nothing here writes to a cluster.
"""
