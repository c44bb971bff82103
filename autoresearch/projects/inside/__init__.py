"""What of a project runs in sandboxes: ``python -m autoresearch.projects.inside WORD``, in a folder of flat files."""
