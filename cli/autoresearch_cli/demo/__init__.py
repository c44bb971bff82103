"""``autoresearch demo``: a network of daemons on this machine."""
