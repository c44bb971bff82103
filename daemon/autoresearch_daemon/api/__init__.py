"""The local HTTP API: what the node offers to the command line, to pages and to other programs."""
