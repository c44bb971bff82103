"""The network: a libp2p host in a process of its own, and the daemon's link to it. The daemon imports no libp2p."""
