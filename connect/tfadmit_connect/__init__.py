"""How an API server is reached, for all components: by a kubeconfig, or in a pod.

Beneath the webhook, the certificates and the client, and knows none of them. Here: who asks, where,
and what is said when a kubeconfig cannot be used. Not here: a request, or what an object means.
Pure: `acting_as`, `place`. I/O: `connection` (files, the network) and `promised` (the log of the
Kubernetes client), which alone know the Kubernetes client.
"""
