"""The service's files on disk: reads, writes and removes them.

Each file carries a digest of its own text. The digest tells a file that a person edited from one that another
version of reflectd wrote. An edited file is never overwritten or removed: it is renamed to a name that no
service manager reads, and stays in the same folder. ``Unavailable`` when the file system refuses.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

from ..core.errors import Unavailable
from ..files.safe import write_atomic

if TYPE_CHECKING:
    from pathlib import Path

State = Literal["missing", "current", "older", "edited"]
_SEAL = re.compile(r"^(?:# reflectd ([0-9a-f]{64})|<!-- reflectd ([0-9a-f]{64}) -->)\n", re.MULTILINE)
_LIMIT = 256 * 1024


def seal(text: str) -> str:
    """``text`` with its digest in a comment."""
    digest = sha256(text.encode()).hexdigest()
    if text.startswith("<?xml"):
        return text.replace("<plist", f"<!-- reflectd {digest} -->\n<plist", 1)
    return f"# reflectd {digest}\n{text}"


def read(path: Path) -> str:
    """The text of the file; empty when there is no file."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_LIMIT)
    except FileNotFoundError:
        return ""
    except OSError as e:
        raise Unavailable(f"cannot read {path}: {e.strerror}") from e


def state(path: Path, text: str) -> State:
    """How the file at ``path`` differs from ``text``, which this version would write.

    ``older``: reflectd wrote it, in another version or with other paths, and nobody edited it.
    """
    found = read(path)
    if not found:
        return "edited" if path.is_symlink() or path.exists() else "missing"
    if found == seal(text):
        return "current"
    return "edited" if unsealed(found) is None else "older"


def unsealed(text: str) -> str | None:
    """The text without its digest, as ``seal`` was given it; None when a person edited it."""
    digest = _SEAL.search(text)
    rest = _SEAL.sub("", text, count=1)
    ours = digest is not None and sha256(rest.encode()).hexdigest() in digest.groups()
    return rest if ours else None


def write(path: Path, text: str, stamp: str) -> Path | None:
    """Write ``text`` to ``path``. Returns where an edited file was moved to, None when there was none."""
    aside = _keep(path, stamp) if state(path, text) == "edited" else None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise Unavailable(f"cannot make the folder {path.parent}: {e.strerror}") from e
    write_atomic(path, seal(text), 0o644)
    return aside


def remove(path: Path, text: str, stamp: str) -> Path | None:
    """Remove the file. Returns where an edited file was moved to, else None. A missing file is fine."""
    if state(path, text) == "edited":
        return _keep(path, stamp)
    try:
        path.unlink(missing_ok=True)
    except OSError as e:
        raise Unavailable(f"cannot remove {path}: {e.strerror}") from e
    return None


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
