"""Programs as text that is changed: settings and their ranges, edits, patches."""
