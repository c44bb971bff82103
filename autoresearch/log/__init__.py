"""The log on disk: records with their views in SQLite, blobs in files."""
