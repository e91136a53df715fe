"""What the controllers make of an object: TrainJob to JobSet to Job to Pod, as admission sees it.

Pure functions from raw objects to raw objects, one module for each controller: `trainer` (Kubeflow
Trainer 2.3), `jobset` (JobSet 0.12), `job` (Kubernetes 1.36). `merge` has the list rules they
share. `shape` puts tfadmit's own change of a JobSet in between, by `apply`. `expansion` tells which
objects of files go which of these ways. Not here: what tfadmit does to pods, and reading or showing
the objects.

Left out are the defaults that the API server fills in on every pod (`dnsPolicy`, `protocol: TCP`,
the service account's volume, …), because no decision follows from them; quantities keep their
notation. All else that is stated is as a cluster would have it. Uids are made up, the same for the
same object each time.
"""
