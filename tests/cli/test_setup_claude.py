"""``reflectd setup claude-code`` on real files, through the parser of the command line."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon import paths
from daemon.cli import claude_code, setup
from daemon.cli.finding import About
from daemon.core.settings import Settings

FOLDER = str(paths.shipped("shims/claude-code"))
OURS = {
    "extraKnownMarketplaces": {"reflectd": {"source": {"source": "directory", "path": FOLDER}}},
    "enabledPlugins": {"reflectd@reflectd": True},
}
MINE = (
    '\ufeff{\r\n  // mine\r\n  "model": "opus",\r\n'
    '  "enabledPlugins": {\r\n    "a@b": true, // first\r\n  },\r\n  "hooks": {"Stop": []}\r\n}\r\n'
)


@dataclass
class Desk:
    """A home, a project, and the command."""

    root: Path
    capsys: pytest.CaptureFixture[str] | None = None
    env: dict[str, str] = field(default_factory=dict)
    time: datetime = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    out: str = ""
    err: str = ""

    def __post_init__(self) -> None:
        (self.root / "home").mkdir()
        self.env = {"HOME": str(self.root / "home")}
        self.file = self.root / "home" / ".claude" / "settings.json"
        self.project = self.root / "project"
        self.project.mkdir()

    def __call__(self, *argv: str) -> int:
        parser = argparse.ArgumentParser()
        setup.add_parser(parser.add_subparsers(dest="verb", required=True))
        args = parser.parse_args(["setup", "claude-code", *argv])
        self.time += timedelta(seconds=1)
        code = setup.run(args, env=self.env, now=lambda: self.time)
        if self.capsys:
            self.out, self.err = self.capsys.readouterr()
        return code

    def json(self, *argv: str) -> dict[str, Any]:
        assert self(*argv, "--json") == 0
        assert self.err == ""
        return json.loads(self.out)

    def write(self, text: str, file: Path | None = None) -> Path:
        file = file or self.file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file

    def tree(self) -> dict[str, bytes | None]:
        """Everything there is, with its bytes."""
        found = self.root.rglob("*")
        return {str(p.relative_to(self.root)): None if p.is_dir() else p.read_bytes() for p in found}


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Desk:
    found = Desk(tmp_path, capsys)
    monkeypatch.chdir(found.project)
    return found


# --- what is written ------------------------------------------------------------------------------


def test_a_first_setup_makes_the_file_and_removal_leaves_no_trace(desk: Desk) -> None:
    """The two entries and nothing else; afterwards neither file nor folder was ever there."""
    before = desk.tree()
    assert desk() == 0
    assert json.loads(desk.file.read_text()) == OURS
    assert str(desk.file) in desk.out
    assert "restart Claude Code" in desk.out
    assert desk("--remove") == 0
    assert desk.tree() == before


def test_everything_else_stays_and_twice_is_once(desk: Desk) -> None:
    """Comments, order, CRLF, BOM and commas stay; the second run does nothing; removal restores each byte."""
    desk.write(MINE)
    before = desk.tree()
    done = desk.json()
    added = MINE.replace("// first\r\n", '// first\r\n    "reflectd@reflectd": true,\r\n')
    market = json.dumps(OURS["extraKnownMarketplaces"])
    added = added.replace('"Stop": []}\r\n', f'"Stop": []}},\r\n  "extraKnownMarketplaces": {market}\r\n')
    assert desk.file.read_bytes().decode() == added
    assert done | {"diff": ""} == {
        "file": str(desk.file),
        "changed": True,
        "backup": f"{desk.file}.reflectd-backup-20260102T030406",
        "line": FOLDER,
        "action": "added",
        "dry_run": False,
        "diff": "",
        "warnings": [],
    }
    assert Path(done["backup"]).read_bytes().decode() == MINE
    again = desk.json()
    assert (again["action"], again["changed"], again["backup"]) == ("unchanged", False, None)
    assert desk.json("--remove")["action"] == "removed"
    assert desk.tree() == before


def test_a_file_edited_since_loses_our_entries_only(desk: Desk) -> None:
    """I43: Claude Code rewrites its settings; what came later stays, and no backup is left."""
    desk.write('{"model": "opus"}')
    desk()
    later = json.loads(desk.file.read_text())
    later["enabledPlugins"]["x@y"] = True
    desk.write(json.dumps(later | {"theme": "dark"}, indent=2) + "\n")
    assert desk("--remove") == 0
    left = {"model": "opus", "enabledPlugins": {"x@y": True}, "theme": "dark"}
    assert desk.file.read_text() == json.dumps(left, indent=2) + "\n"
    assert os.listdir(desk.file.parent) == ["settings.json"]


def test_a_moved_installation_is_updated(desk: Desk) -> None:
    """The old folder is replaced in its place, a plugin that was switched off is on again."""
    desk.write(json.dumps(OURS).replace(FOLDER, "/old/shims/claude-code").replace("true", "false"))
    assert desk.json()["action"] == "replaced"
    assert json.loads(desk.file.read_text()) == OURS
    assert desk.json("--remove")["action"] == "removed"
    assert not desk.file.exists()


def test_where_the_file_is(desk: Desk) -> None:
    """CLAUDE_CONFIG_DIR, the home, or this project; a relative folder could be anywhere and is refused."""
    assert desk.json("--user", "--dry-run")["file"] == str(desk.file)
    assert desk("--project", "--json") == 0
    done = json.loads(desk.out)
    assert done["file"] == str(desk.project / ".claude" / "settings.json")
    assert "trusted" in done["warnings"][0]
    desk.env["CLAUDE_CONFIG_DIR"] = str(desk.root / "cc")
    assert desk.json()["file"] == str(desk.root / "cc" / "settings.json")
    desk.env["CLAUDE_CONFIG_DIR"] = "cc"
    assert desk() == 2
    assert "absolute" in desk.err
    with pytest.raises(SystemExit):
        desk("--user", "--project")


def test_a_shared_project_is_pointed_out(desk: Desk) -> None:
    """A path of this machine may end up in a repository."""
    (desk.project / ".git").mkdir()
    assert desk("--project") == 0
    assert "of this machine" in desk.err
    assert desk("--project", "--remove") == 0
    assert os.listdir(desk.project) == [".git"]


def test_a_dry_run_writes_nothing(desk: Desk) -> None:
    """The diff is shown for both ways, and the files stay as they are."""
    before = desk.tree()
    assert desk("--dry-run") == 0
    assert '+  "enabledPlugins": {"reflectd@reflectd": true}' in desk.out
    assert desk.tree() == before
    desk()
    there = desk.tree()
    assert desk("--remove", "--dry-run") == 0
    assert '-  "enabledPlugins": {"reflectd@reflectd": true}' in desk.out
    assert desk.tree() == there


# --- removal --------------------------------------------------------------------------------------


def test_removal_without_anything_of_ours(desk: Desk) -> None:
    """Nothing to do is no reason to write; another marketplace of our name is not ours to take."""
    assert desk.json("--remove")["action"] == "unchanged"
    assert not desk.file.exists()
    theirs = '{"extraKnownMarketplaces": {"reflectd": {"source": {"source": "github", "repo": "a/b"}}}}'
    desk.write(theirs)
    assert desk.json("--remove")["action"] == "unchanged"
    assert desk() == 2
    assert "another marketplace" in desk.err
    assert desk.file.read_text() == theirs


def test_what_claude_code_noted_goes_too(desk: Desk) -> None:
    """Its records of our plugin are taken out, those of others stay; with another scope left, all stay."""
    plugins = desk.file.parent / "plugins"
    other = {"source": {"source": "github", "repo": "a/b"}, "installLocation": "/x"}
    known = plugins / "known_marketplaces.json"
    installed = plugins / "installed_plugins.json"
    noted = {"reflectd": OURS["extraKnownMarketplaces"]["reflectd"], "b": other}
    desk()
    desk("--project")
    desk.write(json.dumps(noted, indent=2), known)
    listed = {"version": 2, "plugins": {"a@b": [], "reflectd@reflectd": [{"scope": "user"}]}}
    desk.write(json.dumps(listed, indent=2), installed)
    (plugins / "data" / "reflectd-reflectd").mkdir(parents=True)
    assert desk("--remove") == 0
    assert "still loaded" in desk.err
    assert json.loads(known.read_text()) == noted
    assert desk("--project", "--remove") == 0
    assert json.loads(known.read_text()) == {"b": other}
    assert json.loads(installed.read_text()) == {"version": 2, "plugins": {"a@b": []}}
    assert sorted(os.listdir(plugins)) == ["installed_plugins.json", "known_marketplaces.json"]
    assert not (desk.project / ".claude").exists()


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{\n  "a": 1\n  "b": 2\n}', "line 3, column 3"),
        (b'{"enabledPlugins": []}', '"enabledPlugins" must be an object'),
        (b'{"extraKnownMarketplaces": "x"}', '"extraKnownMarketplaces" must be an object'),
        (b'{"enabledPlugins": {}, "enabledPlugins": {}}', "stands twice"),
        (b'{"enabledPlugins": {"a@b": true, "a@b": false}}', "stands twice"),
        (b'["x"]', "must be an object"),
        (b'{"a": "\xff"}', "not UTF-8 (byte 7)"),
        (b'{"a": 1', "a comma or } is missing"),
    ],
)
def test_a_faulty_file_stays_as_it_is(desk: Desk, data: bytes, words: str) -> None:
    """I43: the file and the place are named, exit code 2, nothing written."""
    desk.write("").write_bytes(data)
    before = desk.tree()
    assert desk() == 2
    assert str(desk.file) in desk.err
    assert words in desk.err
    assert desk("--json") == 2
    assert words in json.loads(desk.out)["error"]
    assert desk.tree() == before


def test_a_read_only_file_is_not_replaced(desk: Desk) -> None:
    """A rename would succeed, but the person (or their tool) said no."""
    desk.write("{}").chmod(0o444)
    assert desk() == 2
    assert "read-only" in desk.err
    assert desk.file.read_text() == "{}"


def test_a_linked_dotfile_stays_a_link(desk: Desk) -> None:
    """The real file is edited, and gets its bytes back."""
    real = desk.write("{}", desk.root / "dotfiles" / "cc.json")
    desk.file.parent.mkdir()
    desk.file.symlink_to(real)
    assert desk() == 0
    assert desk.file.is_symlink()
    assert json.loads(real.read_text()) == OURS
    assert desk("--remove") == 0
    assert desk.file.is_symlink()
    assert real.read_text() == "{}"


# --- foreign contents -----------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.text(max_size=8) | st.sampled_from(["reflectd", "x@y", "model"])
FOREIGN = st.fixed_dictionaries(
    {},
    optional={
        "extraKnownMarketplaces": st.dictionaries(
            NAMES.filter(lambda n: n != "reflectd"), VALUES, max_size=3
        ),
        "enabledPlugins": st.dictionaries(NAMES, VALUES, max_size=3),
        "hooks": VALUES,
        "ü": VALUES,
    },
)


@settings(max_examples=150, deadline=None)
@given(foreign=FOREIGN, indent=st.sampled_from([None, 2, "\t"]), rewritten=st.booleans(), end=st.booleans())
def test_any_settings_survive(
    foreign: dict[str, Any], indent: int | str | None, *, rewritten: bool, end: bool
) -> None:
    """Set up, removed: each byte is back; after a rewrite by someone else, each setting is."""
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        desk.write(json.dumps(foreign, indent=indent, ensure_ascii=False) + "\n" * end)
        before = desk.tree()
        assert desk() == 0
        with_ours = json.loads(desk.file.read_text())
        for key, value in OURS.items():
            assert with_ours[key] == {**foreign.get(key, {}), **value}
        assert {k: v for k, v in with_ours.items() if k not in OURS} == {
            k: v for k, v in foreign.items() if k not in OURS
        }
        if rewritten:
            desk.write(json.dumps(with_ours))
        assert desk("--remove") == 0
        if not rewritten:
            assert desk.tree() == before
        else:
            left = json.loads(desk.file.read_text()) if desk.file.exists() else {}
            assert left == {k: v for k, v in foreign.items() if v != {} or k not in OURS}


# --- doctor ---------------------------------------------------------------------------------------


def examined(desk: Desk) -> list[tuple[str, str]]:
    about = About(desk.env, Settings(), paths.resolve(desk.env, socket="/r.sock"), None)
    found = [*claude_code.program(about), *claude_code.plugin(about)]
    return [(check.outcome, check.text.replace(str(desk.root), "")) for check in found]


def a_program(desk: Desk, name: str, says: str) -> None:
    folder = desk.root / "bin"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho '{says}'\n")
    (folder / name).chmod(0o755)
    desk.env["PATH"] = str(folder)


def test_doctor_is_quiet_without_claude_code(desk: Desk) -> None:
    """Who does not use it has nothing to look at."""
    desk.env["PATH"] = "/nowhere"
    assert [outcome for outcome, _ in examined(desk)] == ["ok", "ok"]
    a_program(desk, "claude", "2.1.330 (Claude Code)")
    assert examined(desk)[0] == ("ok", "2.1.330 (/bin/claude)")


@pytest.mark.parametrize(
    ("said", "outcome"), [("2.1.197 (Claude Code)", "ok"), ("2.1.196", "warn"), ("1.9.999", "warn")]
)
def test_doctor_knows_the_oldest_version(desk: Desk, said: str, outcome: str) -> None:
    """I39: what the plugin was tested with, and not by text comparison."""
    a_program(desk, "claude", said)
    assert examined(desk)[0][0] == outcome


def test_doctor_looks_at_our_entries(desk: Desk) -> None:
    """Enabled, there, this installation's; and the hooks have what they need."""
    a_program(desk, "curl", "")
    desk()
    assert examined(desk)[1:] == [("ok", f"/home/.claude/settings.json loads {FOLDER}")]
    (desk.root / "bin" / "curl").unlink()
    assert examined(desk)[-1][0] == "fail"
    a_program(desk, "python3", "")
    assert examined(desk)[-1] == ("warn", "without `curl` each hook takes longer")
    a_program(desk, "curl", "")
    ours = desk.file.read_text()
    desk.write(ours.replace("true", "false"))
    assert examined(desk)[1:] == [("warn", "/home/.claude/settings.json has reflectd switched off")]
    desk.write(ours.replace(FOLDER, "/gone"))
    assert examined(desk)[1:] == [("fail", "/home/.claude/settings.json loads /gone, which is not there")]
    other = desk.write("#!/bin/sh\n", desk.root / "other" / "scripts" / "hook.sh")
    desk.write(ours.replace(FOLDER, str(desk.root / "other")))
    assert examined(desk)[1][1].endswith("hook.sh cannot be run")
    other.chmod(0o755)
    assert examined(desk)[1] == ("warn", "/home/.claude/settings.json loads another installation, /other")
    desk.write('{"enabledPlugins": {"reflectd@reflectd": true}}')
    assert examined(desk)[1][0] == "warn"
