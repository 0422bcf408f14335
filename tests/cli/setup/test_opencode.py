"""``reflectd setup opencode`` on real files, through the parser that a person's command line goes through.

The file is long because all of it tests one verb, on one desk.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from daemon import paths
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
    ],
)
def test_an_existing_file_is_chosen(desk: OpenCodeDesk, there: dict[str, str], chosen: str) -> None:
    """opencode loads them all, so: the one with our line, else with a plugin list, else the .json."""
    for name, text in there.items():
        desk.put(name, text)
    done = desk.json()
    assert done["file"].endswith(chosen)
    assert items(Path(done["file"]).read_text(), LIST) != items(there[chosen], LIST)


# --- the line -------------------------------------------------------------------------------------


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


# --- dry run, backups, undo -----------------------------------------------------------------------


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


def test_what_opencode_itself_adds_is_no_edit(desk: OpenCodeDesk) -> None:
    """opencode writes ``$schema`` into a file that has none. The way back still leads back."""
    theirs = '{\n  // mine\n  "theme": "x"\n}\n'
    file = desk.put("opencode.json", theirs)
    before = desk.tree()
    desk()
    file.write_text(file.read_text().replace("{\n", "{\n" + SCHEMA, 1))
    assert desk("--undo") == 0
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


# --- loaded twice ---------------------------------------------------------------------------------


def test_another_scope_that_loads_us_is_named(desk: OpenCodeDesk) -> None:
    """A different line elsewhere means twice; the same line does not. A file of somebody else's stays."""
    project = desk.put("project/opencode.json", json.dumps({"plugin": [desk.line]}))
    assert desk.json()["warnings"] == []  # the same line: opencode loads it once
    desk.put("project/opencode.json", f'{{"plugin": ["{STALE}"]}}')
    (warning,) = desk.json()["warnings"]
    assert warning.startswith(f"{project} ")
    assert "loaded twice" in warning
    assert desk("--undo") == 0
    assert "still loaded" in desk.err
    assert STALE in project.read_text()


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
    ],
)
def test_setup_says_who_judges_and_what_it_may_cost(desk: OpenCodeDesk, provider: str, said: str) -> None:
    """Before the first cent is spent, the person reads who judges and what it may cost."""
    desk.env["REFLECTD_JUDGE_PROVIDER"] = provider
    assert desk() == 0
    assert said in desk.out
