"""``python -m autoresearch_cli``: the same as the ``autoresearch`` command."""

from __future__ import annotations

from autoresearch_cli.main import main

if __name__ == "__main__":
    main()
