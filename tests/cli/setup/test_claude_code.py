"""``reflectd setup claude-code``, and with it ``setup`` and ``edit``, which it is made of."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hosts.claude_code_settings import Desk


def test_nobody_else_may_write_what_was_made(desk: Desk) -> None:
    """Whatever the umask: settings that others may edit would load their programs."""
    before = os.umask(0)
    try:
        assert desk("--judge", "offline") == 0
    finally:
        os.umask(before)
    made = [p for p in (desk.root / "home").rglob("*") if not p.is_symlink()]
    assert {"settings.json", "config.toml", ".claude", "reflectd"} <= {p.name for p in made}
    assert not [p for p in made if p.stat().st_mode & 0o022]


@pytest.mark.parametrize("text", ['{"model": "opus"} // mine\n', '{"model": "opus",}', "// nothing\n{}"])
@pytest.mark.parametrize("loaded", [False, True])
def test_a_file_that_claude_code_skips_is_refused(desk: Desk, text: str, loaded: bool) -> None:
    """Claude Code skips a file with comments or trailing commas as a whole, so the plugin would never load:
    setup says so and changes nothing, doctor finds it, and what is there can still be removed.
    """
    if loaded:
        text = text.replace("{", "{" + json.dumps(desk.ours)[1:-1] + ", ").replace(", }", "}")
    desk.write(text)
    before = desk.tree()
    assert desk() == 2
    assert "skips a file with comments or trailing commas" in desk.err
    assert desk.tree() == before
    assert desk("--remove") == 0


def test_the_plugin_lies_in_the_data_folder(desk: Desk) -> None:
    """Claude Code reads it there, so an update of reflectd with another Python does not disconnect it."""
    desk()
    folder = Path(desk.folder)
    assert (folder / ".claude-plugin" / "marketplace.json").is_file()
    assert (folder / "hooks" / "hooks.json").is_file()
    assert os.access(folder / "scripts" / "hook.sh", os.X_OK)
    (folder / "scripts" / "hook.sh").write_text("# of version 0")
    assert desk() == 0
    assert "is of this version now" in desk.out
    assert "ctl.sh" in os.listdir(folder / "scripts")
    assert "version 0" not in (folder / "scripts" / "hook.sh").read_text()


def test_a_moved_installation_is_updated(desk: Desk) -> None:
    """The old folder is replaced where it stands; a plugin that was switched off is switched on."""
    desk.write(json.dumps(desk.ours).replace(desk.folder, "/old/shims/claude-code").replace("true", "false"))
    assert desk.json()["action"] == "replaced"
    assert json.loads(desk.file.read_text()) == desk.ours
    assert desk.json("--remove")["action"] == "removed"
    assert not desk.file.exists()


def test_where_the_file_is(desk: Desk) -> None:
    """CLAUDE_CONFIG_DIR, or the home; a relative folder could be anywhere and is refused."""
    assert desk.json("--dry-run")["file"] == str(desk.file)
    desk.env["CLAUDE_CONFIG_DIR"] = str(desk.root / "cc")
    assert desk.json()["file"] == str(desk.root / "cc" / "settings.json")
    desk.env["CLAUDE_CONFIG_DIR"] = "cc"
    assert desk() == 2
    assert "absolute" in desk.err


def test_removal_without_anything_of_ours(desk: Desk) -> None:
    """With nothing to remove, nothing is written; another marketplace of our name stays."""
    assert desk.json("--remove")["action"] == "unchanged"
    assert not desk.file.exists()
    theirs = '{"extraKnownMarketplaces": {"reflectd": {"source": {"source": "github", "repo": "a/b"}}}}'
    desk.write(theirs)
    assert desk.json("--remove")["action"] == "unchanged"
    assert desk() == 2
    assert "another marketplace" in desk.err
    assert desk.file.read_text() == theirs


def test_what_claude_code_noted_goes_too(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records of our plugin are removed, others stay; while another scope loads us, all stay."""
    monkeypatch.chdir(desk.project)
    plugins = desk.file.parent / "plugins"
    other = {"source": {"source": "github", "repo": "a/b"}, "installLocation": "/x"}
    known = plugins / "known_marketplaces.json"
    installed = plugins / "installed_plugins.json"
    noted = {"reflectd": desk.ours["extraKnownMarketplaces"]["reflectd"], "b": other}
    desk()
    project = desk.write(json.dumps(desk.ours), desk.project / ".claude" / "settings.json")
    desk.write(json.dumps(noted, indent=2), known)
    listed = {"version": 2, "plugins": {"a@b": [], "reflectd@reflectd": [{"scope": "user"}]}}
    desk.write(json.dumps(listed, indent=2), installed)
    (plugins / "data" / "reflectd-reflectd").mkdir(parents=True)
    assert desk("--remove") == 0
    assert "still loaded" in desk.err
    assert json.loads(known.read_text()) == noted
    project.unlink()
    assert desk("--remove") == 0
    assert json.loads(known.read_text()) == {"b": other}
    assert json.loads(installed.read_text()) == {"version": 2, "plugins": {"a@b": []}}
    assert sorted(os.listdir(plugins)) == ["installed_plugins.json", "known_marketplaces.json"]


@pytest.mark.shows("I43")
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
    """The file and the place are named, exit code 2, nothing written."""
    desk.write("").write_bytes(data)
    before = desk.tree()
    assert desk() == 2
    assert str(desk.file) in desk.err
    assert words in desk.err
    assert desk("--json") == 2
    assert words in json.loads(desk.out)["error"]
    assert desk.tree() == before


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
        for key, value in desk.ours.items():
            assert with_ours[key] == {**foreign.get(key, {}), **value}
        assert {k: v for k, v in with_ours.items() if k not in desk.ours} == {
            k: v for k, v in foreign.items() if k not in desk.ours
        }
        if rewritten:
            desk.write(json.dumps(with_ours))
        assert desk("--remove") == 0
        if not rewritten:
            assert desk.tree() == before
        else:
            left = json.loads(desk.file.read_text()) if desk.file.exists() else {}
            assert left == {k: v for k, v in foreign.items() if v != {} or k not in desk.ours}
