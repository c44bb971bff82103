"""The commands of projects: components, training, publishing, services."""
