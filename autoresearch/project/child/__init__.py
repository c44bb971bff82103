"""A project's run in a process of its own, and a component in one."""
