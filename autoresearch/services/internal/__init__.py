"""What programs written for agentlace import from here."""
