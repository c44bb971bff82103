"""What the node decides: a pure state machine, its inputs and its effects."""
