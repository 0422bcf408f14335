"""Finds Claude Code's transcripts for ``reflectd judge`` and ``reflectd playbook bootstrap``.

``hosts.claude_code.transcript`` reads a file, and ``replay.load`` makes a case of it. A file that can't be
used is reported and skipped.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ...core.errors import ReflectdError, UserError
from ...files.project import upward
from ..render import plain
from ..terminal import say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from ...judge.case import Templates
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
    from ...files.project import project_rule_lines
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


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
