"""`tfadmit run --local`: all tasks of a training as processes of this machine.

The same archive, launcher, paths below the workspace and variables as in a pod, so what works here
fails there for reasons of the cluster only. `tasks` is pure, `processes` starts and ends them,
`running` is the steps of the command.
"""
