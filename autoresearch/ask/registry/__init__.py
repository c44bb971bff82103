"""Releases of components: found, chosen, prepared, fetched and installed."""
