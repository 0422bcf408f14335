"""Claude Code's transcripts on disk: the newest of this project, all of a folder, and a table of verdicts.

Only finds files and prints; ``hosts.claude_transcript`` reads them, ``engine.cases`` makes cases of them. A
file that can't be used is reported and left out.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from daemon.cli.render import Paint, plain, short, table
from daemon.core.errors import ReflectdError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from daemon.core.verdict import Verdict
    from daemon.engine.cases import Loaded
    from daemon.judge.case import Case, Templates

HEAD = 1 << 20
WIDTH = 24


def is_transcript_file(path: Path) -> bool:
    """Whether a file of this name is one of Claude Code, by its name or its first lines."""
    from daemon.hosts.claude_transcript import is_transcript

    if path.suffix == ".jsonl":
        return True
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return is_transcript(file.read(HEAD))
    except OSError:
        return False


def load_transcript(path: Path, templates: Callable[[str], Templates]) -> Loaded:
    """The case of the session's last turn. Raises ``UserError``."""
    from daemon.engine.cases import of_transcript
    from daemon.files.project import gate_lines
    from daemon.hosts.claude_transcript import TranscriptReader

    if not path.exists():
        raise UserError(f"can't read {path}: there is no such file")
    transcript = TranscriptReader(path, is_ours=lambda _: True).read(closed=True)
    return of_transcript(transcript, str(path), templates, gate_lines(transcript.directory))


def projects(env: Mapping[str, str]) -> Path:
    """Where Claude Code keeps its transcripts."""
    config = env.get("CLAUDE_CONFIG_DIR") or ""
    return (Path(config) if config else Path(env.get("HOME") or "/") / ".claude") / "projects"


def newest(env: Mapping[str, str], folder: Path) -> Path:
    """The newest session of this folder's project. Raises ``UserError``."""
    places = [projects(env) / re.sub(r"[^A-Za-z0-9]", "-", str(p)) for p in _up_to_repository(folder)]
    found = [f for place in places for f in sessions(place)]
    if not found:
        raise UserError(f"Claude Code has no session of {folder} in {places[0]}")
    return max(found, key=_changed)


def corpus(env: Mapping[str, str], folder: str) -> list[Path]:
    """All sessions in ``folder``, of all projects if it is empty. Raises ``UserError``."""
    place = Path(folder).expanduser() if folder else projects(env)
    found = [place] if place.is_file() else sessions(place)
    if not found:
        raise UserError(f"there is no session of Claude Code in {place}")
    return found


def sessions(folder: Path) -> list[Path]:
    """The session files below a folder, oldest first; sub-agents' files are not sessions."""
    try:
        found = [
            p
            for p in folder.rglob("*.jsonl")
            if "subagents" not in p.parts and not p.name.startswith("agent-")
        ]
    except OSError as e:
        raise UserError(f"can't read {folder}: {e.strerror}") from None
    return sorted(found, key=lambda p: (_changed(p), str(p)))


def each(
    files: Iterable[Path], templates: Callable[[str], Templates], skipped: list[tuple[Path, str]]
) -> Iterator[tuple[Path, Loaded]]:
    """The files that can be judged; the others go to ``skipped`` with a reason."""
    for path in files:
        try:
            yield path, load_transcript(path, templates)
        except ReflectdError as e:
            skipped.append((path, str(e).removeprefix(f"{path}: ")))


def line_of(path: Path, case: Case, verdict: Verdict, paint: Paint) -> str:
    """One session on one line."""
    request = short(case.requests[-1], 60) if case.requests else ""
    open_items = f"  missing: {short(verdict.missing[0].text, 60)}" if verdict.missing else ""
    state = paint.state(verdict.state) + " " * max(0, 13 - len(verdict.state))
    return f"{state} {verdict.severity:<7} {short(path.stem, 36)}  {request}{open_items}"


def evidence_of(case: Case, verdict: Verdict) -> list[str]:
    """Why: the reason and every row of evidence, those that are open marked."""
    lines = [f"    {plain(verdict.reason)}"] if verdict.reason else []
    rows = case.evidence.rows
    return [*lines, *(f"    {'!' if r.open else ' '} {r.id:<4} {short(r.text, 160)}" for r in rows)]


def evidence_object(case: Case) -> list[dict[str, object]]:
    """The rows for programs."""
    return [{"id": r.id, "kind": r.kind, "text": r.text, "open": r.open} for r in case.evidence.rows]


def summary(verdicts: Iterable[Verdict], skipped: int) -> list[str]:
    """How many of each state."""
    counted = Counter(v.state for v in verdicts)
    total = sum(counted.values())
    rows = [("state", "sessions", "share")]
    rows += [(s, str(n), f"{100 * n / total:.0f}%") for s, n in counted.most_common()]
    if skipped:
        rows.append(("not judged", str(skipped), ""))
    return table(rows, right=(1, 2))


class Progress:
    """A bar on a terminal's stderr, nothing elsewhere."""

    def __init__(self, total: int, stream: TextIO | None = None) -> None:
        self._out = stream or sys.stderr
        self._total = total
        self._on = self._out.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, done: int, name: str) -> None:
        """Draw it anew: ``done`` of all, and what is at hand."""
        if self._on and self._total:
            full = WIDTH * done // self._total
            bar = "█" * full + "░" * (WIDTH - full)
            self._out.write(f"\r\x1b[K{bar} {done}/{self._total} {short(name, 40)}")
            self._out.flush()

    def clear(self) -> None:
        """Take it away, so that a line can be printed in its place."""
        if self._on:
            self._out.write("\r\x1b[K")
            self._out.flush()


def _up_to_repository(folder: Path) -> list[Path]:
    """The folder, and those above it up to that of the repository it is in."""
    found = [folder]
    for place in (folder, *folder.parents):
        if (place / ".git").exists():
            return [folder, *(p for p in folder.parents if p == place or place in p.parents)]
    return found


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
