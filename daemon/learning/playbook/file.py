"""The file ``playbook.json``: read in any form that was ever written, written in today's, as a whole.

A file that is no playbook is not replaced: at the next save it is renamed to ``playbook.json.corrupt-<ms>``.
It is read twice before that, so that an edit which is just being written is not mistaken for a broken file.
What the fields mean is in ``playbook.points``.
"""

from __future__ import annotations

import json
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...core.errors import Unavailable
from ...files.atomic import set_aside, write_atomic
from ...files.bounded import read_bytes, reason
from ...files.folders import make_folder
from .points import check_form, empty, migrated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FILE: Final = ".reflection/playbook.json"
LIMIT: Final = 64 * 1024 * 1024  # bytes; 100,000 points have about 15 MB
AGAIN_S: Final = 0.2  # until a file that can't be read as a playbook is read once more


class Loaded(NamedTuple):
    """A playbook from a file. ``problem``: why the file can't be used, "" when it can or is missing; the
    playbook is empty then. ``told``: what changed when it was brought into today's form. ``mark``: a digest
    of the file's bytes, "" without a file.
    """

    playbook: dict[str, Any]
    problem: str = ""
    told: tuple[str, ...] = ()
    mark: str = ""


def load(
    path: str | Path,
    *,
    marks: Mapping[str, int] | None = None,
    follow: bool = True,
    sleep: Callable[[float], object] = time.sleep,
) -> Loaded:
    """The playbook in the file; an empty one when there is none. Never raises.

    ``marks``: the highest number that was ever given, by how a name begins. ``follow=False`` refuses a link.
    """
    found = _read(path, marks, follow=follow)
    if found.problem:
        sleep(AGAIN_S)
        found = _read(path, marks, follow=follow)
    return found


def _read(path: str | Path, marks: Mapping[str, int] | None, *, follow: bool) -> Loaded:
    mark = ""
    try:
        raw = read_bytes(path, LIMIT, follow=follow)
        if raw is None:
            return Loaded(empty())
        mark = sha256(raw).hexdigest()
        found = migrated(parsed(raw), marks)
    except (OSError, ValueError, RecursionError) as error:
        why = reason(error) if isinstance(error, OSError | ValueError) else "it is nested too deeply"
        return Loaded(empty(), f"{path} is no playbook that can be used: {why}", (), mark)
    return Loaded(found.playbook, "", found.told, mark)


def save(
    path: str | Path,
    playbook: Mapping[str, Any],
    now_ms: int,
    *,
    sleep: Callable[[float], object] = time.sleep,
) -> Path | None:
    """Replace the file, all or nothing; a missing folder is made. The file keeps its mode; a link is
    replaced.

    Returns where a file that is no playbook was kept, None when there was none. Raises ``Unavailable`` when
    the file system refuses, ``TypeError`` and ``ValueError`` for what JSON can't hold.
    """
    data, aside, path = dumped(playbook), None, Path(path)
    if _is_broken(path):
        sleep(AGAIN_S)
        if _is_broken(path):
            aside = set_aside(path, str(now_ms))
    try:
        make_folder(path.parent)
    except OSError as error:
        raise Unavailable(f"can't make the folder {path.parent}: {reason(error)}") from error
    write_atomic(path, data, mode=None)
    return aside


def _is_broken(path: Path) -> bool:
    """Whether there is something that is no playbook."""
    try:
        raw = read_bytes(path, LIMIT)
        if raw is not None:
            check_form(parsed(raw))
    except (OSError, ValueError, RecursionError):
        return True
    return False


def parsed(raw: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value in a file. Raises ``ValueError``, for ``NaN`` and ``Infinity`` too: they are no JSON."""
    return json.loads(raw.decode("utf-8-sig"), parse_constant=_no_json)


def _no_json(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def dumped(playbook: Mapping[str, Any]) -> bytes:
    """The file's bytes for a playbook. Raises ``TypeError`` and ``ValueError`` for what JSON can't hold, and
    ``ValueError`` for a playbook that could not be loaded again (``LIMIT``).
    """
    try:
        text = json.dumps(playbook, indent=2, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    try:
        data = f"{text}\n".encode()
    except UnicodeEncodeError:  # half a character, which JSON allows and UTF-8 does not
        data = f"{json.dumps(playbook, indent=2, allow_nan=False)}\n".encode()
    if len(data) > LIMIT:
        raise ValueError(
            f"it would have {len(data) >> 20} MiB, more than the {LIMIT >> 20} MiB that are read"
        )
    return data
