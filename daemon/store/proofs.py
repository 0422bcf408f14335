"""The checks that may be run in each project, how each ended in a task, and the runs of reflectd itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from ..core.proof import Ended, Known, Proof
from .retention import DAY_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .db import Statement
    from .readonly import Reads

MOST_COMMANDS: Final = 50  # of a project; the oldest that an agent ran goes first
KEEP_MS: Final = 90 * DAY_MS
KEPT_RUNS: Final = 20
NOT_BEGUN: Final = frozenset({None, 125, 126, 127})  # exit codes of a check that the shell could not start
MORE: Final = 1.1  # times the seconds that a run had: then it is tried again
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Ended).decode


class Command(Struct, frozen=True):
    """A check of a project. ``struck``: the person struck it out, so it is never run. ``at``: epoch ms, when
    it was last chosen or run by an agent.
    """

    known: Known
    struck: bool
    at: int


def learn(project: str, known: Sequence[Known], at: int) -> list[Statement]:
    """Keep the checks that an agent ran; what a person chose or struck out stays as it is."""
    if not known:
        return []
    return [
        (
            "INSERT INTO proof_commands (project, folder, command, source, at) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET at = excluded.at",
            [(project, k.folder, k.command, k.source, at) for k in known],
        ),
        (
            "DELETE FROM proof_commands WHERE project = ? AND source = 'agent' AND struck = 0 AND at < "
            "(SELECT min(at) FROM "
            "(SELECT at FROM proof_commands WHERE project = ? ORDER BY at DESC LIMIT ?))",
            [(project, project, MOST_COMMANDS)],
        ),
    ]


def choose(project: str, known: Known, at: int) -> list[Statement]:
    """A person chose the check of this project, in place of the one chosen before."""
    return [
        ("DELETE FROM proof_commands WHERE project = ? AND source = 'person' AND struck = 0", [(project,)]),
        (
            "INSERT INTO proof_commands (project, folder, command, source, at) VALUES (?, ?, ?, 'person', ?) "
            "ON CONFLICT DO UPDATE SET source = 'person', struck = 0, at = excluded.at",
            [(project, known.folder, known.command, at)],
        ),
    ]


def strike(project: str, known: Known, *, struck: bool) -> Statement:
    """The person strikes a check out, or allows it again."""
    return (
        "UPDATE proof_commands SET struck = ? WHERE project = ? AND folder = ? AND command = ?",
        [(int(struck), project, known.folder, known.command)],
    )


def ended(project: str, task: str, known: Known, outcome: str, marks: Sequence[str], at: int) -> Statement:
    """How a check ended last in a task. ``marks``: what failed (``Ended.marks``)."""
    return (
        "INSERT INTO proof_results (project, folder, command, task, at, outcome, marks) "
        "VALUES (?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET at = excluded.at, outcome = excluded.outcome, marks = excluded.marks",
        [(project, known.folder, known.command, task, at, outcome, json.dumps(list(marks)))],
    )


def ran(
    identity: str, project: str, session: str, task: str, end: Ended, files: str, after: str
) -> Statement:
    """Stores the result of a run. ``files``, ``after``: digests of the files before and after it.
    Its time is that of ``spent``.
    """
    proof = end.proof
    return (
        "INSERT INTO proof_runs (id, project, session, task, at, ms, files, after, body) "
        "VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?)",
        [(identity, project, session, task, proof.at, files, after, _encode(end))],
    )


def spent(identity: str, at: int, ms: int) -> Statement:
    """The time of one process: also of a repeat, of the commit before, of one that Esc ended."""
    return (
        "INSERT INTO proof_runs (id, project, session, task, at, ms, files, after, body) "
        "VALUES (?, '', '', '', ?, ?, '', '', x'')",
        [(identity, at, ms)],
    )


def prune(now: int) -> list[Statement]:
    """Runs and results are kept for 90 days."""
    tables = ("proof_runs", "proof_results")
    return [(f"DELETE FROM {table} WHERE at < ?", [(now - KEEP_MS,)]) for table in tables]


class Proofs:
    """The read side."""

    def __init__(self, db: Reads) -> None:
        self._db = db

    def commands(self, project: str) -> list[Command]:
        """The checks of a project, the latest last."""
        rows = self._db.read(
            "SELECT command, folder, source, struck, at FROM proof_commands WHERE project = ? ORDER BY at",
            (project,),
        )
        return [
            Command(Known(str(command), str(folder), source), bool(struck), int(at))
            for command, folder, source, struck, at in rows
            if source in {"person", "agent"}
        ]

    def before(self, project: str, task: str, known: Known) -> tuple[str, tuple[str, ...]] | None:
        """How the check ended last in an earlier task: its outcome and marks; None when nobody saw it."""
        rows = self._db.read(
            "SELECT outcome, marks FROM proof_results WHERE project = ? AND folder = ? AND command = ? "
            "AND task != ? ORDER BY at DESC LIMIT 1",
            (project, known.folder, known.command, task),
        )
        if not rows:
            return None
        try:
            marks = tuple(str(mark) for mark in json.loads(rows[0][1]))
        except (ValueError, TypeError):
            marks = ()
        return str(rows[0][0]), marks

    def same(self, project: str, files: str, known: Known, within_s: float) -> Ended | None:
        """The newest run of this check on exactly these files that says something of them. A run that did not
        begin does not, nor one that a limit ended that was shorter than ``within_s``, the one of now.
        """
        rows = self._db.read(
            "SELECT body, files, after FROM proof_runs WHERE project = ? AND (files = ? OR after = ?) "
            "ORDER BY at DESC LIMIT ?",
            (project, files, files, KEPT_RUNS),
        )
        for body, before, after in rows:
            end = _readable(body)
            if end is None or end.known.key != known.key or not _says(end.proof, within_s):
                continue
            # one during which files changed says nothing of those that are there since, nor where only a
            # branch changed, by whomever
            if end.proof.state != "changed" or files == before != after:
                return end
        return None

    def spent_ms(self, since: int) -> int:
        """How long all runs took since then, in ms."""
        return int(self._db.read("SELECT total(ms) FROM proof_runs WHERE at >= ?", (since,))[0][0])

    def last(self) -> tuple[str, Ended] | None:
        """The newest run of all, and in which project."""
        rows = self._db.read(
            "SELECT project, body FROM proof_runs WHERE project != '' ORDER BY at DESC LIMIT 1"
        )
        found = [(str(project), end) for project, body in rows if (end := _readable(body)) is not None]
        return found[0] if found else None

    def runs(self, project: str, limit: int = KEPT_RUNS) -> list[Ended]:
        """The newest runs in a project, newest first."""
        rows = self._db.read(
            "SELECT body FROM proof_runs WHERE project = ? ORDER BY at DESC LIMIT ?", (project, limit)
        )
        return [end for (body,) in rows if (end := _readable(body)) is not None]


def _says(proof: Proof, within_s: float) -> bool:
    if proof.state in {"not_started", "not_run"}:
        return proof.state == "not_started" and proof.exit not in NOT_BEGUN
    return proof.state != "timed_out" or proof.seconds * MORE >= within_s


def _readable(body: object) -> Ended | None:
    try:
        return _decode(body)  # type: ignore[arg-type] # the column is a BLOB
    except (msgspec.MsgspecError, TypeError, ValueError):
        return None
