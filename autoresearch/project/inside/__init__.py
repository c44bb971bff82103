"""What of a project runs in sandboxes: ``python -m autoresearch.project.inside WORD``, in a folder of flat files."""
