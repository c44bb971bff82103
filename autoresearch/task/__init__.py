"""Tasks: ``task.toml``, programs and their digests, locked packages, a release's metadata, task folders."""
