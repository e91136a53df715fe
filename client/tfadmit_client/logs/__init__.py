"""The logs of all tasks of a job: once, or followed from before the start to the end.

`source` is where logs come from, `choose` which of them, `position` what has been told of one,
`stream` one container from its first to its last line, `once` and `follow` all of a job,
`saved_logs` what is left when the pods are gone, `printing` how lines look, `following` all of it
for a job that was just submitted.
"""
