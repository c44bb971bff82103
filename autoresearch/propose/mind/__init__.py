"""What a model or an agent is told of a task, and what its answer must be."""
