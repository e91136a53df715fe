"""Objects of Kubernetes in files: read with their places, and written.

`manifest` finds objects in files, folders and standard input, `yamltext` reads YAML as kubectl
does, `yamlout` writes it. Not here: what an object means, and whether it is right.
"""
