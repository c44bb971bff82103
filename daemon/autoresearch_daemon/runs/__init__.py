"""Runs between a worker or an executor and the log: proposed, claimed, in hand, recorded."""
