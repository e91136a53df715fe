"""Benchmarks: `make bench`, `make bench-servers`, `make bench-check`. Nothing here is a test."""
