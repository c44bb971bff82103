"""Ways to tell a person elsewhere what happened: extensions, found by their entry points."""
