"""What to try next: programs and their settings, the built-in search, what a model is told and answers."""
