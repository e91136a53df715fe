"""The parts of `tfadmit demo`: the whole webhook in a few seconds, without a cluster.

`server` runs the real server, `review` sends it reviews, `text` has the words, `examples` knows
where the manifests are. `example_files` are copies of deploy/, for where only the wheel is
installed.
"""
