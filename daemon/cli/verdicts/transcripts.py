"""Finds Claude Code's transcripts for ``reflectd judge``, and prints a line or a table of their verdicts.

``hosts.claude_code.transcript`` reads a file, and ``replay.load`` makes a case of it. A file that can't be
used is reported and skipped.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import ReflectdError, UserError
from ...files.upward import upward
from ..render import Paint, plain, severity, short, table
from ..terminal import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ...core.verdict import Verdict
    from ...judge.case import Case, Templates
    from ...replay.load import Loaded

HEAD = 1 << 20


def is_transcript_file(path: Path) -> bool:
    """Whether the file is a transcript of Claude Code, by its name or its first lines."""
    from ...hosts.claude_code.transcript import is_transcript

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
    from ...files.project_rules import project_rule_lines
    from ...hosts.claude_code.transcript import TranscriptReader
    from ...replay.load import of_transcript

    if not path.exists():
        raise UserError(f"can't read {path}: there is no such file")
    transcript = TranscriptReader(path, is_ours=lambda _: True).read(closed=True)
    return of_transcript(transcript, str(path), templates, project_rule_lines(transcript.directory))


def newest(
    env: Mapping[str, str],
    folder: Path,
    templates: Callable[[str], Templates],
    skipped: list[tuple[Path, str]],
) -> Loaded:
    """The newest session of this folder's project that can be judged. Newer ones are added to ``skipped``,
    each with a reason. Raises ``UserError`` when none can be judged.
    """
    from ...hosts.claude_code.past import named, projects

    folders = upward(folder)
    places = [projects(env) / named(p) for p in folders]
    found = [f for place in places for f in sessions(place)]
    if not found:
        above = f", and none of the folders above it up to {folders[-1]}" if len(folders) > 1 else ""
        raise UserError(f"Claude Code has no session of {folder} in {projects(env)}{above}")
    for _, loaded in each(sorted(found, key=_changed, reverse=True), templates, skipped):
        return loaded
    path, why = skipped[0]
    raise UserError(f"no session of {folder} can be judged; the newest, {path}: {why}")


def corpus(env: Mapping[str, str], folder: str) -> list[Path]:
    """All sessions in ``folder``, of all projects if it is empty. Raises ``UserError``."""
    from ...hosts.claude_code.past import projects

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
    """The files that can be judged. The others are added to ``skipped``, each with a reason."""
    for path in files:
        try:
            loaded = load_transcript(path, templates)
        except ReflectdError as e:
            skipped.append((path, str(e).removeprefix(f"{path}: ")))
        except Exception as e:  # noqa: BLE001 - a file that we fail to read must not cost the others
            skipped.append((path, f"a bug of reflectd: {type(e).__name__}: {e}"))
        else:
            yield path, loaded


def told(skipped: Iterable[tuple[Path, str]]) -> None:
    """Say on stderr which files were left out, and why."""
    for path, why in skipped:
        say(f"reflectd: {plain(path)}: {plain(why)}", sys.stderr)


def line_of(path: Path, case: Case, verdict: Verdict, paint: Paint) -> str:
    """One session on one line, unless the terminal is narrower."""
    request = short(case.requests[-1], 60) if case.requests else ""
    open_items = f"  missing: {short(verdict.missing[0].text, 60)}" if verdict.missing else ""
    grade = severity(verdict.severity, "")
    state = paint.state(verdict.state) + " " * max(0, 13 - len(verdict.state))
    return "\n".join(paint.row(f"{state} {grade:<7} ", f"{short(path.stem, 36)}  {request}{open_items}"))


def evidence_of(case: Case, verdict: Verdict, paint: Paint) -> list[str]:
    """The reason of the verdict and every row of evidence. An open row is marked with ``!``."""
    lines = paint.row("    ", plain(verdict.reason)) if verdict.reason else []
    for r in case.evidence.rows:
        lines += paint.row(f"    {'!' if r.open else ' '} {r.id:<4} ", short(r.text, 160))
    return lines


def evidence_object(case: Case) -> list[dict[str, object]]:
    """The rows of evidence, for JSON."""
    return [{"id": r.id, "kind": r.kind, "text": r.text, "open": r.open} for r in case.evidence.rows]


def summary(verdicts: Iterable[Verdict], skipped: int) -> list[str]:
    """A table: how many sessions have each state."""
    counted = Counter(v.state for v in verdicts)
    total = sum(counted.values())
    rows = [("state", "sessions", "share")]
    rows += [(s, str(n), f"{100 * n / total:.0f}%") for s, n in counted.most_common()]
    if skipped:
        rows.append(("not judged", str(skipped), ""))
    return table(rows, right=(1, 2))


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
