"""Faces without a terminal: pages and exports, made from answers."""
