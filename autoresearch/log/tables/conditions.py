"""Parts of queries that several tables share."""

from autoresearch.words import STOPPED

# A run that somebody stopped says nothing about its source: others may try it.
ENDED = f"run.status NOT IN ({', '.join(repr(status.value) for status in sorted(STOPPED))})"
# With this join ``suspect.author`` is there for a run after a fork of its author that no merge ended.
SUSPECT = "LEFT JOIN suspect ON suspect.author = run.author AND suspect.seq <= run.seq"
COUNTS = "run.status = 'ok' AND run.value IS NOT NULL"
