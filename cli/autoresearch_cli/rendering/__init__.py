"""How answers look: JSON, tab-separated lines, or tables and colour on a terminal."""
