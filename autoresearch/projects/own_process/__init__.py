"""What runs in a project's own process, with the components: episodes, services, actors. ``child`` is its main."""
