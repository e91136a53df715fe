"""Certificates for the webhook: issue them and keep them in files.

Layers, top to bottom: `cli > report > files > issue > bundle > san > fault`. All but two are
pure: `files` touches the disk, `cli` the terminal and the clock. Only `issue` and `bundle` know the
cryptography library.
"""
