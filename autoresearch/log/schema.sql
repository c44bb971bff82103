-- The tables of a log. Records are the truth; every other table is computed from them, and may be dropped at any time.
-- In all tables n is the row number of the record that a row comes from. Times are Unix milliseconds, ids SHA-256.
-- A change here raises FORMAT in schema.py: then logs of before are rebuilt from their records.

-- What is stored: kept when the other tables are rebuilt.

CREATE TABLE IF NOT EXISTS record(
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    author BLOB NOT NULL,      -- the device key
    seq INTEGER NOT NULL,      -- its number among the author's records
    time INTEGER NOT NULL,
    kind TEXT NOT NULL,
    task BLOB,
    raw BLOB NOT NULL,         -- the signed bytes
    signature BLOB NOT NULL
);
CREATE UNIQUE INDEX record_id ON record(id);
-- The time of a device's records in their own order is read from the index alone.
CREATE INDEX record_author_seq ON record(author, seq, time);
CREATE INDEX record_author_time ON record(author, time);
CREATE INDEX record_time ON record(time, id);
CREATE INDEX record_kind_time ON record(kind, time);
CREATE INDEX record_task_time ON record(task, time) WHERE task IS NOT NULL;
CREATE INDEX record_task_kind_time ON record(task, kind, time) WHERE task IS NOT NULL;

-- How many records of an author are stored: of a UTC day, and of all days (-1).
CREATE TABLE IF NOT EXISTS bucket(
    author BLOB NOT NULL,
    day INTEGER NOT NULL,
    records INTEGER NOT NULL,
    PRIMARY KEY(author, day)
) WITHOUT ROWID;

-- network: the id of the log's network. drops: how often stored records went.
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;

-- What a withdrawal by its author takes away: one row for a record.

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
    genome BLOB NOT NULL,      -- JSON
    checkpoint BLOB,
    device TEXT NOT NULL,
    cpu_ms INTEGER NOT NULL    -- what it cost, so that runs are put in order by it without being read
);
-- Of a program that thousands repeat, the runs of one device are found without the others'.
CREATE INDEX run_program ON run(task, source_digest, budget, author);
CREATE INDEX run_task_time ON run(task, time);
CREATE INDEX run_author_seq ON run(author, seq);
CREATE INDEX run_checkpoint ON run(task, checkpoint) WHERE checkpoint IS NOT NULL;

CREATE TABLE task(
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    digest BLOB NOT NULL,
    name TEXT NOT NULL,
    author BLOB NOT NULL,
    time INTEGER NOT NULL,
    direction TEXT,
    noise REAL,
    budget REAL
);
CREATE INDEX task_digest ON task(digest, time);

CREATE TABLE claim(
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    task BLOB NOT NULL,
    source_digest BLOB NOT NULL,
    replicate INTEGER NOT NULL,
    author BLOB NOT NULL,
    time INTEGER NOT NULL,
    until INTEGER NOT NULL,
    title TEXT NOT NULL
);
CREATE INDEX claim_until ON claim(task, until);
CREATE INDEX claim_source ON claim(task, source_digest);

CREATE TABLE note(
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    task BLOB,
    topic TEXT NOT NULL,
    author BLOB NOT NULL,
    time INTEGER NOT NULL
);
CREATE INDEX note_task ON note(task, time);

-- What participants wrote, by its words; the row number is n. marks: the kind and the task.
CREATE VIRTUAL TABLE text_index USING fts5(marks, text, tokenize = 'porter unicode61 remove_diacritics 2');

-- Releases of components, and which were yanked.
CREATE TABLE component_release(
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    author BLOB NOT NULL,
    time INTEGER NOT NULL,
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    version_key TEXT NOT NULL, -- puts versions in order as text
    content BLOB NOT NULL
);
CREATE INDEX component_release_name ON component_release(name, type);
CREATE INDEX component_release_type ON component_release(type, time);
CREATE INDEX component_release_author ON component_release(author);
CREATE INDEX component_release_time ON component_release(time);

-- What releases say of themselves, by its words; the row number is n.
CREATE VIRTUAL TABLE release_index USING fts5(type, name, description, author,
    tokenize = 'porter unicode61 remove_diacritics 2');

CREATE TABLE yank(
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    author BLOB NOT NULL,
    time INTEGER NOT NULL,
    target BLOB NOT NULL
);
CREATE INDEX yank_target ON yank(target);

-- What a withdrawal leaves alone.

CREATE TABLE withdrawal(n INTEGER NOT NULL, target BLOB NOT NULL, author BLOB NOT NULL);
CREATE INDEX withdrawal_target ON withdrawal(target);
CREATE INDEX withdrawal_n ON withdrawal(n);

-- What a task's definition says about ranking.
CREATE TABLE rules(
    n INTEGER PRIMARY KEY,
    task BLOB NOT NULL,
    direction TEXT NOT NULL,
    noise REAL NOT NULL,
    budget REAL NOT NULL,
    clocked INTEGER NOT NULL,
    any_budget INTEGER NOT NULL -- its runs rank whatever their budget
);
CREATE INDEX rules_task ON rules(task);

CREATE TABLE delegation(n INTEGER PRIMARY KEY, root BLOB NOT NULL, device BLOB NOT NULL);
CREATE INDEX delegation_device ON delegation(device);

CREATE TABLE merge(n INTEGER NOT NULL, root BLOB NOT NULL, device BLOB NOT NULL, head BLOB NOT NULL);
CREATE INDEX merge_device ON merge(device);
CREATE INDEX merge_n ON merge(n);

CREATE TABLE verification(
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    run BLOB NOT NULL,
    stage TEXT NOT NULL,
    verdict TEXT NOT NULL,
    value REAL,
    author BLOB NOT NULL,
    time INTEGER NOT NULL,
    round INTEGER NOT NULL,
    output BLOB                -- of the VRF; NULL when the proof holds nothing
);
CREATE INDEX verification_run ON verification(run, time);
CREATE INDEX verification_author ON verification(author, run);

CREATE TABLE commitment(
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    run BLOB NOT NULL,
    stage TEXT NOT NULL,
    round INTEGER NOT NULL,
    digest BLOB NOT NULL,
    author BLOB NOT NULL,
    seq INTEGER NOT NULL,
    time INTEGER NOT NULL,
    output BLOB
);
CREATE INDEX commitment_run ON commitment(run);

-- Records that are evidence against their own author.
CREATE TABLE fraud(
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    author BLOB NOT NULL,
    seq INTEGER NOT NULL,
    time INTEGER NOT NULL
);

-- The parents of runs, and what else runs link to.
CREATE TABLE lineage(n INTEGER PRIMARY KEY, parent BLOB NOT NULL);
CREATE INDEX lineage_parent ON lineage(parent);
CREATE TABLE mention(run BLOB NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(run, n)) WITHOUT ROWID;
CREATE INDEX mention_n ON mention(n);

-- What is computed from several records.

-- Where an author has two records of one number, and from which number on its records come after one.
CREATE TABLE fork(author BLOB NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(author, seq)) WITHOUT ROWID;
CREATE TABLE suspect(author BLOB PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;

-- Runs whose parent is on another task.
CREATE TABLE stray(n INTEGER PRIMARY KEY, parent BLOB NOT NULL);
CREATE INDEX stray_parent ON stray(parent);

-- Tasks of which the rules are known, or the definition.
CREATE TABLE ruled(
    task BLOB PRIMARY KEY,
    rules INTEGER NOT NULL,
    defined INTEGER NOT NULL
) WITHOUT ROWID;

-- A program at a budget: all its runs together.
CREATE TABLE program(
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
CREATE INDEX program_rank ON program(task, rank, first_time, first) WHERE rank IS NOT NULL;

-- A program at a budget by one device, with all that orders it: of many with one value only the first are read.
CREATE TABLE entry(
    task BLOB NOT NULL,
    source_digest BLOB NOT NULL,
    budget REAL NOT NULL,
    author BLOB NOT NULL,
    bound REAL,                -- none of its ranks is below
    time INTEGER NOT NULL,
    first BLOB NOT NULL,
    measured INTEGER NOT NULL, -- how many devices measured one of its runs
    PRIMARY KEY(task, source_digest, budget, author)
) WITHOUT ROWID;
CREATE INDEX entry_bound ON entry(task, author, bound, time, first) WHERE bound IS NOT NULL;
CREATE INDEX entry_measured ON entry(task, bound, time, first) WHERE bound IS NOT NULL AND measured > 0;

-- What is judged of runs that others measured, and of their parents; n is that of the run's record.
CREATE TABLE standing(
    n INTEGER PRIMARY KEY,
    state TEXT NOT NULL,
    value REAL,
    error REAL,
    runs INTEGER NOT NULL,
    voters INTEGER NOT NULL,
    improvement REAL,
    improvement_margin REAL,
    evaluated INTEGER NOT NULL,
    repeated INTEGER NOT NULL,
    compared INTEGER NOT NULL,
    differing INTEGER NOT NULL,
    unmeasured INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    behind INTEGER NOT NULL,
    uncounted INTEGER NOT NULL
);
-- Who verified these runs: of each participant the first verification of a stage and a round, as far as it counts.
CREATE TABLE counted(
    n INTEGER NOT NULL,
    verification INTEGER NOT NULL, -- the number of its record
    voter BLOB NOT NULL,
    stage TEXT NOT NULL,
    passed INTEGER NOT NULL,
    decides INTEGER NOT NULL,      -- whether its author was right or wrong by it
    spent_ms INTEGER NOT NULL,
    PRIMARY KEY(n, verification)
) WITHOUT ROWID;
-- Runs that are to be judged again.
CREATE TABLE unsettled(n INTEGER PRIMARY KEY);
-- Whose verifications counted when the standings were settled: a digest of what decides it for each key, and the number
-- of voters from each time on. In meta, people counts the changes of who is who, weighed is that count then, and trusted
-- a digest of the trust list.
CREATE TABLE weight(key BLOB PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE voter_count(time INTEGER PRIMARY KEY, voters INTEGER NOT NULL);
