"""A project as others get it: published as a task and a program, and fetched again."""
