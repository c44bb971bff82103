"""The tables of the log as SQL: the steps that bring an older file, or an empty one, to them."""

from __future__ import annotations

_RECORDS = """
CREATE TABLE record(
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    author BLOB NOT NULL,
    seq INTEGER NOT NULL,
    time INTEGER NOT NULL,
    kind TEXT NOT NULL,
    task BLOB,
    raw BLOB NOT NULL,
    signature BLOB NOT NULL
);
CREATE UNIQUE INDEX record_id ON record(id);
CREATE INDEX record_author_seq ON record(author, seq);
CREATE INDEX record_author_time ON record(author, time);
CREATE INDEX record_time ON record(time, id);
CREATE INDEX record_kind_time ON record(kind, time);
CREATE INDEX record_task_time ON record(task, time) WHERE task IS NOT NULL;
CREATE INDEX record_task_kind_time ON record(task, kind, time) WHERE task IS NOT NULL;
CREATE TABLE bucket(author BLOB NOT NULL, day INTEGER NOT NULL, records INTEGER NOT NULL,
    PRIMARY KEY(author, day)) WITHOUT ROWID;
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""

_PROJECTIONS = """
CREATE TABLE run(
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    task BLOB NOT NULL,
    mode TEXT NOT NULL,
    status TEXT NOT NULL,
    value REAL,
    budget REAL NOT NULL,
    source_digest BLOB NOT NULL,
    replicate INTEGER NOT NULL,
    parent BLOB,
    base BLOB,
    author BLOB NOT NULL,
    seq INTEGER NOT NULL,
    time INTEGER NOT NULL,
    title TEXT NOT NULL,
    genome BLOB NOT NULL
);
CREATE INDEX run_subject ON run(task, source_digest, budget);
CREATE INDEX run_task_time ON run(task, time);
CREATE INDEX run_author_seq ON run(author, seq);
CREATE TABLE subject(
    task BLOB NOT NULL,
    source_digest BLOB NOT NULL,
    budget REAL NOT NULL,
    runs INTEGER NOT NULL,
    mean REAL NOT NULL,
    first BLOB NOT NULL,
    first_time INTEGER NOT NULL,
    rank REAL,
    PRIMARY KEY(task, source_digest, budget)
) WITHOUT ROWID;
CREATE INDEX subject_rank ON subject(task, rank, first_time, first) WHERE rank IS NOT NULL;
CREATE TABLE task(n INTEGER PRIMARY KEY, id BLOB NOT NULL, digest BLOB NOT NULL, name TEXT NOT NULL,
    author BLOB NOT NULL, time INTEGER NOT NULL, direction TEXT, noise REAL, budget REAL);
CREATE INDEX task_digest ON task(digest, time);
CREATE TABLE claim(n INTEGER PRIMARY KEY, id BLOB NOT NULL, task BLOB NOT NULL, source_digest BLOB NOT NULL,
    replicate INTEGER NOT NULL, author BLOB NOT NULL, time INTEGER NOT NULL, until INTEGER NOT NULL,
    title TEXT NOT NULL);
CREATE INDEX claim_until ON claim(task, until);
CREATE TABLE note(n INTEGER PRIMARY KEY, id BLOB NOT NULL, task BLOB, topic TEXT NOT NULL, author BLOB NOT NULL,
    time INTEGER NOT NULL);
CREATE INDEX note_task ON note(task, time);
CREATE TABLE verification(n INTEGER PRIMARY KEY, id BLOB NOT NULL, run BLOB NOT NULL, stage TEXT NOT NULL,
    verdict TEXT NOT NULL, value REAL, author BLOB NOT NULL, time INTEGER NOT NULL);
CREATE INDEX verification_run ON verification(run, time);
CREATE TABLE withdrawal(n INTEGER NOT NULL, target BLOB NOT NULL, author BLOB NOT NULL);
CREATE INDEX withdrawal_target ON withdrawal(target);
CREATE INDEX withdrawal_n ON withdrawal(n);
CREATE TABLE rules(n INTEGER PRIMARY KEY, task BLOB NOT NULL, direction TEXT NOT NULL, noise REAL NOT NULL,
    budget REAL NOT NULL);
CREATE INDEX rules_task ON rules(task);
CREATE TABLE ruled(task BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE delegation(n INTEGER PRIMARY KEY, root BLOB NOT NULL, device BLOB NOT NULL);
CREATE INDEX delegation_device ON delegation(device);
CREATE TABLE merge(n INTEGER NOT NULL, root BLOB NOT NULL, device BLOB NOT NULL, head BLOB NOT NULL);
CREATE INDEX merge_device ON merge(device);
CREATE INDEX merge_n ON merge(n);
CREATE TABLE fork(author BLOB NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(author, seq)) WITHOUT ROWID;
CREATE TABLE suspect(author BLOB PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
"""

_VERIFYING = """
ALTER TABLE run ADD COLUMN checkpoint BLOB;
ALTER TABLE run ADD COLUMN device TEXT NOT NULL DEFAULT '';
ALTER TABLE rules ADD COLUMN clocked INTEGER NOT NULL DEFAULT 0;
CREATE INDEX run_checkpoint ON run(task, checkpoint) WHERE checkpoint IS NOT NULL;
ALTER TABLE verification ADD COLUMN round INTEGER NOT NULL DEFAULT 0;
ALTER TABLE verification ADD COLUMN output BLOB;
CREATE TABLE commitment(n INTEGER PRIMARY KEY, id BLOB NOT NULL, run BLOB NOT NULL, stage TEXT NOT NULL,
    round INTEGER NOT NULL, digest BLOB NOT NULL, author BLOB NOT NULL, seq INTEGER NOT NULL,
    time INTEGER NOT NULL, output BLOB);
CREATE INDEX commitment_run ON commitment(run);
CREATE INDEX run_parent ON run(parent) WHERE parent IS NOT NULL;
CREATE INDEX claim_source ON claim(task, source_digest);
CREATE TABLE fraud(n INTEGER PRIMARY KEY, id BLOB NOT NULL, author BLOB NOT NULL, seq INTEGER NOT NULL,
    time INTEGER NOT NULL);
"""

_LINEAGE = """
CREATE TABLE lineage(n INTEGER PRIMARY KEY, parent BLOB NOT NULL);
CREATE INDEX lineage_parent ON lineage(parent);
DROP INDEX run_parent
"""

# Of a program that thousands repeat, the runs of one device are found without the others'.
_ENTRIES = """
CREATE TABLE entry(task BLOB NOT NULL, source_digest BLOB NOT NULL, budget REAL NOT NULL, author BLOB NOT NULL,
    bound REAL, PRIMARY KEY(task, source_digest, budget, author)) WITHOUT ROWID;
CREATE INDEX entry_bound ON entry(task, author, bound) WHERE bound IS NOT NULL;
DROP INDEX run_subject;
CREATE INDEX run_subject ON run(task, source_digest, budget, author)
"""

# The time of a device's records in their own order is read from the index alone.
_SIGHTINGS = """
CREATE TABLE sighting(run BLOB NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(run, n)) WITHOUT ROWID;
CREATE INDEX sighting_n ON sighting(n);
DROP INDEX record_author_seq;
CREATE INDEX record_author_seq ON record(author, seq, time)
"""

_NAMES = """
ALTER TABLE subject RENAME TO program;
ALTER TABLE sighting RENAME TO mention;
DROP INDEX subject_rank;
DROP INDEX run_subject;
DROP INDEX sighting_n;
CREATE INDEX program_rank ON program(task, rank, first_time, first) WHERE rank IS NOT NULL;
CREATE INDEX run_program ON run(task, source_digest, budget, author);
CREATE INDEX mention_n ON mention(n)
"""

# An entry has all that orders it, so that of many with one value only the first are read, and how many measured it. A
# stray is a run whose parent is on another task.
_ORDERED = """
DROP TABLE entry;
CREATE TABLE entry(task BLOB NOT NULL, source_digest BLOB NOT NULL, budget REAL NOT NULL, author BLOB NOT NULL,
    bound REAL, time INTEGER NOT NULL, first BLOB NOT NULL, measured INTEGER NOT NULL,
    PRIMARY KEY(task, source_digest, budget, author)) WITHOUT ROWID;
CREATE INDEX entry_bound ON entry(task, author, bound, time, first) WHERE bound IS NOT NULL;
CREATE INDEX entry_measured ON entry(task, bound, time, first) WHERE bound IS NOT NULL AND measured > 0;
CREATE TABLE stray(n INTEGER PRIMARY KEY, parent BLOB NOT NULL);
CREATE INDEX stray_parent ON stray(parent)
"""

# What participants wrote, by its words; the row number is that of the record. ``marks`` has the kind and the task.
TEXT_INDEX = """
CREATE VIRTUAL TABLE text_index USING fts5(marks, text, tokenize = 'porter unicode61 remove_diacritics 2')
"""

# What a run cost, so that runs are put in order by it without being read.
_COSTS = """
ALTER TABLE run ADD COLUMN cpu_ms INTEGER NOT NULL DEFAULT 0
"""

# Releases of components, and what was yanked; what they say of themselves, by its words.
_RELEASES = """
CREATE TABLE component_release(n INTEGER PRIMARY KEY, id BLOB NOT NULL, author BLOB NOT NULL, time INTEGER NOT NULL,
    type TEXT NOT NULL, name TEXT NOT NULL, version TEXT NOT NULL, version_key TEXT NOT NULL, content BLOB NOT NULL);
CREATE INDEX component_release_name ON component_release(name, type);
CREATE INDEX component_release_type ON component_release(type, time);
CREATE INDEX component_release_author ON component_release(author);
CREATE INDEX component_release_time ON component_release(time);
CREATE TABLE yank(n INTEGER PRIMARY KEY, id BLOB NOT NULL, author BLOB NOT NULL, time INTEGER NOT NULL,
    target BLOB NOT NULL);
CREATE INDEX yank_target ON yank(target);
CREATE VIRTUAL TABLE release_index USING fts5(type, name, description, author,
    tokenize = 'porter unicode61 remove_diacritics 2')
"""

# Tasks whose runs rank whatever their budget.
_ANY_BUDGET = """
ALTER TABLE rules ADD COLUMN any_budget INTEGER NOT NULL DEFAULT 0
"""

# Each step makes the next version of the schema.
_STEPS = (
    *(_RECORDS + _PROJECTIONS, _VERIFYING, _LINEAGE, _ENTRIES, _SIGHTINGS, _NAMES, _ORDERED, TEXT_INDEX, _COSTS),
    _RELEASES,
    _ANY_BUDGET,
)
STEPS = tuple(step.strip().removesuffix(";").split(";\n") for step in _STEPS)
