"""Components of a project: what can be installed, from where, what it needs, and whose code it is."""
