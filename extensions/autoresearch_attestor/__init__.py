"""Attestors of mailboxes: an extension, found by its entry point."""
