"""What a log holds, without row numbers: two logs with the same records must be equal in all of it."""

TABLES = (
    "record", "run", "program", "entry", "task", "claim", "note", "verification",
    "withdrawal", "rules", "ruled", "delegation", "merge", "fork", "suspect", "commitment", "fraud", "lineage", "stray",
    "text_index", "ending",
)  # fmt: skip


def dump(log):
    """All tables as sorted rows without the row number."""
    contents = {}
    for table in TABLES:
        columns = [row[1] for row in log.reader.connection.execute(f"PRAGMA table_info({table})") if row[1] != "n"]
        contents[table] = sorted(log.reader.connection.execute(f"SELECT {', '.join(columns)} FROM {table}"), key=repr)
    seen = "SELECT mention.run, record.id FROM mention JOIN record ON record.n = mention.n"
    contents["mention"] = sorted(log.reader.connection.execute(seen))
    contents["bucket"] = sorted(log.reader.connection.execute("SELECT * FROM bucket WHERE records > 0"))
    return contents
