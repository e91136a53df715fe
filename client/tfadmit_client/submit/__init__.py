"""From a folder and options to the objects of a training.

Pure, but for `pack`, which reads the folder, and `launcher_zip`, which reads the installed library:
options are text (`options`, `words`), become a plan on a runtime (`plan`), and the plan becomes
objects (`objects`). Who creates them is `create`, over a protocol. `submitting` is these steps in a
cluster, for `tfadmit run` and for programs, with `cluster_objects`, `code_store` and `sending`.
"""
