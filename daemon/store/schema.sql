-- The tables as a new database has them. A STRICT table refuses a value of another type, and SQLite's
-- quick_check, which runs at each start, finds one that damage put there.

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    directory TEXT NOT NULL,
    phase TEXT NOT NULL,
    open INTEGER NOT NULL,
    top INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    state BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_open ON sessions (directory) WHERE open = 1;
CREATE INDEX sessions_in ON sessions (top, directory, updated) WHERE top = 1;
CREATE INDEX sessions_perhaps_waiting ON sessions (top, updated)
    WHERE top = 1 AND (open = 1 OR phase = 'awaiting_user');
CREATE TABLE instances (
    id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    updated INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE outbox (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    status TEXT NOT NULL,
    instance TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_open ON outbox (session) WHERE status IN ('pending', 'sent');
CREATE INDEX outbox_instance ON outbox (instance) WHERE status IN ('pending', 'sent');
CREATE TABLE verdicts (
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    task TEXT NOT NULL,
    directory TEXT NOT NULL,
    at INTEGER NOT NULL,
    state TEXT NOT NULL,
    filed INTEGER NOT NULL DEFAULT 0,
    body BLOB NOT NULL,
    PRIMARY KEY (session, turn)
) STRICT, WITHOUT ROWID;
CREATE INDEX verdicts_at ON verdicts (at);
CREATE INDEX verdicts_unfiled ON verdicts (session) WHERE filed = 0;
CREATE TABLE judge_sessions (
    id TEXT PRIMARY KEY,
    directory TEXT NOT NULL,
    created INTEGER NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TABLE switches (
    directory TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE timers (
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    task TEXT NOT NULL,
    turn TEXT NOT NULL,
    due INTEGER NOT NULL,
    length INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    PRIMARY KEY (session, kind)
) STRICT, WITHOUT ROWID;
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    lane TEXT NOT NULL,
    due INTEGER NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0,
    cursor TEXT NOT NULL DEFAULT '',
    body BLOB NOT NULL,
    UNIQUE (kind, key)
) STRICT;
CREATE INDEX jobs_due ON jobs (lane, due);
CREATE TABLE told_once (
    what TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- calls of models, and replies that broke the form
CREATE TABLE ledger (
    at INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    session TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cost REAL CHECK (abs(cost) < 9e999),
    ms INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    account TEXT NOT NULL DEFAULT 'judging',
    currency TEXT NOT NULL DEFAULT 'USD',
    directory TEXT NOT NULL DEFAULT '',
    attempt INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX ledger_at ON ledger (at);
CREATE INDEX ledger_session ON ledger (session);
CREATE VIEW api_cost_log AS
SELECT min(rowid) AS id, date(at / 1000, 'unixepoch', 'localtime') AS date, purpose AS api_name,
    count(*) AS num_calls, sum(input + output) AS token_count,
    CASE WHEN total(cost IS NULL AND input + output > 0) = 0 THEN sum(cost) END AS estimated_cost,
    currency
FROM ledger GROUP BY 2, purpose, currency;
CREATE VIEW api_retry_log AS
SELECT rowid AS id, datetime(at / 1000, 'unixepoch', 'localtime') AS created_at,
    purpose AS api_name, CASE outcome WHEN 'ok' THEN NULL ELSE outcome END AS error_type,
    attempt - 1 AS retry_count, outcome = 'ok' AS success
FROM ledger WHERE attempt > 1 OR outcome NOT IN ('ok', 'cancelled');
CREATE TABLE dead_letters (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    session TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    why TEXT NOT NULL,
    raw TEXT NOT NULL
) STRICT;

-- the checks that may be run in a project, how they ended, and the runs of reflectd itself
CREATE TABLE proof_commands (
    project TEXT NOT NULL,
    folder TEXT NOT NULL,
    command TEXT NOT NULL,
    source TEXT NOT NULL,
    struck INTEGER NOT NULL DEFAULT 0,
    at INTEGER NOT NULL,
    PRIMARY KEY (project, folder, command)
) STRICT, WITHOUT ROWID;
CREATE TABLE proof_results (
    project TEXT NOT NULL,
    folder TEXT NOT NULL,
    command TEXT NOT NULL,
    task TEXT NOT NULL,
    at INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    marks TEXT NOT NULL,
    PRIMARY KEY (project, folder, command, task)
) STRICT, WITHOUT ROWID;
CREATE TABLE proof_runs (
    id TEXT PRIMARY KEY,
    project TEXT NOT NULL,
    session TEXT NOT NULL,
    task TEXT NOT NULL,
    at INTEGER NOT NULL,
    ms INTEGER NOT NULL,
    files TEXT NOT NULL,
    after TEXT NOT NULL,
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX proof_runs_at ON proof_runs (at);
CREATE INDEX proof_runs_in ON proof_runs (project, at);

-- learning: judged cases that wait, texts, tags of points, what was given to whom, consent, episodes
CREATE TABLE spool (
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    directory TEXT NOT NULL,
    at INTEGER NOT NULL,
    size INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (session, turn)
) STRICT, WITHOUT ROWID;
CREATE INDEX spool_at ON spool (at);
CREATE TABLE learned (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    directory TEXT NOT NULL,
    digest TEXT NOT NULL,
    state TEXT NOT NULL,
    section TEXT NOT NULL,
    text TEXT NOT NULL,
    replaces TEXT NOT NULL,
    session TEXT NOT NULL,
    at INTEGER NOT NULL,
    settled INTEGER NOT NULL DEFAULT 0,
    origin BLOB NOT NULL,
    UNIQUE (directory, digest)
) STRICT;
CREATE TABLE learned_tags (
    directory TEXT NOT NULL,
    name TEXT NOT NULL,
    session TEXT NOT NULL,
    tag TEXT NOT NULL,
    at INTEGER NOT NULL,
    why TEXT NOT NULL,
    PRIMARY KEY (directory, name, session)
) STRICT, WITHOUT ROWID;
CREATE TABLE learned_counts (
    directory TEXT NOT NULL,
    what TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (directory, what)
) STRICT, WITHOUT ROWID;
CREATE TABLE injections (
    session TEXT NOT NULL,
    offer TEXT NOT NULL,
    kind TEXT NOT NULL,
    directory TEXT NOT NULL,
    name TEXT NOT NULL,
    moment TEXT NOT NULL,
    at INTEGER NOT NULL,
    heading TEXT NOT NULL,
    text TEXT NOT NULL,
    cited INTEGER NOT NULL DEFAULT 0,
    call TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (session, offer, text)
) STRICT, WITHOUT ROWID;
CREATE INDEX injections_at ON injections (at);
CREATE TABLE consents (
    session TEXT NOT NULL,
    digest TEXT NOT NULL,
    source TEXT NOT NULL,
    kind TEXT NOT NULL,
    label TEXT NOT NULL,
    place TEXT NOT NULL,
    at INTEGER NOT NULL,
    spent INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session, digest, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX consents_at ON consents (at);
CREATE TABLE episode_memory (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    project TEXT NOT NULL,
    query TEXT NOT NULL,
    reward REAL NOT NULL,
    problem TEXT NOT NULL,
    lesson TEXT NOT NULL,
    reflection TEXT NOT NULL,
    state TEXT NOT NULL,
    triggers TEXT NOT NULL,
    cites TEXT NOT NULL,
    files TEXT NOT NULL,
    proof TEXT NOT NULL,
    author TEXT NOT NULL,
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    task TEXT NOT NULL,
    at INTEGER NOT NULL,
    given INTEGER NOT NULL DEFAULT 0,
    helped INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    last INTEGER NOT NULL DEFAULT 0,
    theirs INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX episode_memory_project ON episode_memory (project, at, id);
CREATE INDEX episode_memory_at ON episode_memory (at, id);
CREATE INDEX episode_memory_triggers ON episode_memory (project) WHERE triggers != '[]';
CREATE TABLE episode_vectors (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    episode INTEGER NOT NULL UNIQUE,
    model TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT;
CREATE INDEX episode_vectors_model ON episode_vectors (model, seq);
CREATE TRIGGER episode_gone AFTER DELETE ON episode_memory BEGIN
    DELETE FROM episode_vectors WHERE episode = OLD.key;
END;
CREATE TABLE shared_reader (name TEXT NOT NULL) STRICT;
CREATE TABLE forgotten_episodes (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
