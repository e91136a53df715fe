"""A cluster on whose nodes pods really run; ``python -m harness.node`` starts one to look at.

Each module does one thing and knows only those before it in this list, and `harness`:

``plan``        names and addresses
``machine``     a machine out of namespaces
``programs``    the programs of a node, built or installed
``dockerfile``  what a Dockerfile asks for
``oci``         images as archives
``build``       Dockerfiles carried out without an engine
``rootfs``      what stands for the official Python image
``images``      the images of deploy/images
``wiring``      the cables between the nodes and the tests' machine
``runtime``     containerd
``store``       containerd's images, filled once for all nodes
``agents``      the kubelet and kube-proxy
``services``    the scheduler and the DNS
``leftovers``   what nodes leave on the tests' machine, and its removal
``nodes``       all of it, or the cluster that the user names
``deploy``      tfadmit in the cluster, by the commands of its users
"""
