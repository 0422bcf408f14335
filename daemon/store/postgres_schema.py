"""The migrations of the PostgreSQL store, applied once, in order. Add to the end; never edit one that has
shipped. Everything is in the schema ``reflectd``, so that it can share a database with others.

Who confirmed or dismissed what is kept for each reader (``episode_states``): nobody's yes is another's.
"""

from __future__ import annotations

from typing import Final

SCHEMA: Final = "reflectd"
DIMENSIONS: Final = 4_000
"""Longer vectors can't be indexed; they are compared one by one."""

MIGRATIONS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        "0001_episodes",
        (
            """
            CREATE TABLE episode_memory (
                key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
                id TEXT NOT NULL UNIQUE,
                project TEXT NOT NULL,
                query TEXT NOT NULL,
                reward DOUBLE PRECISION NOT NULL,
                problem TEXT NOT NULL,
                lesson TEXT NOT NULL,
                reflection TEXT NOT NULL,
                triggers TEXT NOT NULL,
                cites TEXT NOT NULL,
                files TEXT NOT NULL,
                proof TEXT NOT NULL,
                author TEXT NOT NULL,
                session TEXT NOT NULL,
                turn TEXT NOT NULL,
                task TEXT NOT NULL,
                at BIGINT NOT NULL,
                owner TEXT NOT NULL,
                given INTEGER NOT NULL DEFAULT 0,
                helped INTEGER NOT NULL DEFAULT 0,
                failed INTEGER NOT NULL DEFAULT 0,
                last BIGINT NOT NULL DEFAULT 0,
                model TEXT,
                embedding vector,
                words tsvector GENERATED ALWAYS AS (
                    to_tsvector('simple', left(query, 20000) || ' ' || left(lesson, 20000))
                ) STORED
            )
            """,
            "CREATE INDEX ON episode_memory (project, at, id)",
            "CREATE INDEX ON episode_memory (at, id)",
            "CREATE INDEX ON episode_memory (model, key)",
            "CREATE INDEX ON episode_memory (project) WHERE triggers <> '[]'",
            "CREATE INDEX ON episode_memory USING gin (words)",
            """
            CREATE TABLE episode_states (
                episode BIGINT NOT NULL REFERENCES episode_memory ON DELETE CASCADE,
                reader TEXT NOT NULL,
                state TEXT NOT NULL,
                mark TEXT NOT NULL,
                PRIMARY KEY (episode, reader)
            )
            """,
            """
            CREATE TABLE episode_uses (
                episode BIGINT NOT NULL REFERENCES episode_memory ON DELETE CASCADE,
                session TEXT NOT NULL,
                outcome TEXT NOT NULL,
                at BIGINT NOT NULL,
                PRIMARY KEY (episode, session, outcome)
            )
            """,
            "CREATE INDEX ON episode_uses (at)",
        ),
    ),
    (
        "0002_repository",  # '': of a project that nobody else can have
        (
            "ALTER TABLE episode_memory ADD COLUMN repository TEXT NOT NULL DEFAULT ''",
            "CREATE INDEX ON episode_memory (repository, at, id) WHERE repository <> ''",
        ),
    ),
)


def index(dimensions: int) -> str:
    """The statement for the index of vectors of this size (HNSW, half the precision: the nearest are compared
    again in full).
    """
    return (
        f"CREATE INDEX IF NOT EXISTS episode_memory_hnsw_{dimensions} ON episode_memory USING hnsw "
        f"((embedding::halfvec({dimensions})) halfvec_cosine_ops) WHERE vector_dims(embedding) = {dimensions}"
    )
