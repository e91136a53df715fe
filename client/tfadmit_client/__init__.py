"""The `tfadmit` command for platform teams and data scientists.

`cli` finds a command among `commands`; `api` is what notebooks and programs call. Both call rooms,
from those of one command to those that know of none:

- `check`, `demo`, `lint`, `migrate`, `preview`, `audit`: the commands for platform teams
- `local`, `submit`: what `tfadmit run` starts on this machine, and what it submits
- `pull`, `logs`: what a job has saved, and what it prints
- `jobs`, `watch`: the jobs of a cluster, and what one is doing and why
- `expand`: what the controllers make of an object
- `cluster`, `files`, `console`: where objects come from, and what is told to whom

Imports between rooms go downwards, in the order that pyproject.toml has. Where a command does one
thing, the module for it is named so: `lint.linting`, `pull.pulling`, `submit.submitting`. Beside
the rooms stand only what others call by name, and `fault`, the root of the exceptions.
"""
