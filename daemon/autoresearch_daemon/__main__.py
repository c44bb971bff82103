"""``python -m autoresearch_daemon`` is ``autoresearchd``."""

from autoresearch_daemon.main import main

if __name__ == "__main__":
    main()
