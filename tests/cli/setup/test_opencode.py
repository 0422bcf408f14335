"""``reflectd setup opencode`` on real files, through the parser that a person's command line goes through.

The file is long because all of it tests one verb, on one desk.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from daemon import paths
from daemon.cli.main import WrongArguments
from daemon.files.jsonc import items
from tests.support.hosts.claude_code_settings import Desk

LIST = ("plugin",)
STALE = "file:///old/venv/lib/python3.11/site-packages/daemon/shims/opencode/index.ts"


class OpenCodeDesk(Desk):
    """A home with opencode's settings."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.host = "opencode"
        self.line = (self.data / "plugins" / "opencode").as_uri()
        self.config = self.root / "home" / ".config" / "opencode"
        (self.project / ".git").mkdir()

    def put(self, name: str, text: str) -> Path:
        """A settings file of the person's, or of the project (``project/…``)."""
        folder = self.project if name.startswith("project/") else self.config
        return self.write(text, folder / name.removeprefix("project/"))

    def backups(self) -> list[Path]:
        """What is kept of settings files; not the notes that there was none."""
        return sorted(self.data.glob("backups/*/*.json*"))


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> OpenCodeDesk:
    found = OpenCodeDesk(tmp_path, capsys)
    monkeypatch.chdir(found.project)
    return found


# --- which file -----------------------------------------------------------------------------------


def test_a_first_setup_makes_the_global_file(desk: OpenCodeDesk) -> None:
    """With no settings at all there is one new file, valid for any JSON reader, and the next step is said."""
    assert desk() == 0
    file = desk.config / "opencode.json"
    assert json.loads(file.read_text()) == {
        "$schema": "https://opencode.ai/config.json",
        "plugin": [desk.line],
    }
    assert str(file) in desk.out
    assert "restart opencode" in desk.out
    assert os.listdir(desk.config) == ["opencode.json"]


def test_xdg_config_home_is_where_opencode_looks(desk: OpenCodeDesk) -> None:
    """The global folder follows XDG_CONFIG_HOME; a relative one could be anywhere and is refused."""
    desk.env["XDG_CONFIG_HOME"] = str(desk.root / "xdg")
    assert desk.json()["file"] == str(desk.root / "xdg" / "opencode" / "opencode.json")
    desk.env["XDG_CONFIG_HOME"] = "somewhere"
    assert desk() == 2
    assert "absolute" in desk.err


def test_a_project_setup_stays_in_the_project(desk: OpenCodeDesk) -> None:
    """``--project`` is the current folder; the global folder is not made."""
    assert desk.json("--project")["file"] == str(desk.project / "opencode.json")
    assert not desk.config.exists()


@pytest.mark.parametrize(
    ("there", "chosen"),
    [
        ({"opencode.jsonc": "{}"}, "opencode.jsonc"),
        ({"opencode.jsonc": "{}", "opencode.json": "{}"}, "opencode.json"),
        ({"opencode.jsonc": '{"plugin": ["x"]}', "opencode.json": "{}"}, "opencode.jsonc"),
        (
            {"opencode.jsonc": f'{{"plugin": ["{STALE}"]}}', "opencode.json": '{"plugin": ["x"]}'},
            "opencode.jsonc",
        ),
        ({"project/.opencode/opencode.jsonc": "{}"}, "project/.opencode/opencode.jsonc"),
    ],
)
def test_an_existing_file_is_chosen(desk: OpenCodeDesk, there: dict[str, str], chosen: str) -> None:
    """opencode loads them all, so: the one with our line, else with a plugin list, else the .json."""
    for name, text in there.items():
        desk.put(name, text)
    done = desk.json(*(["--project"] if chosen.startswith("project/") else []))
    assert done["file"].endswith(chosen)
    assert items(Path(done["file"]).read_text(), LIST) != items(there[chosen], LIST)


# --- the line -------------------------------------------------------------------------------------

MINE = '\ufeff{\r\n  // mine\r\n  "theme": "x",\r\n  "plugin": [\r\n    "a", // first\r\n  ],\r\n}\r\n'


def test_only_the_list_changes_and_twice_is_once(desk: OpenCodeDesk) -> None:
    """Comments, CRLF, BOM and last commas stay; the second run does nothing and makes no backup."""
    file = desk.put("opencode.jsonc", MINE)
    done = desk.json()
    added = MINE.replace("// first\r\n", f'// first\r\n    "{desk.line}",\r\n')
    assert file.read_bytes().decode() == added
    del done["learning"]
    assert done | {"diff": ""} == {
        "file": str(file),
        "changed": True,
        "backup": done["backup"],
        "line": desk.line,
        "action": "added",
        "dry_run": False,
        "diff": "",
        "warnings": [],
        "copied": True,
        "notes": [],
        "command": "",
        "note": "",
        "program": None,
    }
    assert Path(done["backup"]).name == "20260102T030406-001-opencode.jsonc"
    assert Path(done["backup"]).read_bytes().decode() == MINE
    again = desk.json()
    assert (again["action"], again["changed"], again["backup"]) == ("unchanged", False, None)
    assert len(desk.backups()) == 1
    assert desk() == 0
    assert "nothing to do" in desk.out


@pytest.mark.parametrize(
    "stale",
    [
        STALE,
        STALE.replace("daemon", "reflectd"),
        f"{paths.shipped('shims/opencode').as_uri()}/index.ts",
        paths.shipped("shims/opencode").as_uri(),
        "opencode-reflectd",
        "opencode-reflectd@0.1.0",
        "/src/reflectd/plugin-shim/opencode",
        "file:///x/plugin-shim/opencode/dist/reflectd.js",
        "file:///x/node_modules/opencode-reflectd/index.js",
    ],
)
def test_a_line_of_another_installation_is_replaced(desk: OpenCodeDesk, stale: str) -> None:
    """A moved or updated installation takes over its place and options instead of loading twice."""
    file = desk.put("opencode.json", json.dumps({"plugin": [[stale, {"x": 1}], "b", stale]}))
    assert desk.json()["action"] == "replaced"
    assert items(file.read_text(), LIST) == [[desk.line, {"x": 1}], "b"]


@pytest.mark.parametrize("other", ["opencode-reflectd-extra", "/x/shims/opencode/index.ts", "reflectd"])
def test_lines_of_others_are_left_alone(desk: OpenCodeDesk, other: str) -> None:
    """A line that only looks like ours is left alone."""
    file = desk.put("opencode.json", json.dumps({"plugin": [other]}))
    assert desk.json()["action"] == "added"
    assert desk.json("--remove")["action"] == "removed"
    assert items(file.read_text(), LIST) == [other]


def test_remove_takes_out_our_line_only(desk: OpenCodeDesk) -> None:
    """After setup and removal the bytes are those of before; where nothing is ours, nothing happens."""
    file = desk.put("opencode.jsonc", MINE)
    assert desk("--remove") == 0
    assert "nothing to do" in desk.out
    before = desk.tree()
    desk()
    removed = desk.json("--remove")
    assert (removed["action"], removed["line"]) == ("removed", desk.line)
    assert file.read_bytes().decode() == MINE
    assert desk.tree() == before


# --- dry run, backups, undo -----------------------------------------------------------------------


def test_a_dry_run_shows_the_change_and_writes_nothing(desk: OpenCodeDesk) -> None:
    """The diff is there for people and as JSON, also for a file that would be new."""
    assert desk("--dry-run") == 0
    assert f'+  "plugin": ["{desk.line}"]' in desk.out
    assert not desk.config.exists()
    file = desk.put("opencode.json", '{"a": 1}')
    done = desk.json("--dry-run")
    assert (done["action"], done["backup"], done["dry_run"]) == ("added", None, True)
    assert done["diff"].splitlines()[3:6:2] == ['-{"a": 1}', f'+{{"a": 1, "plugin": ["{desk.line}"]}}']
    assert os.listdir(desk.config) == [file.name]


def test_five_backups_stay(desk: OpenCodeDesk) -> None:
    """The first and the newest backups stay; a backup has the mode of the settings file."""
    file = desk.put("opencode.json", "{}")
    file.chmod(0o600)
    for number in range(8):
        if number:
            file.write_text(f'{{"plugin": ["opencode-reflectd@{number}"]}}')
        assert desk() == 0
    kept = [backup.read_text() for backup in desk.backups()]
    assert kept[0] == "{}"
    assert [text[-4:-3] for text in kept[1:]] == ["4", "5", "6", "7"]
    assert {backup.stat().st_mode & 0o777 for backup in desk.backups()} == {0o600}
    assert file.stat().st_mode & 0o777 == 0o600


def test_backups_of_one_second_keep_their_order(desk: OpenCodeDesk) -> None:
    """Two edits in one second: the second one is undone first."""
    file = desk.put("opencode.json", "{}")
    desk()
    desk.time -= timedelta(seconds=1)
    file.write_text('{"plugin": ["opencode-reflectd@1"]}')
    desk()
    assert [backup.name[16:19] for backup in desk.backups()] == ["001", "002"]
    assert desk("--undo") == 0
    assert "opencode-reflectd@1" in file.read_text()


@pytest.mark.parametrize("way", ["--remove", "--undo"])
def test_a_first_setup_leaves_no_trace(desk: OpenCodeDesk, way: str) -> None:
    """With no settings file before, both ways back take away the file, its folder, the copy and the notes."""
    before = desk.tree()
    desk()
    assert desk(way, "--dry-run") == 0
    assert f'-  "plugin": ["{desk.line}"]' in desk.out
    assert (desk.config / "opencode.json").exists()
    done = desk.json(way)
    assert (done["action"], done["changed"]) == ("deleted", True)
    assert desk.tree() == before


@pytest.mark.shows("I43")
def test_removal_keeps_what_others_added_to_our_file(desk: OpenCodeDesk) -> None:
    """A file that setup made and a person went on to use stays, without our line and its list."""
    desk()
    file = desk.config / "opencode.json"
    file.write_text(file.read_text().replace("{\n", '{\n  "theme": "x",\n', 1))
    assert desk.json("--remove")["action"] == "removed"
    assert json.loads(file.read_text()) == {"$schema": "https://opencode.ai/config.json", "theme": "x"}
    assert not desk.data.exists()


SCHEMA = '  "$schema": "https://opencode.ai/config.json",\n'


@pytest.mark.parametrize("way", ["--remove", "--undo"])
def test_what_opencode_itself_adds_is_no_edit(desk: OpenCodeDesk, way: str) -> None:
    """opencode writes ``$schema`` into a file that has none. Both ways back still lead back."""
    theirs = '{\n  // mine\n  "theme": "x"\n}\n'
    file = desk.put("opencode.json", theirs)
    before = desk.tree()
    desk()
    file.write_text(file.read_text().replace("{\n", "{\n" + SCHEMA, 1))
    assert desk(way) == 0
    assert file.read_text() == theirs
    assert desk.tree() == before


def test_a_list_that_setup_made_goes_with_its_last_line(desk: OpenCodeDesk) -> None:
    """Of a file that was edited since only what is ours goes; a list that was there before stays."""
    for theirs, left in (('{"theme": "x"}', '{"theme": "y"}'), ('{"theme": "x", "plugin": []}', None)):
        file = desk.put("opencode.json", theirs)
        desk()
        file.write_text(file.read_text().replace('"x"', '"y"'))
        desk("--remove")
        assert file.read_text() == (left or '{"theme": "y", "plugin": []}')


def test_an_empty_file_of_the_persons_own_stays(desk: OpenCodeDesk) -> None:
    """Also when it was written anew since; only a file that setup made is deleted."""
    file = desk.put("opencode.json", "{}")
    desk()
    file.write_text(file.read_text() + "\n")
    assert desk.json("--remove")["action"] == "removed"
    assert json.loads(file.read_text()) == {}


def test_no_backup_in_a_repository(desk: OpenCodeDesk) -> None:
    """``--project`` edits the file of a repository; what it was is kept elsewhere, and comes back."""
    file = desk.put("project/opencode.json", '{"theme": "x"}')
    desk("--project")
    assert sorted(os.listdir(desk.project)) == [".git", "opencode.json"]
    assert [backup.read_text() for backup in desk.backups()] == ['{"theme": "x"}']
    assert desk("--project", "--undo") == 0
    assert file.read_text() == '{"theme": "x"}'
    assert not desk.data.exists()


# --- the copy of the plugin -----------------------------------------------------------------------


def test_the_line_names_a_copy_that_stays_where_it_is(desk: OpenCodeDesk) -> None:
    """The folder has ``index.ts`` at its root and all that it needs; nothing in it leads to this package."""
    shipped = paths.shipped("shims/opencode")
    desk()
    copy = desk.data / "plugins" / "opencode"
    assert (copy / "index.ts").read_bytes() == (shipped / "index.ts").read_bytes()
    assert {str(p.relative_to(copy)) for p in copy.rglob("*.ts")} == {
        str(p.relative_to(shipped)) for p in shipped.rglob("*.ts")
    }
    assert not any(path.is_symlink() for path in copy.rglob("*"))
    assert str(paths.PACKAGE.parent) not in (desk.config / "opencode.json").read_text()


def test_the_copy_stays_while_another_file_names_it(
    desk: OpenCodeDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removed in one place, the plugin is still there for the other, also for a folder far away."""
    other = desk.root / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    desk("--project")
    monkeypatch.chdir(desk.project)
    desk()
    copy = desk.data / "plugins" / "opencode" / "index.ts"
    desk("--remove")
    assert copy.exists()
    monkeypatch.chdir(other)
    desk("--remove", "--project")
    assert not desk.data.exists()


def test_undo_brings_the_file_back(desk: OpenCodeDesk) -> None:
    """The file has its old bytes again, and the backup is deleted."""
    file = desk.put("opencode.jsonc", MINE)
    desk()
    changed = file.read_bytes()
    assert desk("--undo", "--dry-run") == 0
    assert f'-    "{desk.line}"' in desk.out
    assert file.read_bytes() == changed
    assert desk.json("--undo")["action"] == "restored"
    assert file.read_bytes().decode() == MINE
    assert desk.backups() == []
    assert not desk.data.exists()
    assert desk("--undo") == 2
    assert "nothing to undo" in desk.err


@pytest.mark.shows("I43")
def test_undo_never_loses_a_later_edit(desk: OpenCodeDesk) -> None:
    """A file that was edited since is refused; with --force it is backed up first."""
    file = desk.put("opencode.json", "{}")
    desk()
    file.write_text('{"plugin": [], "later": true}')
    assert desk("--undo") == 2
    assert "was changed after our backup" in desk.err
    assert "later" in file.read_text()
    done = desk.json("--undo", "--force")
    assert file.read_text() == "{}"
    assert "later" in Path(done["backup"]).read_text()
    assert desk.backups() == [Path(done["backup"])]


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.shows("I43")
def test_a_list_of_another_form_stays_as_it_is(desk: OpenCodeDesk) -> None:
    """The file is named, exit code 2, nothing written; test_claude_code.py has the faults of any file."""
    file = desk.put("opencode.json", '{"plugin": "x"}')
    assert desk() == 2
    assert str(file) in desk.err
    assert "must be a list" in desk.err
    assert file.read_text() == '{"plugin": "x"}'
    assert os.listdir(desk.config) == ["opencode.json"]


def test_a_read_only_file_is_not_replaced(desk: OpenCodeDesk) -> None:
    """The rename would succeed, but the person (or a tool of theirs) made the file read-only."""
    file = desk.put("opencode.json", "{}")
    file.chmod(0o444)
    assert desk() == 2
    assert "read-only" in desk.err
    assert file.read_text() == "{}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_another_users_file_needs_force(desk: OpenCodeDesk) -> None:
    """Refused by default; with --force it still belongs to them."""
    file = desk.put("opencode.json", "{}")
    os.chown(file, 1234, 1234)
    assert desk() == 2
    assert "belongs to user 1234" in desk.err
    assert desk("--force") == 0
    assert file.stat().st_uid == 1234


def test_a_linked_dotfile_stays_a_link(desk: OpenCodeDesk) -> None:
    """The real file is edited, and no backup lies in the dotfiles."""
    real = desk.root / "dotfiles" / "oc.json"
    real.parent.mkdir()
    real.write_text("{}")
    desk.config.mkdir(parents=True)
    (desk.config / "opencode.json").symlink_to(real)
    done = desk.json()
    assert (desk.config / "opencode.json").is_symlink()
    assert items(real.read_text(), LIST) == [desk.line]
    assert Path(done["backup"]).is_relative_to(desk.data)
    assert os.listdir(real.parent) == ["oc.json"]
    assert desk("--undo") == 0
    assert real.read_text() == "{}"


def test_a_folder_that_cannot_be_made(desk: OpenCodeDesk) -> None:
    """The file system refuses: exit code 1, with the path."""
    desk.config.parent.write_text("a file where a folder should be")
    assert desk() == 1
    assert str(desk.config.parent) in desk.err


def test_options_that_contradict_each_other(desk: OpenCodeDesk) -> None:
    """They are refused as wrong arguments, with the usage."""
    with pytest.raises(WrongArguments, match="not allowed with"):
        desk("--remove", "--undo")


# --- loaded twice ---------------------------------------------------------------------------------


def test_another_scope_that_loads_us_is_named(desk: OpenCodeDesk) -> None:
    """A different line elsewhere, or a copy in a plugin folder, means twice; the same line does not."""
    desk.json("--project")
    assert desk.json()["warnings"] == []  # the same line: opencode loads it once
    project = desk.put("project/opencode.json", f'{{"plugin": ["{STALE}"]}}')
    copy = desk.put(
        "project/.opencode/plugins/judge.ts", (paths.shipped("shims/opencode/index.ts")).read_text()
    )
    desk.put("plugin/other.js", "export {}")
    warnings = desk.json()["warnings"]
    assert [w.split(" ")[0] for w in warnings] == [str(project), str(copy)]
    assert all("loaded twice" in warning for warning in warnings)
    assert desk("--remove") == 0
    assert desk.err.count("warning: ") == 2
    assert "still loaded" in desk.err


@pytest.mark.parametrize("variable", ["OPENCODE_CONFIG", "OPENCODE_CONFIG_DIR"])
def test_opencodes_own_variables_are_looked_at(desk: OpenCodeDesk, variable: str) -> None:
    """Settings that opencode is pointed to count as well."""
    extra = desk.root / "extra" / "opencode.json"
    extra.parent.mkdir()
    extra.write_text(f'{{"plugin": ["{STALE}"]}}')
    desk.env[variable] = str(extra if variable == "OPENCODE_CONFIG" else extra.parent)
    assert str(extra) in desk.json()["warnings"][0]


def test_a_temporary_installation_is_pointed_out(desk: OpenCodeDesk) -> None:
    """A path in the cache of uvx is pointed out: the next cleaning deletes it."""
    desk.env["XDG_DATA_HOME"] = str(desk.root / "uv" / "archive-v0" / "abc")
    assert "temporary" in desk.json()["warnings"][0]


@pytest.mark.shows("I41")
@pytest.mark.parametrize(
    ("provider", "said"),
    [
        ("", "your session's own model, then the rules, at most 2.00 USD a day"),
        ("anthropic", "nobody (no key for Anthropic"),
        ("host", "your session's own model, at most 2.00 USD a day"),
        ("offline", "the rules (no model, so they miss much; judge.provider is offline)"),
        ("wrong", "the daemon will not start with these settings"),
    ],
)
def test_setup_says_who_judges_and_what_it_may_cost(desk: OpenCodeDesk, provider: str, said: str) -> None:
    """Before the first cent is spent, the person reads who judges and what it may cost."""
    desk.env["REFLECTD_JUDGE_PROVIDER"] = provider
    assert desk() == 0
    assert said in desk.out
