"""What a TrainJob is doing and why: pure, from the objects of the cluster to one value.

`seen` holds what was read of a job, `belong` finds it, `task` its replicas, `state` the one true
state, `why` the line that explains it, `job` all of it for lists, `detail` the rest for one job.
Nothing here reads from a cluster, prints, or knows the time.
"""
