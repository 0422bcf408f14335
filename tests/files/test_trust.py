"""The file of trusted projects: what is kept, what is refused, and two commands at once."""

from __future__ import annotations

import json
import stat
import threading
from pathlib import Path

import pytest

from daemon.core.errors import Unavailable
from daemon.files.trust import LIMIT, PROJECTS_KEPT, Trust, digest
from daemon.testing import FakeClock

PROMPTS = {"judge": "be kind"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "trust.json"


def test_trust_is_kept_and_taken_back(file: Path, tmp_path: Path) -> None:
    """Another process sees it; only this folder and this content; the file is 0600."""
    clock = FakeClock()
    assert Trust(file, clock).trusts(tmp_path, PROMPTS) == (False, "")
    assert Trust(file, clock).grant(tmp_path, PROMPTS) == ""
    assert Trust(file, clock).trusts(tmp_path, PROMPTS) == (True, "")
    assert Trust(file, clock).trusts(tmp_path, {"judge": "be kind "}) == (False, "")
    assert Trust(file, clock).trusts(tmp_path / "sub", PROMPTS) == (False, "")
    assert Trust(file, clock).load()[0][str(tmp_path)].at == clock.ms
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    Trust(file, clock).revoke(tmp_path)
    assert Trust(file, clock).trusts(tmp_path, PROMPTS) == (False, "")


@pytest.mark.shows("I51")
def test_the_digest_knows_which_text_is_whose() -> None:
    """Moving text from one prompt to another, or renaming one, is a change."""
    sets = [{"a": "b"}, {"b": "a"}, {"a": "b", "c": ""}, {"a": "", "c": "b"}, {'a", "b': ""}, {}]
    assert len({digest(s) for s in sets}) == len(sets)
    assert digest({"a": "1", "b": "2"}) == digest({"b": "2", "a": "1"})


ENTRY = b'{"/p": {"sha256": "x", "at": 1}}'
CORRUPT = [
    *(b"", b"{", b"[]", b"\xff", b'{"projects": []}', b"[" * 100_000),
    *(b" " * (LIMIT + 1), b'{"projects": ' + ENTRY + b"}"),
    b'{"projects": {"/p": {"sha256": "' + b"0" * 64 + b'"}}}',
]


@pytest.mark.shows("I43")
@pytest.mark.parametrize("data", CORRUPT, ids=range(len(CORRUPT)))
def test_a_corrupt_file_is_kept_aside_and_trusts_nothing(file: Path, tmp_path: Path, data: bytes) -> None:
    """The content is kept under another name, a message says where, and trusting again works."""
    file.parent.mkdir()
    file.write_bytes(data)
    trust = Trust(file, FakeClock())
    trusted, problem = trust.trusts(tmp_path, PROMPTS)
    (aside,) = file.parent.iterdir()
    assert not trusted
    assert aside.name in problem
    assert aside.name.startswith("trust.json.corrupt-")
    assert aside.read_bytes() == data
    trust.grant(tmp_path, PROMPTS)
    assert trust.trusts(tmp_path, PROMPTS) == (True, "")


def test_a_file_that_cannot_be(file: Path, tmp_path: Path) -> None:
    """A folder or a file in the way trusts nothing, and a command fails with the folder's name."""
    file.mkdir(parents=True)
    trusted, problem = Trust(file, FakeClock()).trusts(tmp_path, PROMPTS)
    assert (trusted, "no project is trusted" in problem) == (False, True)
    (tmp_path / "other").write_text("a file")
    trust = Trust(tmp_path / "other" / "trust.json", FakeClock())
    with pytest.raises(Unavailable, match="other"):
        trust.grant(tmp_path, PROMPTS)
    assert trust.trusts(tmp_path, PROMPTS)[0] is False


def test_commands_at_once_lose_nothing(file: Path, tmp_path: Path) -> None:
    """Twenty at the same moment: what one wrote the others keep, so that no removal is undone."""
    folders = [tmp_path / str(n) for n in range(20)]
    work = [threading.Thread(target=Trust(file, FakeClock()).grant, args=(f, PROMPTS)) for f in folders]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert set(Trust(file, FakeClock()).load()[0]) == {str(f) for f in folders}


@pytest.mark.shows("I44")
def test_the_list_is_bounded(file: Path, tmp_path: Path) -> None:
    """A thousand projects are kept; the one trusted longest ago makes room."""
    clock = FakeClock()
    entries = {f"/p{n}": {"sha256": "0" * 64, "at": n} for n in range(PROJECTS_KEPT)}
    file.parent.mkdir()
    file.write_text(json.dumps({"projects": entries}))
    Trust(file, clock).grant(tmp_path, PROMPTS)
    kept = Trust(file, clock).load()[0]
    assert len(kept) == PROJECTS_KEPT
    assert "/p0" not in kept
    assert {"/p1", str(tmp_path)} <= kept.keys()
