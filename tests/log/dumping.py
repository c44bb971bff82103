"""What a log holds, without row numbers: two logs with the same records must be equal in all of it."""

import math

from autoresearch.log.derive.driver import settle

TABLES = (
    "record", "run", "program", "entry", "task", "claim", "note", "verification",
    "withdrawal", "rules", "ruled", "delegation", "merge", "fork", "suspect", "commitment", "fraud", "lineage", "stray",
    "text_index", "slot", "withdrawn_run", "printed", "reach",
)  # fmt: skip


def dump(log):
    """All tables as sorted rows without the row number, when everything is settled."""
    settle(log, math.inf)
    contents = {}
    for table in TABLES:
        columns = [row[1] for row in log.reader.connection.execute(f"PRAGMA table_info({table})") if row[1] != "n"]
        contents[table] = sorted(log.reader.connection.execute(f"SELECT {', '.join(columns)} FROM {table}"), key=repr)
    seen = "SELECT mention.run, record.id FROM mention JOIN record ON record.n = mention.n"
    contents["mention"] = sorted(log.reader.connection.execute(seen))
    compared = """
    SELECT pair.task, setting, pair.time, child.id, above.id, changes, same_base, raised, delta, failed FROM pair
    JOIN record AS child ON child.n = pair.n JOIN record AS above ON above.n = pair.parent
    """
    contents["pair"] = sorted(log.reader.connection.execute(compared), key=repr)
    late = "SELECT record.id, latest FROM dated_back JOIN record ON record.n = dated_back.n"
    contents["dated_back"] = sorted(log.reader.connection.execute(late))
    contents["bucket"] = sorted(log.reader.connection.execute("SELECT * FROM bucket WHERE records > 0"))
    return contents
