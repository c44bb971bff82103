"""Places that carry out runs: extensions, found by their entry points."""
