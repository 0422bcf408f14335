"""The service's files on disk: what is there, writing it, taking it away.

Each file carries a digest of itself, so that one that a person edited is told from one of another version.
An edited file is never overwritten or removed: it is kept beside, under a name that no service manager reads.
``Unavailable`` when the file system says no.
"""

from __future__ import annotations

import re
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

from daemon.core.errors import Unavailable
from daemon.files.atomic import write_atomic

if TYPE_CHECKING:
    from pathlib import Path

State = Literal["missing", "current", "older", "edited"]
_SEAL = re.compile(r"^(?:# reflectd ([0-9a-f]{64})|<!-- reflectd ([0-9a-f]{64}) -->)\n", re.MULTILINE)
_LIMIT = 256 * 1024


def seal(text: str) -> str:
    """``text`` with its digest, as a comment of its own kind."""
    digest = sha256(text.encode()).hexdigest()
    if text.startswith("<?xml"):
        return text.replace("<plist", f"<!-- reflectd {digest} -->\n<plist", 1)
    return f"# reflectd {digest}\n{text}"


def read(path: Path) -> str:
    """What is there; empty when nothing is."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_LIMIT)
    except FileNotFoundError:
        return ""
    except OSError as e:
        raise Unavailable(f"cannot read {path}: {e.strerror}") from e


def state(path: Path, text: str) -> State:
    """What is at ``path``, where ``text`` should be. ``older``: ours, of another version or other paths."""
    found = read(path)
    if not found:
        return "edited" if path.is_symlink() or path.exists() else "missing"
    if found == seal(text):
        return "current"
    digest = _SEAL.search(found)
    rest = _SEAL.sub("", found, count=1)
    ours = digest is not None and sha256(rest.encode()).hexdigest() in digest.groups()
    return "older" if ours else "edited"


def write(path: Path, text: str, stamp: str) -> Path | None:
    """Put ``text`` there, all or nothing; where an edited file is kept now, None when there was none."""
    aside = _keep(path, stamp) if state(path, text) == "edited" else None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise Unavailable(f"cannot make the folder {path.parent}: {e.strerror}") from e
    write_atomic(path, seal(text), 0o644)
    return aside


def remove(path: Path, text: str, stamp: str) -> Path | None:
    """Take the file away; where an edited one is kept now. Missing is fine."""
    if state(path, text) == "edited":
        return _keep(path, stamp)
    try:
        path.unlink(missing_ok=True)
    except OSError as e:
        raise Unavailable(f"cannot remove {path}: {e.strerror}") from e
    return None


def remove_empty(folder: Path, levels: int) -> None:
    """Remove the folder and ``levels - 1`` above it, as far as nothing is in them."""
    for found in (folder, *folder.parents[: levels - 1]):
        with suppress(OSError):
            found.rmdir()


def _keep(path: Path, stamp: str) -> Path:
    count = 1
    while True:
        aside = path.with_name(f"{path.name}.edited-{stamp}" + (f"-{count}" if count > 1 else ""))
        if not (aside.exists() or aside.is_symlink()):
            break
        count += 1
    try:
        return path.rename(aside)
    except OSError as e:
        raise Unavailable(f"cannot move {path} aside: {e.strerror}") from e
