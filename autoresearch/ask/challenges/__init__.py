"""Contests on a task: their rules in words, founding one, its board, and what each submission came to."""
