"""Runs of a project as this process sees them: begun, stopped, kept on disk, of several processes, in the sandbox."""
