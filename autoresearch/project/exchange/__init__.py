"""A project as others get it: its environment as a task, its agent as a program; and back."""
