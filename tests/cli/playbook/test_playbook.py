"""``reflectd playbook``: real commands in a project, without a daemon unless a test says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from daemon.files.playbook import dumped
from harness.machine.sandbox import Sandbox
from tests.playbook.books import book, point
from tests.support.machine.command_line import reflectd, said

Json = dict[str, Any]


def run(box: Sandbox, *args: str, code: int = 0, **more: Any) -> str:
    """What `reflectd playbook …` printed."""
    return said(reflectd(box, "playbook", *args, **more), code)


def asked(box: Sandbox, *args: str, code: int = 0, **env: str) -> Json:
    done = reflectd(box, "playbook", *args, "--json", **env)
    assert (done.returncode, done.stderr) == (code, ""), done
    found: Json = json.loads(done.stdout)
    return found


def file_of(box: Sandbox) -> Path:
    return box.project / ".reflection" / "playbook.json"


def given(box: Sandbox, playbook: Json) -> None:
    file_of(box).parent.mkdir(exist_ok=True)
    file_of(box).write_bytes(dumped(playbook))


def test_a_point_from_its_first_to_its_last_day(box: Sandbox) -> None:
    """Added, shown, edited, removed; each change says how it is undone."""
    assert "no points in " in run(box, "show")
    assert "no points in " in run(box), "the bare verb shows the list"
    assert "undo with: reflectd playbook undo 1" in run(box, "add", "--section", "mis", "Tests need redis")
    shown = run(box, "show")
    assert "MISTAKES TO AVOID\n  mis-001   +0 -0    Tests need redis (not approved by you)\n" in shown
    assert "edited" in run(box, "edit", "mis-001", "Tests  need\nredis 7", "--why", "upgraded")
    assert "removed" in run(box, "remove", "mis-001")
    assert json.loads(file_of(box).read_bytes())["sections"]["MISTAKES TO AVOID"] == []
    changes = [line.split("you  ")[1] for line in run(box, "history").splitlines()]
    assert changes == ["removed mis-001", "edited mis-001: upgraded", "added mis-001"]


def test_undo_takes_back_one_change_and_refuses_after_an_edit(box: Sandbox) -> None:
    """The newest by default; a person's own edit is never overwritten."""
    run(box, "add", "one")
    run(box, "add", "two")
    assert "would undo 2: added oth-002" in run(box, "undo", "--dry-run")
    undone = {"file": str(file_of(box)), "changed": True, "undone": 2, "revision": 3}
    assert asked(box, "undo") == undone | {"project": str(box.project)}
    assert "(undone)" in run(box, "history")
    assert [r["undone"] for r in asked(box, "history")["revisions"]] == [False, True, False]
    file_of(box).write_text(file_of(box).read_text().replace("one", "mine"))
    assert "an edit that is not reflectd's: nothing was undone" in run(box, "undo", code=2)
    assert "there is no revision 9" in run(box, "undo", "9", code=2)
    assert "there is no revision -1" in run(box, "undo", "-1", code=2)


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["add", " "], "the text is empty"),
        (["add", "x" * 2_001], "at most 2000"),
        (["add", "key sk-ant-api03-1234567890abcdefghijKLMNOP"], "holds a secret"),
        (["add", "--section", "rules", "x"], "there are pat, mis, pref, ctx, oth"),
        (["add", "USE types!"], "pat-001 says the same: use types"),
        (["edit", "pat-002", "use types"], "pat-001 says the same"),
        (["edit", "pat-009", "x"], "there is no point 'pat-009'"),
        (["remove", "pat-001", "nope"], "there is no point 'nope'"),
        (["show", "nope"], "there is no point 'nope'"),
        (["history", "--limit", "0"], "from 1 to 100"),
        (["import", "none.json"], "there is no file none.json"),
        (["show", "--dir", "/nowhere/at/all"], "there is no folder"),
        (["shwo"], "did you mean `show`?"),
    ],
)
def test_wrong_arguments_change_nothing(box: Sandbox, args: list[str], why: str) -> None:
    """One line says what to change, with `--json` as an object."""
    given(box, book(point("pat-001", "use types"), point("pat-002", "use hints")))
    before = file_of(box).read_bytes()
    assert why in run(box, *args, code=2)
    if args:
        assert why in asked(box, *args, code=2)["error"]
    assert file_of(box).read_bytes() == before


def test_a_dry_run_says_what_would_be_done(box: Sandbox) -> None:
    """And writes nothing, for each change."""
    given(box, book(point("pat-001", "bad", 0, 3), point("pat-002", "twin"), point("pat-003", "Twin.")))
    before = file_of(box).read_bytes()
    for args, shown in (
        (["add", "new"], "would be added"),
        (["edit", "pat-001", "new"], "would be edited"),
        (["remove", "pat-001"], "would be removed"),
    ):
        assert shown in run(box, *args, "--dry-run")
        assert asked(box, *args, "--dry-run")["changed"] is False
    assert file_of(box).read_bytes() == before
    assert "has not changed" in run(box, "history")


def test_points_are_exported_and_imported(box: Sandbox) -> None:
    """To stdout or a new file; what is imported keeps its name where nobody had it, and is not approved."""
    run(box, "add", "--section", "pat", "mine")
    assert json.loads(run(box, "export"))["sections"]["PATTERNS & APPROACHES"][0]["text"] == "mine"
    assert "1 point of " in run(box, "export", "--out", "book.json")
    assert "exists already" in run(box, "export", "--out", "book.json", code=2)
    theirs = book(point("pat-001", "theirs", 4), point("pat-007", "Mine!"), ctx=[point("ctx-003", "fact")])
    (box.project / "theirs.json").write_bytes(dumped(theirs))
    found = asked(box, "import", "theirs.json")["points"]
    imported = [(p["name"], p["text"], p["helpful"]) for p in found]
    assert imported == [("pat-002", "theirs", 4), ("ctx-003", "fact", 0)]
    assert "theirs (not approved by you)" in run(box, "show")
    assert "nothing new to import" in run(box, "import", "theirs.json")
    legacy = json.dumps({"key_points": ["a bare text", {"name": "kpt_009", "text": "old", "score": -2}]})
    assert "kpt_009   +0 -2    old" in run(box, "import", "-", stdin=legacy.encode())
    assert "stdin is no playbook" in run(box, "import", "-", code=2, stdin=b"[]")


def test_it_is_about_the_project_of_the_folder(box: Sandbox) -> None:
    """From a sub-folder, and with a folder that is named."""
    box.project.joinpath(".reflection").mkdir(exist_ok=True)
    below = box.project / "src" / "deep"
    below.mkdir(parents=True)
    run(box, "add", "found", cwd=below)
    assert file_of(box).exists()
    assert "found" in run(box, "show", "--dir", str(below), cwd=box.root)


def test_a_broken_file_is_said_and_kept_at_the_next_change(box: Sandbox) -> None:
    """Nothing of it is lost."""
    file_of(box).parent.mkdir(exist_ok=True)
    file_of(box).write_text('{"sections": {')
    assert "is no playbook that can be used" in run(box, "show", code=2)
    assert "is no playbook that can be used" in run(box, "export", code=2)
    assert "it is kept as playbook.json.corrupt-" in run(box, "add", "x")
    (aside,) = file_of(box).parent.glob("playbook.json.corrupt-*")
    assert aside.read_text() == '{"sections": {'


def test_a_hostile_text_moves_no_cursor(box: Sandbox) -> None:
    """A playbook may come with a clone; a terminal obeys nothing in it."""
    given(box, book(point("pat-\x1b[2J", "clear\x1b[2J me\u202e now")))
    shown = run(box, "show")
    assert "\x1b" not in shown
    assert "\u202e" not in shown


ON = {"REFLECTD_PLAYBOOK_ENABLED": "true"}


@pytest.mark.parametrize(
    ("text", "env", "why"),
    [
        ("Use bun.", {}, "playbook.enabled is false; `reflectd setup --learning on` switches"),
        (
            "Use bun.",
            ON,
            "is given it: no terminal, so not before `reflectd playbook approve oth-001`",
        ),
        ("Use bun.", ON | {"REFLECTD_OFFER_ENABLED": "false"}, "offer.enabled is false"),
        ("Use bun.", ON | {"REFLECTD_JUDGE_MODE": "observe"}, "judge.mode is observe"),
        ("See https://x.example/y.", ON, "it names an address"),
        ("Run make check", ON, "AGENTS.md or CLAUDE.md says it already"),
    ],
)
def test_it_says_why_no_agent_is_given_a_point(
    box: Sandbox, text: str, env: dict[str, str], why: str
) -> None:
    """When it is added or edited; and the list says it where none is given any."""
    (box.project / "CLAUDE.md").write_text("- Run `make check`.\n- run make check.\n")
    assert why in " ".join(run(box, "add", text, **env).split())
    shown = " ".join(run(box, "show", **env).split())
    assert ("no agent is given these: " + why in shown) is (env != ON)
