"""Buffers of experience: rows in, batches of arrays out, saved without pickle. Pure apart from the files."""
