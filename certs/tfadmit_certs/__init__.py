"""Certificates for the webhook: issue them, rotate them in a cluster, keep them in files.

Pure: `plan` (what to do next), `steps` (what is written), `judge`, `state`, `hooks`, `issue`,
`bundle` and below. I/O: `kube` (the API server), and by way of it `secret`, `lease` and `watch`;
`files` (the disk); `metrics` (a port); `controller` and `service` (the process); the commands (the
terminal). Only `issue` and `bundle` know the cryptography library. How the API server is
reached is `tfadmit_connect`.
"""
