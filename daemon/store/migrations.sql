-- Named migrations, applied once, in order. Add to the end; never edit one that has shipped.

-- migration 0001_first_light
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    directory TEXT NOT NULL,
    phase TEXT NOT NULL,
    open INTEGER NOT NULL,
    top INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    state BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_open ON sessions (directory) WHERE open = 1;
CREATE TABLE unreadable (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    body BLOB
);
CREATE TABLE instances (
    id TEXT PRIMARY KEY,
    seq INTEGER NOT NULL,
    updated INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE outbox (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    status TEXT NOT NULL,
    instance TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX outbox_open ON outbox (session) WHERE status IN ('pending', 'sent');
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
) WITHOUT ROWID;
CREATE INDEX verdicts_at ON verdicts (at);
CREATE INDEX verdicts_unfiled ON verdicts (session) WHERE filed = 0;
CREATE TABLE judge_sessions (
    id TEXT PRIMARY KEY,
    directory TEXT NOT NULL,
    created INTEGER NOT NULL,
    deleted INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE switches (
    directory TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE ledger (
    at INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    session TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cost REAL,
    ms INTEGER NOT NULL,
    outcome TEXT NOT NULL
);
CREATE INDEX ledger_at ON ledger (at);
CREATE INDEX ledger_session ON ledger (session);

-- migration 0002_dead_letters
CREATE TABLE dead_letters (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    session TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    why TEXT NOT NULL,
    raw TEXT NOT NULL
);

-- migration 0003_timers
CREATE TABLE timers (
    session TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    task TEXT NOT NULL,
    turn TEXT NOT NULL,
    due INTEGER NOT NULL,
    length INTEGER NOT NULL,
    tries INTEGER NOT NULL
) WITHOUT ROWID;

-- migration 0004_jobs_and_accounts
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
);
CREATE INDEX jobs_due ON jobs (lane, due);
CREATE TABLE timers_by_kind (
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    task TEXT NOT NULL,
    turn TEXT NOT NULL,
    due INTEGER NOT NULL,
    length INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    PRIMARY KEY (session, kind)
) WITHOUT ROWID;
INSERT INTO timers_by_kind SELECT session, kind, task, turn, due, length, tries FROM timers;
DROP TABLE timers;
ALTER TABLE timers_by_kind RENAME TO timers;
ALTER TABLE ledger ADD COLUMN account TEXT NOT NULL DEFAULT 'judging';

-- migration 0005_orders_by_instance
CREATE INDEX outbox_instance ON outbox (instance) WHERE status IN ('pending', 'sent');

-- migration 0006_learning
CREATE TABLE spool (
    session TEXT NOT NULL,
    turn TEXT NOT NULL,
    directory TEXT NOT NULL,
    at INTEGER NOT NULL,
    size INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (session, turn)
) WITHOUT ROWID;
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
);
CREATE TABLE learned_tags (
    directory TEXT NOT NULL,
    name TEXT NOT NULL,
    session TEXT NOT NULL,
    tag TEXT NOT NULL,
    at INTEGER NOT NULL,
    why TEXT NOT NULL,
    PRIMARY KEY (directory, name, session)
) WITHOUT ROWID;
CREATE TABLE learned_writes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    directory TEXT NOT NULL,
    session TEXT NOT NULL,
    at INTEGER NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,
    body BLOB NOT NULL
);
CREATE TABLE learned_counts (
    directory TEXT NOT NULL,
    what TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (directory, what)
) WITHOUT ROWID;
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
    PRIMARY KEY (session, offer, text)
) WITHOUT ROWID;
CREATE INDEX injections_at ON injections (at);

-- migration 0007_lookbacks
CREATE TABLE lookbacks (
    directory TEXT NOT NULL,
    session TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (directory, session)
) WITHOUT ROWID;

-- migration 0008_consents
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
) WITHOUT ROWID;
CREATE INDEX consents_at ON consents (at);

-- migration 0009_episodes
CREATE TABLE episode_memory (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    project TEXT NOT NULL,
    query TEXT NOT NULL,
    reward SIGNED NOT NULL,
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
    last INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX episode_memory_project ON episode_memory (project, at, id);
CREATE INDEX episode_memory_at ON episode_memory (at, id);
CREATE INDEX episode_memory_triggers ON episode_memory (project) WHERE triggers != '[]';
CREATE TABLE episode_vectors (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    episode INTEGER NOT NULL UNIQUE,
    model TEXT NOT NULL,
    data BLOB NOT NULL
);
CREATE INDEX episode_vectors_model ON episode_vectors (model, seq);
CREATE TABLE episode_uses (
    episode INTEGER NOT NULL,
    session TEXT NOT NULL,
    outcome TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (episode, session, outcome)
) WITHOUT ROWID;
CREATE INDEX episode_uses_at ON episode_uses (at);
CREATE VIRTUAL TABLE episode_words USING fts5 (terms, tokenize = 'unicode61 remove_diacritics 2');
CREATE TRIGGER episode_gone AFTER DELETE ON episode_memory BEGIN
    DELETE FROM episode_vectors WHERE episode = OLD.key;
    DELETE FROM episode_uses WHERE episode = OLD.key;
    DELETE FROM episode_words WHERE rowid = OLD.key;
END;

-- migration 0010_costs
ALTER TABLE ledger ADD COLUMN currency TEXT NOT NULL DEFAULT 'USD';
ALTER TABLE ledger ADD COLUMN directory TEXT NOT NULL DEFAULT '';
CREATE TABLE told_once (
    what TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;

-- migration 0011_costs_by_name
ALTER TABLE ledger ADD COLUMN attempt INTEGER NOT NULL DEFAULT 1;
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

-- migration 0013_sessions_by_folder
CREATE INDEX sessions_in ON sessions (top, directory, updated) WHERE top = 1;
CREATE INDEX sessions_perhaps_waiting ON sessions (top, updated)
    WHERE top = 1 AND (open = 1 OR phase = 'awaiting_user');

-- migration 0014_calls_behind_which_was_given
ALTER TABLE injections ADD COLUMN call TEXT NOT NULL DEFAULT '';

-- migration 0015_settled_episodes
-- of a store that several people share: what was written and settled here
CREATE TABLE settled_episodes (id TEXT PRIMARY KEY, state TEXT NOT NULL, digest BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE shared_reader (name TEXT NOT NULL);

-- migration 0016_lessons_of_others
-- copies of what other people share, and what of one's own is taken back
ALTER TABLE episode_memory ADD COLUMN theirs INTEGER NOT NULL DEFAULT 0;
UPDATE episode_memory SET triggers = (SELECT json_group_array(value ->> 1) FROM json_each(triggers))
    WHERE json_valid(triggers) AND triggers != '[]';
CREATE TABLE forgotten_episodes (id TEXT PRIMARY KEY) WITHOUT ROWID;
DROP TABLE settled_episodes;

-- migration 0017_proof
-- the checks that may be run in a project, how they ended, and the runs of reflectd itself
CREATE TABLE proof_commands (
    project TEXT NOT NULL,
    folder TEXT NOT NULL,
    command TEXT NOT NULL,
    source TEXT NOT NULL,
    struck INTEGER NOT NULL DEFAULT 0,
    at INTEGER NOT NULL,
    PRIMARY KEY (project, folder, command)
) WITHOUT ROWID;
CREATE TABLE proof_results (
    project TEXT NOT NULL,
    folder TEXT NOT NULL,
    command TEXT NOT NULL,
    task TEXT NOT NULL,
    at INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    marks TEXT NOT NULL,
    PRIMARY KEY (project, folder, command, task)
) WITHOUT ROWID;
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
) WITHOUT ROWID;
CREATE INDEX proof_runs_at ON proof_runs (at);
CREATE INDEX proof_runs_in ON proof_runs (project, at);

-- migration 0018_changes_in_jobs
-- what a look back decided waits in its job
DROP TABLE learned_writes;

-- migration 0019_no_look_backs_of_the_past
-- past sessions are not learned from any more, so nobody asks which ones were
DROP TABLE lookbacks;

-- migration 0020_only_vectors_of_episodes
-- lessons are few enough to be compared by their words without an index; a verdict says once what became of one
DROP TRIGGER episode_gone;
CREATE TRIGGER episode_gone AFTER DELETE ON episode_memory BEGIN
    DELETE FROM episode_vectors WHERE episode = OLD.key;
END;
DROP TABLE episode_words;
DROP TABLE episode_uses;
