"""The calls of a task as rules about structure read them: what each wrote, ran, showed, and whether it held.

Values only, in order. Knows nothing about what was asked. A call that failed or was rolled back right after
does not count as done.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from daemon.core.shell import steps
from daemon.core.weakened import edits
from daemon.core.writes import WRITE_TOOLS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from daemon.core.transcript import ToolCall

MAX_MOVES: Final = 400
MAX_TEXT: Final = 20_000  # characters of one text
MAX_SHOWN: Final = 8_000  # characters of one output
MAX_SCRIPT: Final = 2_000  # characters of a script that is read closely
_SHELLS: Final = frozenset({"bash", "shell", "execute", "terminal", "run_command"})
_LOOKERS: Final = frozenset(
    (  # noqa: SIM905 -- a word list
        "ls cat head tail grep egrep fgrep rg ag ack find fd wc sort uniq diff cmp stat file which whereis "
        "pwd cd tree less more cut awk jq yq tr test [ [[ true false : date printenv echo printf type "
        "command id whoami uname hostname sleep du df ps basename dirname realpath readlink nl column comm "
        "xargs for do done if then fi else while in export set"
    ).split()
)
_GIT_LOOKS: Final = frozenset(
    "log diff show status grep blame ls-files ls-tree branch describe rev-parse shortlog remote".split()  # noqa: SIM905
)
_BACK: Final = re.compile(
    r"\bgit (?:checkout (?:[\w./~^-]{1,60} )?--(?!\w)|checkout \.|restore (?!--staged)|reset --hard|revert\b)"
)
_BACK_TO: Final = re.compile(  # what a rollback takes back: the paths named, or everything
    r"\bgit (?:checkout (?:HEAD )?(?:-- ?)?|restore (?!--staged)(?:--\S+ )?)(?P<paths>[^;&|\n]{1,300})"
    r"|\bgit (?P<all>reset --hard(?! [\w/]{2})|stash drop)"
)
_KEEPS: Final = re.compile(r"\bgit (?:commit|stash (?:pop|apply))\b")
_NEAR: Final = 3  # calls within which a rollback answers a failure


@dataclass(frozen=True, slots=True)
class Move:
    """One finished call. ``edits``: (path, old, new); ``script``: what a shell ran; ``read``: what it
    showed. ``held``: it ended well, or nothing took it back; ``looks``: it only looked.
    """

    script: str = ""
    edits: tuple[tuple[str, str, str], ...] = ()
    output: str = ""
    ok: bool = True
    held: bool = True
    looks: bool = False
    gave_up: bool = False  # an edit taken back after something had failed
    read: str = ""

    @property
    def acts(self) -> bool:
        """Whether a shell call did more than look, and that held."""
        return bool(self.script) and self.held and not self.looks


def moves(calls: Sequence[ToolCall]) -> tuple[Move, ...]:
    """The latest ``MAX_MOVES`` calls that ended."""
    found = [m for call in calls[-MAX_MOVES:] if (m := _move(call)) is not None]
    for i, move in enumerate(found):
        if move.ok or not move.script:
            continue
        after = found[i + 1 : i + 1 + _NEAR]
        end = next((k for k, m in enumerate(after) if m.edits), len(after))
        if any(_BACK.search(m.script) for m in after[:end] if m.script):
            found[i] = replace(move, held=False)
    return tuple(_voided(found))


def _voided(found: list[Move]) -> list[Move]:
    """``found``, with the edits marked that a later rollback of their files took back."""
    for i, move in enumerate(found):
        if "git " not in move.script or not (m := _BACK_TO.search(move.script[:MAX_SCRIPT])) or not move.ok:
            continue
        paths = [w for w in (m["paths"] or "").split() if not w.startswith("-")]
        paths = [w for w in paths if w in {".", ":/"} or "." in w.strip("./") or "/" in w.strip("/")]
        for k in range(i - 1, -1, -1):
            if _KEEPS.search(found[k].script):
                break
            hit = [any(_under(path, p) for p in paths) or bool(m["all"]) for path, _, _ in found[k].edits]
            if hit and all(hit):
                failed = any(m.script and not m.ok for m in found[k + 1 : i])
                found[k] = replace(found[k], held=False, gave_up=failed)
    return found


def _under(path: str, rolled: str) -> bool:
    """Whether a rollback of ``rolled``, as typed, reaches ``path``."""
    rolled = rolled.removeprefix("./").rstrip("/")
    return (
        rolled in {"", ".", ":"}
        or path == rolled
        or path.endswith(f"/{rolled}")
        or f"/{rolled}/" in f"/{path}"
    )


def _move(call: ToolCall) -> Move | None:
    name = call.tool.lower()
    ok = call.status == "completed" and call.exit in {0, None}
    if name in _SHELLS:
        script = call.input.get("command") or call.input.get("cmd")
        if call.status not in {"completed", "error"} or not isinstance(script, str) or not script:
            return None
        shown = call.output or call.error
        return Move(script[:MAX_TEXT], (), _ends(shown), ok, held=True, looks=_looks(script))
    if call.status != "completed":
        return None
    if name in WRITE_TOOLS:
        return Move(edits=tuple((p, o[:MAX_TEXT], n[:MAX_TEXT]) for p, o, n in edits(call)), ok=ok)
    path = call.input.get("filePath") or call.input.get("file_path") or call.input.get("path")
    read = path if name == "read" and isinstance(path, str) else ""
    return Move(output=_ends(call.output), ok=ok, looks=True, read=read)


def _ends(text: str) -> str:
    """Head and tail of a long output."""
    if len(text) <= MAX_SHOWN:
        return text
    return f"{text[: MAX_SHOWN // 2]}\n{text[-MAX_SHOWN // 2 :]}"


def _looks(script: str) -> bool:
    return len(script) <= MAX_SCRIPT and _only_looks(script)


@lru_cache(maxsize=512)
def _only_looks(script: str) -> bool:
    """Whether every command of a script only shows something."""
    for step in steps(script):
        words = step.words
        if step.outputs and not all(o.startswith(("/dev/", "/tmp/")) for o in step.outputs):  # noqa: S108
            return False
        if not words:
            continue
        name = words[0].rsplit("/", 1)[-1]
        rest = [w for w in words[1:] if not w.startswith("-")]
        shows = name in _LOOKERS or (name == "sed" and "-n" in words)
        if not shows and not (name == "git" and rest[:1] and rest[0] in _GIT_LOOKS):
            return False
    return True


def written(found: Sequence[Move]) -> Iterator[tuple[str, str, str]]:
    """All edits that held, in order."""
    for move in found:
        if move.held:
            yield from move.edits


def base(path: str) -> str:
    """The last part of a path."""
    return path.rstrip("/").rsplit("/", 1)[-1]
