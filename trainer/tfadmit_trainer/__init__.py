"""The library inside the training container: standard library only."""

__version__ = "0.1.0"
