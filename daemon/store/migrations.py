"""Named migrations, applied once, in order. Add to the end; never edit one that has shipped."""

from __future__ import annotations

MIGRATIONS: tuple[tuple[str, str], ...] = (
    (
        "0001_first_light",
        """
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
        CREATE INDEX ledger_session ON ledger (session)
        """,
    ),
    (
        "0002_dead_letters",
        """
        CREATE TABLE dead_letters (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            at INTEGER NOT NULL,
            purpose TEXT NOT NULL,
            session TEXT NOT NULL,
            provider TEXT NOT NULL,
            model TEXT NOT NULL,
            why TEXT NOT NULL,
            raw TEXT NOT NULL
        )
        """,
    ),
    (
        "0003_timers",
        """
        CREATE TABLE timers (
            session TEXT PRIMARY KEY,
            kind TEXT NOT NULL,
            task TEXT NOT NULL,
            turn TEXT NOT NULL,
            due INTEGER NOT NULL,
            length INTEGER NOT NULL,
            tries INTEGER NOT NULL
        ) WITHOUT ROWID
        """,
    ),
)
