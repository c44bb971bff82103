"""The node's part in verification: which runs it is drawn for, what it measured, when it publishes that."""
