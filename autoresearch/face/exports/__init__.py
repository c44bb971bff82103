"""Runs as ``results.tsv``, and the interface of exports that other packages add."""
