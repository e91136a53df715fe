"""From TFJobs (kubeflow.org/v1) to TrainingRuntimes and TrainJobs of Kubeflow Trainer.

Pure: an object in, objects and a report out. `reading` judges the input; `translate` puts
the output together out of `metadata`, `pods`, `restart`, `ending` and `gang`; `judge` looks at it
by the webhook's rules; `document` and `summary` write it. `migrating` takes TFJobs out of files or
of a cluster, and each of them this way. What becomes of a field is told to a `ledger`. A field that
nobody told of is reported as not translated, so none is lost in silence.
"""
