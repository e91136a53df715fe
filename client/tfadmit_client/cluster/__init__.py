"""What is asked of an API server: in which words, and what can go wrong.

`listing` and `kinds` are the values and the protocol that the pure modules know. `live` and
`live_jobs` implement it; beneath them `live_wire` sends requests. Not here: how to connect, which
is `tfadmit_connect`'s, and what the objects mean.
"""
