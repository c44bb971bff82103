"""Projects: an agent of components in a folder, with ``agent.ini``."""
