"""The copies of our plugins in the data folder: what the hosts' settings name.

An installed package moves when it is installed again with another Python; the copy stays where it is. A link
in its place is a developer's own and is left alone. The file that the host reads first is replaced last. The
copy for Claude Code follows the person's settings: it has the mod, which runs with all their rights, only
with ``claude_code.mod``, and a hook at each tool call only where lessons are given, because a hook that does
nothing costs time too.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ... import config, paths
from ...core.errors import Unavailable, UserError
from ...files.safe import make_folder, remove_empty, write_atomic
from ...paths import data_folder, shipped
from ..terminal import say
from .edit import read, remove_made

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOD: Final = Path("hooks", "register.js")
HOOKS: Final = Path("hooks", "hooks.json")
EVENT: Final = "PreToolUse"
SHIPPED: Final = {
    "opencode": "shims/opencode",
    "claude-code": "shims/claude-code",
    "codex": "shims/claude-code/scripts",
}
_READ_FIRST: Final = {"index.ts", "hooks.json"}  # these name the other files


class _File(NamedTuple):
    data: bytes
    mode: int


def place(env: Mapping[str, str], host: str) -> Path:
    """The folder that the settings of ``host`` name."""
    return data_folder(env) / "plugins" / host


def refresh(env: Mapping[str, str], host: str, *, make: bool = False) -> bool:
    """Make the copy equal to this version's plugin; says whether anything changed.

    A copy that is missing is made only with ``make``: then a settings file is about to name it.
    """
    folder = place(env, host)
    if folder.is_symlink() or not (make or folder.is_dir()):
        return False
    try:
        wrong, extra = _changes(env, host)
        for path, file in wrong.items():
            make_folder((folder / path).parent)
            write_atomic(folder / path, file.data, file.mode, durable=False)
        for path in extra:
            (folder / path).unlink(missing_ok=True)
            remove_empty([(folder / path).parent])
    except OSError as e:
        raise Unavailable(f"cannot write the plugin's copy {folder}: {e.strerror}") from e
    return bool(wrong or extra)


def refresh_all(env: Mapping[str, str]) -> list[str]:
    """Bring all copies up to date; returns the hosts whose copy changed. A failure is told."""
    changed = []
    for host in SHIPPED:
        try:
            changed += [host] if refresh(env, host) else []
        except UserError:  # there is no home, so there are no copies
            break
        except Unavailable as error:
            say(f"reflectd: {error}", sys.stderr)
    return changed


def remove_unused(env: Mapping[str, str], host: str, settings: Iterable[Path]) -> None:
    """Remove the copy, unless one of these ``settings`` files names it or cannot be read."""
    folder = place(env, host)
    if folder.is_symlink() or any(names(file, folder) for file in settings):
        return
    shutil.rmtree(folder, ignore_errors=True)
    remove_made(env, folder.parent)


def names(settings: Path, folder: Path) -> bool:
    """Says whether the settings file names the folder, or cannot be read."""
    try:
        text = read(settings).decode("utf-8", "replace")
    except (UserError, Unavailable):
        return True
    return str(folder) in text or folder.as_uri() in text


def _wanted(env: Mapping[str, str], host: str) -> dict[Path, _File]:
    """Path in the copy -> what it holds; what the host reads first is last."""
    source = shipped(SHIPPED[host])
    found = sorted(_below(source), key=lambda path: (path.name in _READ_FIRST, path))
    wanted = {}
    for path in found:
        runs = os.access(source / path, os.X_OK)
        wanted[path] = _File((source / path).read_bytes(), 0o755 if runs else 0o644)
    if host != "claude-code":
        return wanted
    settings = config.load(env, paths.config_file(env), left_out=[])  # also of a file with mistakes in it
    if not settings.claude_code.mod:
        del wanted[MOD]
    hooks = wanted[HOOKS].data
    late = settings.memory.enabled and settings.offer.enabled
    wanted[HOOKS] = wanted[HOOKS]._replace(data=hooks_json(hooks, mod=settings.claude_code.mod, late=late))
    return wanted


def hooks_json(shipped_one: bytes, *, mod: bool = True, late: bool = False) -> bytes:
    """``hooks.json`` with or without the mod and the hook at tool calls."""
    if mod and not late:
        return shipped_one
    found: dict[str, Any] = json.loads(shipped_one)
    if not mod:
        del found["modules"]
    if late:
        script = "${CLAUDE_PLUGIN_ROOT}/scripts/hook.sh"
        hook = {"type": "command", "command": script, "args": [EVENT], "timeout": 2}
        found["hooks"].setdefault(EVENT, []).append({"matcher": "*", "hooks": [hook]})
    return json.dumps(found, indent=2, ensure_ascii=False).encode() + b"\n"


def _below(folder: Path) -> list[Path]:
    inside = [path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir()]
    return [path for path in inside if "__pycache__" not in path.parts]


def _changes(env: Mapping[str, str], host: str) -> tuple[dict[Path, _File], list[Path]]:
    """The files that the copy lacks or has otherwise, and those that it should not have."""
    folder, wanted = place(env, host), _wanted(env, host)
    there = set(_below(folder))
    wrong = {p: file for p, file in wanted.items() if p not in there or _other(file, folder / p)}
    return wrong, sorted(there - wanted.keys(), reverse=True)


def _other(file: _File, copy: Path) -> bool:
    """Says whether the copy has other bytes, can't be run as the file can, or may be written by others."""
    mode = copy.stat().st_mode
    return file.data != copy.read_bytes() or file.mode & 0o100 > mode & 0o100 or bool(mode & 0o022)
