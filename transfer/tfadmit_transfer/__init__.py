"""Data in and results out: what the init container and the sidecar of a training pod do.

`python -m tfadmit_transfer fetch` brings a pod its data and its checkpoints, `sync` saves its logs,
checkpoints and model. The pure modules (`uri`, `inputs`, `layout`, `manifest`, `status`, `rhythm`,
`progress`, `workspace`, `credentials`) know what belongs where; `store`, `http_source` and `local`
touch the outside. The webhook and the client import the pure ones.
"""
