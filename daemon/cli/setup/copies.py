"""The copies of our plugins in the data folder: what the hosts' settings name.

An installed package moves when it is installed again with another Python, and a host that names the old
place loads nothing any more. The copy stays where it is. ``setup`` makes it; ``setup``, ``start`` and
``doctor`` bring it up to date. A link in its place is a developer's own and is left alone. Files are replaced
one by one, the one that the host reads first as the last. ``Unavailable`` when the file system refuses.

The copy for Claude Code follows the person's settings: it has the mod, which runs with all their rights,
only with ``claude_code.mod``; and a hook at each tool call, for lessons that were chosen after the prompt,
only where lessons are given, because a hook that does nothing costs time too. ``refresh_all`` runs
where a setting changes and where a daemon starts.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from ... import config, paths
from ...core.errors import Unavailable, UserError
from ...files.safe import make_folder
from ...paths import data_folder, shipped
from ..terminal import say
from .edit import read, remove_made

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOD: Final = Path("hooks", "register.js")
HOOKS: Final = Path("hooks", "hooks.json")
EVENT: Final = "PreToolUse"
State = Literal["missing", "current", "different", "linked"]
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


def state(env: Mapping[str, str], host: str) -> State:
    """How the copy differs from the plugin of this version."""
    folder = place(env, host)
    if folder.is_symlink():
        return "linked"
    if not folder.is_dir():
        return "missing"
    return "different" if _differs(_wanted(env, host), folder) else "current"


def refresh(env: Mapping[str, str], host: str, *, make: bool = False) -> bool:
    """Make the copy equal to this version's plugin; says whether anything changed.

    A copy that is missing is made only with ``make``: then a settings file is about to name it.
    """
    folder = place(env, host)
    try:
        found = state(env, host)
        if found in {"current", "linked"} or (found == "missing" and not make):
            return False
        wanted = _wanted(env, host)
        _write(wanted, folder)
        for extra in sorted(set(_below(folder)) - wanted.keys(), reverse=True):
            (folder / extra).unlink(missing_ok=True)
            with suppress(OSError):
                (folder / extra).parent.rmdir()
    except OSError as e:
        raise Unavailable(f"cannot write the plugin's copy {folder}: {e.strerror}") from e
    return True


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
    wanted = {path: _File((source / path).read_bytes(), _mode(source / path)) for path in found}
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


def _differs(wanted: Mapping[Path, _File], folder: Path) -> bool:
    return set(_below(folder)) != wanted.keys() or any(
        _other(file, folder / path) for path, file in wanted.items()
    )


def _other(file: _File, copy: Path) -> bool:
    """Says whether the copy has other bytes, can't be run as the file can, or may be written by others."""
    mode = copy.stat().st_mode
    return file.data != copy.read_bytes() or file.mode & 0o100 > mode & 0o100 or bool(mode & 0o022)


def _mode(source: Path) -> int:
    return 0o755 if os.access(source, os.X_OK) else 0o644


def _write(wanted: Mapping[Path, _File], folder: Path) -> None:
    from ...files.safe import write_atomic

    for path, file in wanted.items():
        copy = folder / path
        make_folder(copy.parent)
        if not copy.is_file() or _other(file, copy):
            write_atomic(copy, file.data, file.mode, durable=False)
