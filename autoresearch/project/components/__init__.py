"""A project's components: found, installed, trusted, with the packages that they need."""
