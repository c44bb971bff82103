"""What records mean: encoding, log, views, tasks, proposers, running. Knows no network, no HTTP, no tensors."""

__version__ = "0.1.0"
