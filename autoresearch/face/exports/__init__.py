"""Runs as git commits, as files that MLflow reads, as ``results.tsv``."""
