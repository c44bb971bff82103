"""The long-running process of a node: everything that listens, runs and talks."""
