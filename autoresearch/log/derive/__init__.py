"""What follows from records, as a list of steps: a file for each, and :mod:`.steps` has them in their order."""
