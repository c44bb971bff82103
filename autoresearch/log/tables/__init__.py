"""What the tables of the log answer, each by one object. Withdrawn runs, tasks and claims are in none of these rows."""
