"""What is good: ranking, verification states, credit and what to verify next, from the rows of a log."""
