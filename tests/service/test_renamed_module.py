"""Units of the version whose package was called ``daemon``: found, and made to start the package of today.

``tests/data/units`` holds the files exactly as that version wrote them. Several modules work together here:
``manager`` decides, ``systemd`` and ``launchd`` change the text, ``units`` tells an edited file.
"""

from __future__ import annotations

import plistlib
from pathlib import Path

import pytest

from daemon.service import launchd, systemd, units
from daemon.service.manager import Launchd, Manager, Systemd, rename_module, starts_another_module
from daemon.service.systemd import Plan

OLD = Path(__file__).parents[1] / "data" / "units"
LINUX = Plan(
    ("/home/me/.local/share/uv/tools/reflectd/bin/python", "-m", "reflectd"),
    Path("/home/me/.local/state/reflectd"),
    Path("/run/user/1000/reflectd/reflectd.sock"),
)
MACOS = Plan(
    ("/Users/me/.local/share/uv/tools/reflectd/bin/python", "-m", "reflectd"),
    Path("/Users/me/.local/state/reflectd"),
    Path("/Users/me/.local/state/reflectd/run/reflectd.sock"),
)


def installed(home: Path, host: str) -> tuple[Manager, Plan]:
    """The old version's files where this system's manager reads them, and the plan of today."""
    here: Manager = Systemd({"HOME": str(home)}) if host == "systemd" else Launchd({"HOME": str(home)})
    plan = LINUX if host == "systemd" else MACOS
    here.folder.mkdir(parents=True)
    for name in here.render(plan):
        (here.folder / name).write_bytes((OLD / name).read_bytes())
    return here, plan


@pytest.fixture(params=["systemd", "launchd"])
def host(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_old_module_is_found(tmp_path: Path, host: str) -> None:
    """What the unit starts is read from its text; a folder without units starts nothing."""
    here, _ = installed(tmp_path, host)
    assert starts_another_module(here, "reflectd") == "daemon"
    assert starts_another_module(here, "daemon") == ""
    here.unit.unlink()
    assert starts_another_module(here, "reflectd") == ""


def test_only_the_name_of_the_module_changes(tmp_path: Path, host: str) -> None:
    """The rest of the unit stays as it was installed, and it still counts as ours, not as edited."""
    here, plan = installed(tmp_path, host)
    before = units.unsealed(here.unit.read_text())
    assert before is not None
    assert rename_module(here, plan)
    after = units.unsealed(here.unit.read_text())
    assert after is not None
    if host == "systemd":
        assert after == before.replace(" -m daemon serve ", " -m reflectd serve ")
        assert 'Environment="XDG_CONFIG_HOME=/home/me/my settings"\n' in after
    else:
        assert after == before.replace("<string>daemon</string>", "<string>reflectd</string>")
        assert plistlib.loads(after.encode())["ProgramArguments"] == [
            *plan.command("--log-file", "--socket", str(plan.socket))
        ]
    assert starts_another_module(here, "reflectd") == ""
    assert not rename_module(here, plan), "the second time there is nothing to do"


@pytest.mark.parametrize("what", ["another Python", "another state folder", "a clone", "edited", "missing"])
def test_what_may_be_another_installations_is_left(tmp_path: Path, host: str, what: str) -> None:
    """A unit with another Python or state folder, and one that a person edited, is not rewritten."""
    here, plan = installed(tmp_path, host)
    if what == "another Python":
        plan = Plan(("/other/python", "-m", "reflectd"), plan.state_dir, plan.socket)
    elif what == "another state folder":
        plan = Plan(plan.program, Path("/other/state"), plan.socket)
    elif what == "a clone":
        plan = Plan((*plan.program[:-1], "daemon"), plan.state_dir, plan.socket)
    elif what == "edited":
        here.unit.write_text(here.unit.read_text().replace("20", "30"))
    else:
        here.unit.unlink()
    before = here.unit.read_bytes() if here.unit.exists() else None
    assert not rename_module(here, plan)
    assert (here.unit.read_bytes() if here.unit.exists() else None) == before


@pytest.mark.parametrize("text", ["", "no unit", "<?xml", "<plist><array/></plist>", "\x00", "ExecStart=x\n"])
def test_a_text_that_starts_no_module(text: str) -> None:
    """Bad input: any text may stand in the file; it starts no module of ours and is not changed."""
    assert systemd.module(text) == launchd.module(text) == ""
    assert systemd.exchanged(text, LINUX, MACOS) == launchd.exchanged(text, LINUX, MACOS) == text
