"""What a back-test keeps: whole files, single stops, labels."""

from __future__ import annotations

import contextlib
import sqlite3
import stat
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from daemon.core.errors import Unavailable
from daemon.store.backtests import FILE, Backtests, Kept, Version

if TYPE_CHECKING:
    from pathlib import Path

ONE = Version("/a.jsonl", "offline", 10, 1, "1 x")
TWO = Version("/b.jsonl", "offline", 10, 1, "1 x")


def turns(kept: Backtests, *paths: str, by: str = "1 x", since: int = 0) -> list[str]:
    """The bodies that count in these files."""
    kept.choose(paths or (ONE.path, TWO.path))
    return [body for _, _, body in kept.results("offline", by, since)]


def test_a_file_is_done_as_it_was(tmp_path: Path) -> None:
    """Changed, judged by another version or another judge it is to be read anew, and its old stops go."""
    with Backtests(tmp_path) as kept:
        kept.put(ONE, [Kept("t1", "m1", 5, "one"), Kept("t2", "m2", 3, "two")])
        assert kept.is_done(ONE)
        for other in (replace(ONE, size=11), replace(ONE, changed=2), replace(ONE, by="2 x"), TWO):
            assert not kept.is_done(other)
        assert turns(kept) == ["two", "one"]
        assert turns(kept, by="2 x") == []
        assert turns(kept, since=4) == ["one"]
        grown = replace(ONE, size=20, changed=9)
        kept.put(grown, [Kept("t3", "m3", 6, "three")])
        assert turns(kept) == ["three"]
        assert not kept.is_done(ONE)


def test_a_stop_and_its_copy_count_once(tmp_path: Path) -> None:
    """A fork has the stops of the session that it copies; only chosen files count."""
    with Backtests(tmp_path) as kept:
        kept.put(ONE, [Kept("t1", "m1", 5, "one")])
        kept.put(TWO, [Kept("x1", "m1", 5, "copy"), Kept("x2", "m2", 6, "more")])
        assert turns(kept) == ["one", "more"]
        assert turns(kept, TWO.path) == ["copy", "more"]


def test_single_stops_and_what_they_cost(tmp_path: Path) -> None:
    """A stop that was paid for is there before its file is done, and is replaced, never doubled; its opinion
    counts for copies, and also when the file changed.
    """
    with Backtests(tmp_path) as kept:
        kept.put_one(ONE, Kept("t1", "m1", 5, "one", "{1}"))
        kept.put_one(ONE, Kept("t1", "m1", 5, "one again", "{1}"))
        kept.put_one(ONE, Kept("t2", "m2", 6, "guard"))
        assert not kept.is_done(ONE)
        assert kept.opinion("offline", "1 x", "m1") == "{1}"
        for other in (("openai", "1 x", "m1"), ("offline", "2 x", "m1"), ("offline", "1 x", "m2")):
            assert kept.opinion(*other) == ""
        grown = replace(ONE, size=20)
        kept.put_one(grown, Kept("t3", "m3", 7, "three", "{3}"))
        assert kept.opinion("offline", "1 x", "m1") == "{1}", "paid for, and not looked at again yet"
        kept.end(grown, {"t1", "t3"}, done=False)
        assert turns(kept) == ["one again", "guard", "three"]
        kept.end(grown, {"t1", "t3"}, done=True, problem="odd")
        assert kept.is_done(grown)
        assert turns(kept) == ["one again", "three"]
        assert kept.problems("offline") == [(ONE.path, "odd")]
        kept.put_one(replace(grown, by="2 x"), Kept("t1", "m1", 5, "new"))
        assert kept.opinion("offline", "1 x", "m1") == "", "other prompts were never asked"


def test_it_is_there_the_next_time_and_private(tmp_path: Path) -> None:
    """Results and labels outlive the command; only the person may read them."""
    with Backtests(tmp_path / "state") as kept:
        kept.put(ONE, [Kept("t1", "m1", 5, "one")])
        kept.label("offline", "m1", "right", 1)
        kept.label("offline", "m1", "unknown", 2)
    with Backtests(tmp_path / "state") as kept:
        assert turns(kept) == ["one"]
        assert (kept.labels("offline"), kept.labels("openai")) == ({"m1": "unknown"}, {})
    assert stat.S_IMODE((tmp_path / "state" / FILE).stat().st_mode) == 0o600


def test_what_fails_half_way_is_not_there(tmp_path: Path) -> None:
    """A transaction that is interrupted leaves nothing of itself."""

    def broken() -> list[Kept]:
        raise KeyboardInterrupt

    with Backtests(tmp_path) as kept:
        with pytest.raises(KeyboardInterrupt):
            kept.put(ONE, (stop for _ in [1] for stop in broken()))
        assert not kept.is_done(ONE)
        assert turns(kept) == []


def test_a_file_of_another_form(tmp_path: Path) -> None:
    """Tables of another form are left alone, and so is what is no database: told, with what to do."""
    with Backtests(tmp_path) as kept:
        kept.put(ONE, [Kept("t1", "m1", 5, "one")])
    db = sqlite3.connect(tmp_path / FILE)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(Unavailable, match="another version"), Backtests(tmp_path):
        pass
    with contextlib.closing(sqlite3.connect(tmp_path / FILE)) as db:
        assert db.execute("SELECT count(*) FROM stops").fetchone() == (1,)
    (tmp_path / FILE).write_bytes(b"no database at all, but long enough to be looked at" * 40)
    with pytest.raises(Unavailable, match="move it away"), Backtests(tmp_path):
        pass
