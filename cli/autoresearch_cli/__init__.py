"""The command line of autoresearch: reads the log directly, and asks the daemon over its local API for the rest."""
