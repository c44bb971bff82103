"""What changes a node's own things: its notebook, ideas, networks."""
