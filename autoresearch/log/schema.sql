-- The tables of a log. Records are the truth; every other table is computed from them, and may be dropped at any time.
-- In all tables n is the row number of the record that a row comes from. Times are Unix milliseconds, ids SHA-256.
-- A change here raises FORMAT in connection.py: then logs of before are rebuilt from their records.

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
CREATE INDEX record_task_kind_time ON record(task, kind, time) WHERE task IS NOT NULL;

-- How many records of an author are stored: of a UTC day, and of all days (-1).
CREATE TABLE IF NOT EXISTS bucket(
    author BLOB NOT NULL,
    day INTEGER NOT NULL,
    records INTEGER NOT NULL,
    PRIMARY KEY(author, day)
) WITHOUT ROWID;

-- network: the id of the log's network. drops: how often stored records went. settled: how often something was settled
-- without a record. people, tasks: how often it changed who is who, or a task.
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;

-- Runs that a person on this machine believes, although their program measures itself.
CREATE TABLE IF NOT EXISTS believed(run BLOB PRIMARY KEY) WITHOUT ROWID;
-- What of a program prints and measures its number, as a digest (task/measuring.py): read from its source, whoever
-- wrote it, when that is here.
CREATE TABLE IF NOT EXISTS measuring(
    task BLOB NOT NULL,
    source_digest BLOB NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY(task, source_digest)
) WITHOUT ROWID;

-- What a person on this machine hides: the key of a participant, the id of a record or the digest of a task as bytes,
-- words as text (standing/hiding.py). origin: whose list it was taken from, a root key; empty: the person's own choice.
CREATE TABLE IF NOT EXISTS hide(
    thing NOT NULL,
    origin BLOB NOT NULL,
    reason TEXT NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY(thing, origin)
) WITHOUT ROWID;
-- What follows: the keys whose records are hidden, and other records that are, each with the things that hide it.
CREATE TABLE IF NOT EXISTS hidden_author(author BLOB NOT NULL, thing NOT NULL, PRIMARY KEY(author, thing)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS hidden(n INTEGER NOT NULL, thing NOT NULL, PRIMARY KEY(n, thing)) WITHOUT ROWID;
CREATE INDEX hidden_thing ON hidden(thing);
CREATE TRIGGER record_hidden AFTER INSERT ON record WHEN EXISTS(SELECT 1 FROM hide WHERE thing = NEW.id) BEGIN
    INSERT OR IGNORE INTO hidden VALUES(NEW.n, NEW.id); END;
CREATE TRIGGER record_gone AFTER DELETE ON record BEGIN DELETE FROM hidden WHERE n = OLD.n; END;

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
    cpu_ms INTEGER NOT NULL,   -- what it cost, so that runs are put in order by it without being read
    seedless BLOB NOT NULL     -- of the program without its seeds: what differs in them alone is one program
);
CREATE INDEX run_program ON run(task, source_digest, budget);
-- Of a program that thousands repeat, the runs of one device are found without the others'.
CREATE INDEX run_seedless ON run(task, seedless, budget, author);
-- Lists are filtered and charts numbered from this index alone.
CREATE INDEX run_task_time ON run(task, time, id, author, status, device, cpu_ms);
CREATE INDEX run_author_seq ON run(author, seq);
CREATE INDEX run_checkpoint ON run(task, checkpoint) WHERE checkpoint IS NOT NULL;
-- Of the runs that were withdrawn those that had ended well: one that others measured may be a copy.
CREATE TABLE withdrawn_run(
    n INTEGER PRIMARY KEY,
    id BLOB NOT NULL,
    task BLOB NOT NULL,
    source_digest BLOB NOT NULL,
    checkpoint BLOB,
    replicate INTEGER NOT NULL,
    author BLOB NOT NULL,
    time INTEGER NOT NULL,
    parent BLOB
);
CREATE INDEX withdrawn_run_program ON withdrawn_run(task, source_digest);
CREATE INDEX withdrawn_run_checkpoint ON withdrawn_run(task, checkpoint) WHERE checkpoint IS NOT NULL;

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
CREATE TRIGGER task_hidden AFTER INSERT ON task WHEN EXISTS(SELECT 1 FROM hide WHERE thing = NEW.digest) BEGIN
    INSERT OR IGNORE INTO hidden VALUES(NEW.n, NEW.digest); END;

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

-- What participants wrote, by its words; the row number is n. marks: the kind, and 8 bytes of the task.
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

-- What is to be computed again, by step: runs by their numbers (verdicts, listing), the bytes of a task (beliefs), of a
-- task and what runs share on it (copies), of a program and the device that ran it (entries).
CREATE TABLE todo(step TEXT NOT NULL, key NUMERIC NOT NULL, PRIMARY KEY(step, key)) WITHOUT ROWID;

-- Where an author has two records of one number, and from which number on its records come after one.
CREATE TABLE fork(author BLOB NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(author, seq)) WITHOUT ROWID;
CREATE TABLE suspect(author BLOB PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;

-- Records that state an earlier time than one with a smaller number of the same author; latest is the latest of those.
CREATE TABLE dated_back(n INTEGER PRIMARY KEY, latest INTEGER NOT NULL);

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
    seedless BLOB NOT NULL,
    budget REAL NOT NULL,
    runs INTEGER NOT NULL,
    mean REAL NOT NULL,
    first BLOB NOT NULL,
    first_time INTEGER NOT NULL,
    rank REAL,
    PRIMARY KEY(task, seedless, budget)
) WITHOUT ROWID;
CREATE INDEX program_rank ON program(task, rank, first_time, first) WHERE rank IS NOT NULL;

-- A program at a budget by one device, on one hardware where the budget is time, under the trust list of the standings.
CREATE TABLE entry(
    task BLOB NOT NULL,
    seedless BLOB NOT NULL,
    budget REAL NOT NULL,
    author BLOB NOT NULL,
    vouch INTEGER NOT NULL,    -- 1: by runs that it signed while it was attested, 0: by others, 2: by the former and those
                               -- after a fork that nobody verified, where there are any. Of the former those that others
                               -- measured, by the state of the first: of one verifier or more 3 and 4, of two 5, 6 and 7
    hardware TEXT NOT NULL,
    n INTEGER NOT NULL,        -- of the first of these runs
    time INTEGER NOT NULL,
    first BLOB NOT NULL,
    runs INTEGER NOT NULL,
    mean REAL NOT NULL,
    rank REAL,                 -- of a confirmed run (5) the value that others measured; smaller is better
    copy INTEGER NOT NULL,     -- another participant published the model of the first before
    place INTEGER NOT NULL,    -- a sum. 1: it published the program first, by what counts, 2: with unverified runs after a
                               -- fork, 4: it did, and no attested participant did; 2^vouch: its measured run was first
    PRIMARY KEY(task, seedless, budget, author, vouch, hardware)
) WITHOUT ROWID;
CREATE INDEX entry_place ON entry(task, hardware, place, rank, time, first)
    WHERE place > 0 AND rank IS NOT NULL AND copy = 0;
CREATE INDEX entry_author ON entry(task, author, rank, time, first) WHERE rank IS NOT NULL AND copy = 0;

-- Runs whose program or checkpoint another participant published before, by the trust list of the standings.
CREATE TABLE copy(
    n INTEGER NOT NULL,          -- of the run
    model INTEGER NOT NULL,      -- 1: it has the checkpoint of the other run, 0: its program
    task BLOB NOT NULL,
    shared BLOB NOT NULL,        -- that checkpoint, or the digest of that program
    source_digest BLOB NOT NULL, -- of the run
    original BLOB NOT NULL,      -- the run that was published first
    voter BLOB NOT NULL,         -- whose the run is
    marked INTEGER NOT NULL,     -- it was published as a discovery: its author copied
    PRIMARY KEY(n, model)
) WITHOUT ROWID;
CREATE INDEX copy_shared ON copy(task, shared);
CREATE INDEX copy_program ON copy(task, source_digest);
CREATE INDEX copy_voter ON copy(voter) WHERE marked;

-- The settings in which a run differs from its parent, by the time of the run: one row for each.
CREATE TABLE pair(
    task BLOB NOT NULL,
    setting TEXT NOT NULL,
    time INTEGER NOT NULL,
    n INTEGER NOT NULL,        -- of the run
    parent INTEGER NOT NULL,   -- of its parent
    changes INTEGER NOT NULL,  -- in how many settings they differ
    same_base INTEGER NOT NULL,-- whether they differ in settings alone
    raised INTEGER NOT NULL,   -- 1: it was raised or added, -1: lowered or dropped, 0: neither value is the larger
    delta REAL,                -- how the reported value changed; NULL where one has none
    failed INTEGER NOT NULL,   -- the run failed where its parent did not
    PRIMARY KEY(task, setting, time, n)
) WITHOUT ROWID;
CREATE INDEX pair_n ON pair(n, setting);

-- What is judged of each run, one that was withdrawn too; n is that of its record. While n is in todo it is as before.
CREATE TABLE standing(
    n INTEGER PRIMARY KEY,
    state TEXT NOT NULL,
    value REAL,
    margin REAL,               -- half of its 95 % interval
    runs INTEGER NOT NULL DEFAULT 0,
    voters INTEGER NOT NULL DEFAULT 0,
    improvement REAL,
    improvement_margin REAL,
    is_worse INTEGER NOT NULL DEFAULT 0, -- the value is the worse of the two in the middle
    evaluated INTEGER NOT NULL DEFAULT 0,
    repeated INTEGER NOT NULL DEFAULT 0,
    paired INTEGER NOT NULL DEFAULT 0,
    differing INTEGER NOT NULL DEFAULT 0,
    unmeasured INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    behind INTEGER NOT NULL DEFAULT 0,
    uncounted INTEGER NOT NULL DEFAULT 0,
    checkers INTEGER NOT NULL DEFAULT 0, -- attested participants that published a measurement, whether or not it counts
    attested INTEGER NOT NULL DEFAULT 0, -- its author was when it signed; where trust names nobody all are
    compared INTEGER NOT NULL DEFAULT 0, -- its value may be with others: its budget ranks, it is no copy, nor unverified
                                         -- after a fork; on which hardware it ran is another question
    disbelief TEXT NOT NULL DEFAULT ''   -- why its value is not believed, a word of Disbelief
);
-- The values of runs whose programs print them themselves (standing/metrics.py).
CREATE TABLE printed(
    n INTEGER PRIMARY KEY,
    task BLOB NOT NULL,
    score REAL NOT NULL,       -- smaller is better
    counts INTEGER NOT NULL    -- values as good are no jump: its author is attested or this node's, nothing else is wrong
);
CREATE INDEX printed_score ON printed(task, score, counts);
-- The best score that is believed.
CREATE TABLE reach(task BLOB PRIMARY KEY, score REAL NOT NULL) WITHOUT ROWID;
CREATE TRIGGER printed_goes AFTER DELETE ON run WHEN EXISTS(SELECT 1 FROM printed WHERE n = OLD.n) BEGIN
    INSERT OR IGNORE INTO todo VALUES('beliefs', OLD.task); DELETE FROM printed WHERE n = OLD.n; END;
-- What these runs say of participants: of its author, and of each voter by its first verification of a stage and round.
CREATE TABLE fact(
    n INTEGER NOT NULL,        -- the number of the run's record
    said INTEGER NOT NULL,     -- that of the record that the participant signed: the run itself, or a verification of it
    root BLOB NOT NULL,        -- the root key behind the device then
    voter BLOB NOT NULL,
    task BLOB NOT NULL,
    what TEXT NOT NULL,        -- the state of the run, or a word of VerificationKind
    time INTEGER NOT NULL,
    outcome INTEGER NOT NULL,  -- 1: the participant was right, -1: wrong, 0: neither
    ms INTEGER NOT NULL,       -- processor time of a run, as far as it counts, or how long a verification took
    implausible INTEGER NOT NULL,
    work INTEGER NOT NULL,     -- share of the task's budget, in WORK_UNITS
    gain INTEGER,              -- the improvement, fixed point: see fixed_point() for scale
    scale INTEGER NOT NULL,
    PRIMARY KEY(n, said)
) WITHOUT ROWID;
CREATE INDEX fact_newest ON fact(root, what, time, task);
CREATE INDEX fact_outcome ON fact(voter, outcome, time) WHERE outcome <> 0;
CREATE INDEX fact_implausible ON fact(root, time, task) WHERE implausible <> 0;
CREATE INDEX fact_against ON fact(voter, time) WHERE what IN ('disputed', 'refuted', 'rubber stamp');
-- The sums of these rows. All are whole numbers, so that it makes no difference in which order rows come and go.
CREATE TABLE credit(
    voter BLOB NOT NULL,
    root BLOB NOT NULL,
    task BLOB NOT NULL,
    what TEXT NOT NULL,
    scale INTEGER NOT NULL,
    facts INTEGER NOT NULL,
    right INTEGER NOT NULL,
    wrong INTEGER NOT NULL,
    ms INTEGER NOT NULL,
    implausible INTEGER NOT NULL,
    work INTEGER NOT NULL,
    gain INTEGER NOT NULL,
    gains INTEGER NOT NULL,    -- how many of the facts have a gain
    PRIMARY KEY(voter, root, task, what, scale)
) WITHOUT ROWID;
CREATE TRIGGER fact_comes AFTER INSERT ON fact BEGIN
    INSERT INTO credit VALUES(
        new.voter, new.root, new.task, new.what, new.scale, 1, new.outcome = 1, new.outcome = -1,
        new.ms, new.implausible, new.work, coalesce(new.gain, 0), new.gain IS NOT NULL
    ) ON CONFLICT DO UPDATE SET
        facts = facts + 1, right = right + excluded.right, wrong = wrong + excluded.wrong, ms = ms + excluded.ms,
        implausible = implausible + excluded.implausible, work = work + excluded.work,
        gain = gain + excluded.gain, gains = gains + excluded.gains; END;
CREATE TRIGGER fact_goes AFTER DELETE ON fact BEGIN
    UPDATE credit SET
        facts = facts - 1, right = right - (old.outcome = 1), wrong = wrong - (old.outcome = -1), ms = ms - old.ms,
        implausible = implausible - old.implausible, work = work - old.work,
        gain = gain - coalesce(old.gain, 0), gains = gains - (old.gain IS NOT NULL)
    WHERE voter = old.voter AND root = old.root AND task = old.task AND what = old.what AND scale = old.scale; DELETE FROM credit WHERE voter = old.voter AND root = old.root AND task = old.task AND what = old.what
        AND scale = old.scale AND facts = 0; END;
-- Whose verifications counted when the standings were settled: a digest of what decides it for each key, and the number
-- of voters from each time on. In meta, people counts the changes of who is who, weighed is that count then, and trusted
-- a digest of the trust list.
CREATE TABLE weight(key BLOB PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE voter_count(time INTEGER PRIMARY KEY, voters INTEGER NOT NULL);

-- Lists and charts of runs (listing.py). Each run with what it is sorted by and which values it is compared with; all of
-- it follows from run, standing, rules and the run's parent.
CREATE TABLE listing(
    n INTEGER PRIMARY KEY,
    task BLOB NOT NULL,
    time INTEGER NOT NULL,
    mark TEXT NOT NULL,        -- failed, or its state
    value REAL,                -- what verifiers measured, else what its author reported
    delta REAL,                -- against its parent: what verifiers measured in pairs, else between the reported values
    hardware TEXT NOT NULL,    -- of the runs that it is compared with; empty where that is no matter
    claim REAL,                -- what it may lead by as reported, smaller is better; NULL: it may not
    sure REAL,                 -- the same as confirmed
    zeros INTEGER NOT NULL     -- with how many zero bits its id begins: a sample of 1 in 2, 4, 8, ... runs
);
CREATE INDEX listing_value ON listing(task, value, time, delta);
CREATE INDEX listing_mark ON listing(task, mark, time) WHERE mark NOT IN ('reported', 'failed');
CREATE INDEX listing_claim ON listing(task, hardware, claim) WHERE claim IS NOT NULL;
CREATE INDEX listing_sure ON listing(task, hardware, sure) WHERE sure IS NOT NULL;
CREATE INDEX listing_zeros ON listing(task, zeros, time) WHERE zeros >= 4;

-- How many runs of a device on one kind of hardware ended how, and have which mark.
CREATE TABLE tally(
    task BLOB NOT NULL,
    author BLOB NOT NULL,
    device TEXT NOT NULL,
    status TEXT NOT NULL,
    mark TEXT NOT NULL,
    runs INTEGER NOT NULL,
    PRIMARY KEY(task, author, device, status, mark)
) WITHOUT ROWID;
-- How many runs fall in a stretch of time, and their processor time. Of level 0 it has 2^21 ms (35 minutes), of level 1
-- 64 of these.
CREATE TABLE slot(
    task BLOB NOT NULL,
    level INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    runs INTEGER NOT NULL,
    cpu_ms INTEGER NOT NULL,
    PRIMARY KEY(task, level, slot)
) WITHOUT ROWID;
-- The runs that were the best when they came, by time and id: as reported (sure 0) and as confirmed (1). value is their
-- claim or sure in listing.
CREATE TABLE frontier(
    task BLOB NOT NULL,
    hardware TEXT NOT NULL,
    sure INTEGER NOT NULL,
    time INTEGER NOT NULL,
    id BLOB NOT NULL,
    n INTEGER NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY(task, hardware, sure, time, id)
) WITHOUT ROWID;
-- Runs that went, until the end of the transaction: what the sums have of them.
CREATE TABLE removed_run(
    n INTEGER PRIMARY KEY,
    task BLOB NOT NULL,
    time INTEGER NOT NULL,
    id BLOB NOT NULL,
    author BLOB NOT NULL,
    device TEXT NOT NULL,
    status TEXT NOT NULL,
    cpu_ms INTEGER NOT NULL
);
CREATE TRIGGER run_went AFTER DELETE ON run BEGIN INSERT OR IGNORE INTO todo VALUES('listing', OLD.n); INSERT OR IGNORE INTO removed_run VALUES(
    OLD.n, OLD.task, OLD.time, OLD.id, OLD.author, OLD.device, OLD.status, OLD.cpu_ms); END;
CREATE TRIGGER run_judged AFTER INSERT ON standing BEGIN INSERT OR IGNORE INTO todo VALUES('listing', NEW.n); END;
CREATE TRIGGER run_judged_again AFTER UPDATE ON standing BEGIN INSERT OR IGNORE INTO todo VALUES('listing', NEW.n); END;
