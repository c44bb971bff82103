"""Runs of projects: carried out, kept, measured, written as records."""
