-- What a node keeps for itself and never syncs. A home has one such file, which the first network shares;
-- each further network has one of its own. Times are Unix milliseconds.
-- A change here raises FORMAT in connection.py, and says in home.py how the rows of before come along.

-- Of the home.

-- what: "starred" (thing is the id of a record) or "archived" (the digest of a task).
CREATE TABLE IF NOT EXISTS choice(
    what TEXT NOT NULL,
    thing BLOB NOT NULL,
    PRIMARY KEY(what, thing)
) WITHOUT ROWID;

-- What models and commands were asked for a change, how it went and what it cost.
CREATE TABLE IF NOT EXISTS model_call(
    time_ms INTEGER NOT NULL,
    proposer TEXT NOT NULL,
    failure TEXT NOT NULL,     -- empty when it gave a change
    tokens INTEGER NOT NULL,
    cost REAL NOT NULL,
    seconds REAL NOT NULL,
    retry_ms INTEGER NOT NULL  -- not before this time again
);
CREATE INDEX IF NOT EXISTS model_call_proposer ON model_call(proposer, time_ms);

-- Of a network: what its daemon has to go on with after a restart.

-- What was asked of the node, which codes of attestors are awaited, what a proposer plans for a task.
CREATE TABLE IF NOT EXISTS value(name TEXT PRIMARY KEY, json BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS in_hand(assignment TEXT PRIMARY KEY, run BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS proposal(number INTEGER PRIMARY KEY AUTOINCREMENT, proposal BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS unrevealed(salt BLOB PRIMARY KEY, measured BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS event(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    time_ms INTEGER NOT NULL,
    text TEXT NOT NULL,
    data BLOB NOT NULL
);

-- Of a network: what its attestor did, without addresses and codes. tag and domain are keyed hashes.

-- Challenges that went out by mail and were not answered yet.
CREATE TABLE IF NOT EXISTS challenge(
    token BLOB PRIMARY KEY,
    statement BLOB NOT NULL,
    root BLOB NOT NULL,
    device BLOB NOT NULL,
    peer TEXT NOT NULL,
    tag BLOB NOT NULL,
    domain TEXT NOT NULL,
    expires_ms INTEGER NOT NULL,
    tries_left INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS act(
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time_ms INTEGER NOT NULL,
    what TEXT NOT NULL,
    why TEXT NOT NULL,
    root BLOB NOT NULL,
    peer TEXT NOT NULL,
    tag BLOB NOT NULL,
    domain TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS act_time ON act(what, time_ms);
-- Mailboxes that are attested no more, for anybody.
CREATE TABLE IF NOT EXISTS barred(tag BLOB NOT NULL, root BLOB NOT NULL, PRIMARY KEY(tag, root)) WITHOUT ROWID;
