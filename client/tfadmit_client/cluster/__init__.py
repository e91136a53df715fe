"""The connection to an API server: who asks, how it is asked, and what can go wrong.

`listing` and `kinds` are the values and the protocol that the pure modules know. `live` and
`live_jobs` implement it; beneath them are `live_wire`, which sends requests, and `live_identity`,
which reads kubeconfigs with `acting_as` and `credentials`. Not here: what the objects mean.
"""
