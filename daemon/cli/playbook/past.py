"""Finds the past sessions of a project for ``reflectd playbook bootstrap``, and reads them one at a time.

They are Claude Code's transcripts of this project, or the files that the person names: transcripts, and what
`opencode export` prints. What the daemon knows of a session (its verdicts, what it was given) is read from
its database, which is never written here. A file that can't be used is reported and left out.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...core.errors import ReflectdError, UserError, words
from ...hosts.claude_code.sessions import named as folder_of
from ...hosts.claude_code.sessions import projects
from ...replay.past import Known, Past, past_of, prompt_tokens
from ..verdicts.transcripts import is_transcript_file, sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ...core.transcript import Transcript
    from ...store.readonly import Reads

QUIET_S: Final = 120.0  # a file that was written to since then may belong to a session that is open
VERDICTS: Final = 500


@dataclass(frozen=True, slots=True)
class Found:
    """A session that was read. ``past`` has no stretch here, so that many of them take no room; ``tokens``:
    of its prompt, at most, 0 for one that is left out.
    """

    path: Path
    host: str
    past: Past
    tokens: int = 0


def files_of(project: Path, env: Mapping[str, str], named: list[str]) -> list[Path]:
    """The files to read, oldest first where nobody named them. Raises ``UserError`` when there are none."""
    if named:
        return [Path(name).expanduser() for name in named]
    names = dict.fromkeys((str(project), os.path.realpath(project)))
    places = [projects(env) / folder_of(name) for name in names]
    found = [file for place in places for file in sessions(place)]
    if not found:
        raise UserError(
            f"Claude Code has no session of {project} in {projects(env)}; a session of opencode is given as "
            "a file: `opencode export SESSION > FILE`, then `reflectd playbook bootstrap FILE`"
        )
    return found


def read_all(
    files: list[Path], reader: Reader, template: str, told: Callable[[int, str], None]
) -> list[Found]:
    """All sessions, in order of time. ``template``: the reflector's prompt. ``told``: how far it is."""
    found, seen = list[Found](), set[str]()
    for done, path in enumerate(files):
        told(done, path.stem)
        host = "claude-code"
        try:
            host, past = reader.read(path, seen)
        except (ReflectdError, OSError) as e:
            past = Past(path.stem, 0, why=words(e).removeprefix(f"{path}: "))
        except Exception as e:  # noqa: BLE001 - a file that we fail to read must not cost the others
            past = Past(path.stem, 0, why=f"a bug of reflectd: {type(e).__name__}: {e}")
        if past.session in {f.past.session for f in found if not f.past.why}:
            past = replace(past, stretch=None, why="another file has this session")
        seen |= past.marks
        size = prompt_tokens(past.stretch, template) if past.stretch is not None else 0
        found.append(Found(path, host, replace(past, stretch=None), size))
    return sorted(found, key=lambda f: (f.past.at, f.past.session))


class Reader:
    """Reads one file after the other. ``named``: the person named the files."""

    def __init__(self, project: Path, db: Reads, *, named: bool) -> None:
        from ...files.project_rules import project_rule_lines

        self._project = os.path.realpath(project)
        self._rules = project_rule_lines(str(project))
        self._db = db
        self._named = named

    def read(
        self, path: Path, seen: Collection[str] = (), only: Collection[str] | None = None
    ) -> tuple[str, Past]:
        """Its host, and the session. Raises ``UserError`` and ``Unavailable``."""
        host, transcript = self._transcript(path)
        if not self._named and time.time() - path.stat().st_mtime < QUIET_S:
            return host, Past(transcript.session, 0, why="it was written to a moment ago, so it may be open")
        if transcript.directory and os.path.realpath(transcript.directory) != self._project:
            return host, Past(transcript.session, 0, why=f"it is a session of {transcript.directory}")
        known = self._known(transcript.session)
        return host, past_of(transcript, host, known, seen=seen, only=only, project=self._rules)

    def _transcript(self, path: Path) -> tuple[str, Transcript]:
        import msgspec

        from ...files.labelled_cases import read_bytes
        from ...hosts.claude_code.transcript import every_task
        from ...hosts.opencode.export import parse_export

        if not path.exists():
            raise UserError("there is no such file")
        if is_transcript_file(path):
            return "claude-code", every_task(path)
        try:
            found = parse_export(msgspec.json.decode(read_bytes(path)))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ReflectdError) as e:
            said = f"neither a transcript of Claude Code nor what `opencode export` prints: {e}"
            raise UserError(said) from None
        return "opencode", found if found.session else replace(found, session=path.stem)

    def _known(self, session: str) -> Known:
        from ...store import learning
        from ...store.verdicts import Verdicts

        given = learning.behind_calls(self._db, session)
        verdicts = (kept.verdict for kept in Verdicts(self._db).newest(session, VERDICTS))
        return Known(given, {v.turn: v for v in verdicts})
