"""One module a command or small group; each has ``apps``: command name → typer application. Imported when asked for."""
