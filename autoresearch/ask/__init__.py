"""Questions and acts: each with the type of its answer beside it."""
