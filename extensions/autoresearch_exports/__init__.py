"""Exports of runs for other programs: extensions, found by their entry points."""
