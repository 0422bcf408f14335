"""The service's files on disk: written, told apart from edited ones, removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from daemon.service import units
from daemon.service.units import SERVICE, Plan

STATE, ADDRESS = Path("/home/me/.local/state/reflectd"), Path("/run/user/1000/reflectd/reflectd.sock")
PLAN = Plan(("/now", "-m", "reflectd"), STATE, ADDRESS)


@pytest.mark.shows("I43")
@pytest.mark.parametrize("name", [SERVICE, units.FILE])
def test_an_edit_is_noticed(tmp_path: Path, name: str) -> None:
    """Ours of another version is replaced, a person's is kept beside and never overwritten."""
    make = units.render if name == SERVICE else units.agent
    now, old = make(PLAN)[name], make(Plan(("/old",), STATE, ADDRESS))[name]
    path = tmp_path / "new" / name
    assert units.state(path, now) == "missing"
    assert units.write(path, old, "1") is None
    assert units.state(path, now) == "older"
    assert units.write(path, now, "1") is None
    assert units.state(path, now) == "current"
    for count in (1, 2):
        mine = path.read_text() + f"<!-- mine {count} -->\n"
        path.write_text(mine)
        assert units.state(path, now) == "edited"
        aside = units.write(path, now, "1") if count == 1 else units.remove(path, now, "1")
        assert aside is not None
        assert aside.read_text() == mine
        assert aside.name == f"{name}.edited-1" + ("-2" if count == 2 else "")
    assert not path.exists()
    assert units.remove(path, now, "1") is None
