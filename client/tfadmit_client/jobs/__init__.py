"""TrainJobs in a cluster: found, read, changed, removed, and shown as text or data.

`read` reads them with all that belongs to them, `find` one by its name; `change` stops and starts,
`remove` deletes, `each` does so to several. `option` has the options that commands about jobs
share, `output` and `show_output` are how jobs look. Not here: what state a job is in and why
(`watch`), its logs (`logs`), its results (`pull`) and making one (`submit`).
"""
